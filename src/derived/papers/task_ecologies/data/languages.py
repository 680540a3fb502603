"""Synthetic languages whose every next-letter distribution is known: floors and excesses are then exact.

symbol   name         meaning                                                          axes
A        letters      letters of the alphabet; token A opens a text                    scalar
P_l      transitions  distribution of the next letter given the last, by language      (n, A, A)
-        first        distribution of the first letter: the stationary one             (n, A)
-        texts        A, then letters                                                  (*batch, T + 1)

A family is a tree: a child mixes its parent's matrix with a fresh one, with a weight that says how far it has gone.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from derived.lab.checks import check_count, check_within


@dataclass(frozen=True)
class LanguageFamily:
    """Markov languages on one alphabet. ValueError for distributions that are negative or do not sum to one."""

    first: Float[Tensor, "n A"]
    transitions: Float[Tensor, "n A A"]

    def __post_init__(self) -> None:
        shape = self.first.shape
        if len(shape) != 2 or self.transitions.shape != (*shape, shape[1]):
            given = f"first {tuple(shape)}, transitions {tuple(self.transitions.shape)}"
            raise ValueError(f"{given}; give (n, A) and (n, A, A)")
        for name, laws in (("first", self.first), ("transitions", self.transitions)):
            sums = laws.sum(dim=-1)
            if bool((laws < 0).any()) or not bool(((sums - 1).abs() < 1e-9).all()):
                worst = sums.flatten()[(sums - 1).abs().argmax()].item()
                raise ValueError(f"{name}: a law sums to {worst:.6g} or is negative; each must be >= 0 and sum to 1")

    @property
    def letters(self) -> int:
        """Letters of the alphabet; also the token that opens a text."""
        return self.first.shape[1]

    def laws(self, languages: Int[Tensor, "*batch"], texts: Int[Tensor, "*batch T"]) -> Float[Tensor, "*batch T V"]:
        """The true distribution of the next token after each token; the opening token never comes again."""
        opened = torch.cat([self.transitions, self.first.unsqueeze(1)], dim=1)  # the row of A: the first letter
        found = opened[languages.unsqueeze(-1), texts]
        return torch.nn.functional.pad(found, (0, 1))

    def texts(
        self, languages: Int[Tensor, "*batch"], length: int, generator: torch.Generator
    ) -> Int[Tensor, "*batch T"]:
        """One text of ``length`` letters after the opening token for each entry of ``languages``."""
        check_count("length", length)
        flat = languages.flatten()
        opened = torch.cat([self.transitions, self.first.unsqueeze(1)], dim=1).cumsum(dim=-1)
        drawn = torch.rand(length, len(flat), 1, generator=generator, dtype=torch.float64)
        tokens = [torch.full_like(flat, self.letters)]
        for u in drawn:
            tokens.append((u > opened[flat, tokens[-1]]).sum(dim=-1).clamp(max=self.letters - 1))
        return torch.stack(tokens, dim=-1).view(*languages.shape, length + 1)


def language_family(
    weights: Sequence[float] = (0.15, 0.15, 0.5, 0.5, 0.9),
    *,
    generator: torch.Generator,
    letters: int = 26,
    concentration: float = 0.3,
    alien: bool = False,
) -> LanguageFamily:
    """Languages that mix a common root with fresh matrices of the given weights, rows Dirichlet(concentration).

    Two children of weight 0.15 are like sisters, 0.9 is an outgroup. ``alien`` adds one more: the first language
    sharpened (each probability squared) and its letters permuted, of lower entropy on the same alphabet.

    >>> family = language_family((0.15, 0.9), generator=torch.Generator().manual_seed(0), letters=4)
    >>> family.transitions.shape
    torch.Size([2, 4, 4])
    """
    check_count("letters", letters, least=2)
    check_count("number of weights", len(weights))
    check_within("weights", np.asarray(weights, dtype=float), 0, 1)
    mix = torch.tensor(weights, dtype=torch.float64)[:, None, None]
    root, *fresh = (_dirichlet(letters, concentration, generator) for _ in range(len(weights) + 1))
    transitions = (1 - mix) * root + mix * torch.stack(fresh)
    if alien:
        order = torch.randperm(letters, generator=generator)
        sharp = transitions[0].square()
        sharp = (sharp / sharp.sum(dim=-1, keepdim=True))[order][:, order]
        transitions = torch.cat([transitions, sharp.unsqueeze(0)])
    return LanguageFamily(_stationary(transitions), transitions)


def _dirichlet(letters: int, concentration: float, generator: torch.Generator) -> Tensor:
    drawn = torch._standard_gamma(torch.full((letters, letters), concentration, dtype=torch.float64), generator)
    drawn = drawn + 1e-6  # every letter can follow every other, so that one stationary distribution exists
    return drawn / drawn.sum(dim=-1, keepdim=True)


def _stationary(transitions: Tensor) -> Tensor:
    """The solution of p P = p, sum p = 1, by language."""
    letters = transitions.shape[-1]
    equations = torch.eye(letters, dtype=transitions.dtype) - transitions.mT
    equations = torch.cat([equations, torch.ones_like(equations[:, :1])], dim=1)
    right = torch.eye(letters + 1, dtype=transitions.dtype)[:, -1:].repeat(len(transitions), 1, 1)
    found = torch.linalg.lstsq(equations, right).solution.squeeze(-1).clamp(min=0)
    return found / found.sum(dim=-1, keepdim=True)


def excess(logits: Float[Tensor, "*batch T V"], laws: Float[Tensor, "*batch T V"]) -> Float[Tensor, "*batch"]:
    """The mean over places of KL(truth, model): the loss above the lower bound, given the texts' contexts."""
    return (torch.xlogy(laws, laws) - laws * logits.log_softmax(dim=-1)).sum(dim=-1).mean(dim=-1)
