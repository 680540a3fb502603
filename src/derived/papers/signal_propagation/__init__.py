"""Subcritical Signal Propagation at Initialization in Normalization-Free Transformers (Alekseev, arXiv 2604.11890)."""
