"""Synthetic languages whose every next-letter distribution is known: floors and excesses are then exact.

symbol   name         meaning                                                          axes
A        letters      letters of the alphabet; token A opens a text                    scalar
P_l      transitions  distribution of the next letter given the last, by language      (n, A, A)
-        first        distribution of the first letter: the stationary one             (n, A)
-        opened       the next letter given the last token, the opening one included   (n, A + 1, A)
-        texts        A, then letters                                                  (*batch, T + 1)

Of order two the last two letters stand in the place of the last one: transitions (n, A, A, A), and ``first`` is the
stationary distribution of pairs, (n, A, A).

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

    first: Float[Tensor, "n *letters"]
    transitions: Float[Tensor, "n *letters A"]

    def __post_init__(self) -> None:
        shape = self.first.shape
        if len(shape) not in (2, 3) or self.transitions.shape != (*shape, shape[1]):
            given = f"first {tuple(shape)}, transitions {tuple(self.transitions.shape)}"
            raise ValueError(f"{given}; give (n, A) and (n, A, A)")
        for name, laws in (("first", self.first.flatten(1)), ("transitions", self.transitions)):
            sums = laws.sum(dim=-1)
            if bool((laws < 0).any()) or not bool(((sums - 1).abs() < 1e-9).all()):
                worst = sums.flatten()[(sums - 1).abs().argmax()].item()
                raise ValueError(f"{name}: a law sums to {worst:.6g} or is negative; each must be >= 0 and sum to 1")

    @property
    def letters(self) -> int:
        """Letters of the alphabet; also the token that opens a text."""
        return self.first.shape[1]

    @property
    def order(self) -> int:
        """How many letters the next one depends on."""
        return self.first.ndim - 1

    @property
    def opened(self) -> Tensor:
        """The distribution of the next letter by the last ``order`` tokens, the opening one included."""
        if self.order == 1:
            return torch.cat([self.transitions, self.first.unsqueeze(1)], dim=1)
        letter = self.first.sum(dim=-1, keepdim=True)  # (n, A, 1)
        begun = torch.cat([self.first / letter.clamp(min=1e-300), letter.mT], dim=1)  # the opening token, then any
        within = torch.nn.functional.pad(self.transitions, (0, 0, 0, 1))  # behind a letter it never comes
        return torch.cat([within, begun.unsqueeze(1)], dim=1)

    def laws(self, languages: Int[Tensor, "*batch"], texts: Int[Tensor, "*batch T"]) -> Float[Tensor, "*batch T V"]:
        """The true distribution of the next token after each token; the opening token never comes again."""
        before = torch.nn.functional.pad(texts, (1, 0), value=self.letters)[..., :-1]
        found = self.opened[languages.unsqueeze(-1), *(before, texts)[-self.order :]]
        return torch.nn.functional.pad(found, (0, 1))

    def texts(
        self, languages: Int[Tensor, "*batch"], length: int, generator: torch.Generator
    ) -> Int[Tensor, "*batch T"]:
        """One text of ``length`` letters after the opening token for each entry of ``languages``."""
        check_count("length", length)
        flat = languages.flatten()
        opened = self.opened.cumsum(dim=-1)
        drawn = torch.rand(length, len(flat), 1, generator=generator, dtype=torch.float64)
        tokens = [torch.full_like(flat, self.letters)] * self.order
        for u in drawn:
            tokens.append((u > opened[flat, *tokens[-self.order :]]).sum(dim=-1).clamp(max=self.letters - 1))
        return torch.stack(tokens[self.order - 1 :], dim=-1).view(*languages.shape, length + 1)


def language_family(
    weights: Sequence[float] = (0.15, 0.15, 0.5, 0.5, 0.9),
    *,
    generator: torch.Generator,
    letters: int = 26,
    concentration: float = 0.3,
    alien: bool = False,
    order: int = 1,
) -> LanguageFamily:
    """Languages that mix a common root with fresh matrices of the given weights, rows Dirichlet(concentration).

    Two children of weight 0.15 are like sisters, 0.9 is an outgroup. ``alien`` adds one more: the first language
    sharpened (each probability squared) and its letters permuted, of lower entropy on the same alphabet. Of ``order``
    two, the next letter depends on the last two.

    >>> family = language_family((0.15, 0.9), generator=torch.Generator().manual_seed(0), letters=4)
    >>> family.transitions.shape
    torch.Size([2, 4, 4])
    """
    check_count("letters", letters, least=2)
    check_count("number of weights", len(weights))
    check_within("weights", np.asarray(weights, dtype=float), 0, 1)
    mix = torch.tensor(weights, dtype=torch.float64).view(-1, *[1] * (order + 1))
    root, *fresh = (_dirichlet([letters] * (order + 1), concentration, generator) for _ in range(len(weights) + 1))
    transitions = (1 - mix) * root + mix * torch.stack(fresh)
    if alien:
        exchanged = torch.randperm(letters, generator=generator)
        sharp = transitions[0].square()
        sharp = (sharp / sharp.sum(dim=-1, keepdim=True))[torch.meshgrid(*[exchanged] * (order + 1), indexing="ij")]
        transitions = torch.cat([transitions, sharp.unsqueeze(0)])
    stationary = _stationary(transitions if order == 1 else _of_pairs(transitions))
    return LanguageFamily(stationary.view(transitions.shape[:-1]), transitions)


def _dirichlet(shape: Sequence[int], concentration: float, generator: torch.Generator) -> Tensor:
    drawn = torch._standard_gamma(torch.full(shape, concentration, dtype=torch.float64), generator)
    drawn = drawn + 1e-6  # every letter can follow every other, so that one stationary distribution exists
    return drawn / drawn.sum(dim=-1, keepdim=True)


def _of_pairs(transitions: Tensor) -> Tensor:
    """The distribution of the next pair given the last pair, (n, A, A, A) -> (n, A A, A A): a, b becomes b, c."""
    letters = transitions.shape[-1]
    same = torch.eye(letters, dtype=transitions.dtype)
    return torch.einsum("nabc,bd->nabdc", transitions, same).reshape(-1, letters**2, letters**2)


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
