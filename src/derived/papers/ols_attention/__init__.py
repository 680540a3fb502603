"""Ordinary Least Squares is a Special Case of Transformer (Tan and Zhao, arXiv 2604.13656).

One forward pass of a linear-attention layer is the least-squares fit of its tokens:

>>> import torch
>>> from derived.papers.ols_attention import OLSTransformer
>>> X = torch.tensor([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])  # an intercept and a slope
>>> Y = torch.tensor([[1.0], [2.0], [4.0]])
>>> layer = OLSTransformer.from_data(X, Y)
>>> layer(X).flatten()
tensor([0.8333, 2.3333, 3.8333])
>>> X @ torch.linalg.lstsq(X, Y).solution.flatten()
tensor([0.8333, 2.3333, 3.8333])
"""

from derived.lab import face

__getattr__, __dir__, __all__ = face.attach(
    __name__,
    submod_attrs={
        "training": ["train_matrix", "train_scalar"],
        "model.capacity": ["bit_error_theory", "ramsauer_capacity", "sphere_exponent"],
        "model.hopfield": ["capacity", "energy", "flip_field", "kh_step", "retrieve"],
        "model.mechanism": [
            "OLSTransformer",
            "in_context_ols",
            "linear_attention",
            "ridge_weights",
            "softmax_regression",
            "tied_weights",
            "whitening",
        ],
        "model.reachability": ["predicted_end_point"],
        "model.theory": ["ols_coefficients", "optimal_linear_attention"],
    },
)
