"""Ordinary Least Squares is a Special Case of Transformer (Tan and Zhao, arXiv 2604.13656).

Read ``reference.py`` first: the layer in plain Python. Then ``model/mechanism.py``, the layer in torch, and
``layer.py``, the first topic with its experiment, claims and figures.

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
        "model.mechanism": [
            "OLSTransformer",
            "in_context_ols",
            "linear_attention",
            "ridge_weights",
            "softmax_regression",
            "tied_weights",
            "whitening",
        ],
        "model.memory": ["linear_load", "recall", "softmax_rate"],
        "model.reachability": ["predicted_end_point"],
        "model.theory": ["ols_coefficients", "optimal_linear_attention"],
        "training": ["train_matrix", "train_scalar"],
    },
)
