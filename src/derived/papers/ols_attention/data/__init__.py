"""Synthetic regression problems and random tasks."""
