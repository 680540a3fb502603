"""Homogenized Transformers: tokens on the sphere under random heads that are drawn anew in every layer."""
