"""Ordinary Least Squares is a Special Case of Transformer (Tan and Zhao, arXiv 2604.13656)."""
