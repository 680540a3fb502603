"""Cactus: Constrained Acceptance Speculative Sampling (Hao and Mou, arXiv 2604.04987)."""
