"""Rows in, a figure out; no torch."""
