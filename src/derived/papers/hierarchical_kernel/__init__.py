"""Hierarchical Kernel Transformer (Cirrincione 2026): attention whose scores are a convex mixture of resolutions."""
