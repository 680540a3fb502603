"""Tables of letter counts as readers of texts: what can be told without any memory beyond n - 1 letters.

symbol   name      meaning                                             axes
n        order     letters of the window, the predicted one included   scalar
N(w, v)  counts    how often v followed the window w in training       (V^(n - 1), V)
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from derived.lab.checks import check_count, check_positive


@dataclass(frozen=True)
class NGram:
    """p(v | w) = (N(w, v) + s) / (N(w) + s V), w the last n - 1 tokens; shorter at the start of a text, where the
    opening token fills it up."""

    order: int
    laws: Float[Tensor, "windows V"]
    opening: int

    def losses(self, texts: Int[Tensor, "B T"]) -> Float[Tensor, "B T"]:
        """-ln p of every token but the first."""
        windows = _windows(texts, self.order, self.laws.shape[1], self.opening)
        return -self.laws[windows, texts[:, 1:]].log()


def fit_ngram(
    texts: Int[Tensor, "B T"], order: int, vocabulary: int, *, opening: int, smoothing: float = 0.01
) -> NGram:
    """The table of a corpus. ValueError for order < 1 or smoothing <= 0.

    >>> reader = fit_ngram(torch.tensor([[2, 0, 1, 0, 1]]), 2, 3, opening=2, smoothing=1e-9)
    >>> reader.laws[0].round(decimals=3)
    tensor([0., 1., 0.], dtype=torch.float64)
    """
    check_count("order", order)
    check_positive("smoothing", smoothing)
    windows = _windows(texts, order, vocabulary, opening)
    size = vocabulary ** (order - 1)
    places = windows * vocabulary + texts[:, 1:]
    counts = torch.bincount(places.flatten(), minlength=size * vocabulary).view(size, vocabulary).double() + smoothing
    return NGram(order, counts / counts.sum(dim=-1, keepdim=True), opening)


def _windows(texts: Tensor, order: int, vocabulary: int, opening: int) -> Tensor:
    """The last order - 1 tokens before each token but the first, as one number."""
    padded = torch.nn.functional.pad(texts, (max(order - 2, 0), 0), value=opening)
    found = torch.zeros_like(texts[:, 1:])
    for back in range(order - 1, 0, -1):
        start = max(order - 2, 0) + 1 - back
        found = found * vocabulary + padded[:, start : start + found.shape[1]]
    return found
