"""Trained weights and real data that ship in packages: the list, how it is fetched, and how each is read."""
