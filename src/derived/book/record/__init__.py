"""Predicts what a run would cost, and runs its conditions on workers."""
