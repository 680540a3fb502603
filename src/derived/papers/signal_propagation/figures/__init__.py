"""Rows as figures, a file for each topic, and the explorers."""
