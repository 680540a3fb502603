"""Tables of letter counts as readers of texts: what can be told without any memory beyond n - 1 letters.

symbol   name      meaning                                             axes
n        order     letters of the window, the predicted one included   scalar
N(w, v)  counts    how often v followed the window w in training       (V^(n - 1), V)
s        strength  how many counts the shorter window's distribution is worth   scalar
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from derived.lab.checks import check_count, check_positive

STATES = 8
State = Callable[[Tensor], Tensor]  # a number below STATES at each token, of it and of what is before it


@dataclass(frozen=True)
class NGram:
    """p(v | w) = (N(w, v) + s p(v | w')) / (N(w) + s), w the last n - 1 tokens and w' without the first of them.

    At the start of a text the opening token fills the window up; below one letter stands the uniform distribution
    (MacKay and Peto, 1995). With a state there is such a table for each of its values, from the places that have it."""

    order: int
    laws: Float[Tensor, "windows V"]
    opening: int
    state: State | None = None

    def after(self, texts: Int[Tensor, "B T"]) -> Float[Tensor, "B T V"]:
        """p of the next token after each token, of a table without a state."""
        return self.laws[_windows(torch.nn.functional.pad(texts, (0, 1)), self.order, self.laws.shape[1], self.opening)]

    def losses(self, texts: Int[Tensor, "B T"]) -> Float[Tensor, "B T"]:
        """-ln p of every token but the first."""
        windows = _windows(texts, self.order, self.laws.shape[1], self.opening)
        if self.state is not None:
            windows = windows + len(self.laws) // STATES * self.state(texts)[:, :-1]
        return -self.laws[windows, texts[:, 1:]].log()


def fit_ngram(
    texts: Int[Tensor, "B T"],
    order: int,
    vocabulary: int,
    *,
    opening: int,
    strength: float = 1.0,
    state: State | None = None,
) -> NGram:
    """The table of a corpus. ValueError for order < 1 or strength <= 0.

    >>> reader = fit_ngram(torch.tensor([[2, 0, 1, 0, 1]]), 2, 3, opening=2, strength=1e-9)
    >>> reader.laws[0].round(decimals=3)
    tensor([0., 1., 0.], dtype=torch.float64)
    """
    check_count("order", order)
    check_positive("strength", strength)
    values, before = (1, 0) if state is None else (STATES, state(texts)[:, :-1])
    laws = torch.full((values, 1, vocabulary), 1 / vocabulary, dtype=torch.float64)
    for n in range(1, order + 1):
        size = vocabulary ** (n - 1)
        places = (before * size + _windows(texts, n, vocabulary, opening)) * vocabulary + texts[:, 1:]
        counts = torch.bincount(places.flatten(), minlength=values * size * vocabulary).double()
        counts = counts.view(values, size, vocabulary)
        counts = counts + strength * laws.repeat(1, size // laws.shape[1], 1)  # a window's shorter: its last digits
        laws = counts / counts.sum(dim=-1, keepdim=True)
    return NGram(order, laws.flatten(0, 1), opening, state)


def _windows(texts: Tensor, order: int, vocabulary: int, opening: int) -> Tensor:
    """The last order - 1 tokens before each token but the first, as one number."""
    padded = torch.nn.functional.pad(texts, (max(order - 2, 0), 0), value=opening)
    found = torch.zeros_like(texts[:, 1:])
    for back in range(order - 1, 0, -1):
        start = max(order - 2, 0) + 1 - back
        found = found * vocabulary + padded[:, start : start + found.shape[1]]
    return found
