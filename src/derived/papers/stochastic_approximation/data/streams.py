"""Streams of tokens for a learner: many short ones, one long one, one whose component changes.

symbol   name      meaning                                                axes
y        tokens    tokens 0..S-1                                          (texts, T) or (T,)
k        component component of each text, or at each time                (texts,) or (T,)
"""

from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from derived.lab.checks import check_count, check_fraction

from .environments import MarkovMixture


class Tokens(NamedTuple):
    """Tokens and the component that made them."""

    tokens: Tensor
    component: Tensor


def multi_stream(mixture: MarkovMixture, texts: int, length: int, generator: torch.Generator) -> Tokens:
    """Texts that each draw a component of their own: (texts, length), (texts,).

    >>> coins = MarkovMixture((((0.9, 0.1), (0.9, 0.1)), ((0.1, 0.9), (0.1, 0.9))), (0.5, 0.5))
    >>> multi_stream(coins, 3, 5, torch.Generator().manual_seed(0)).tokens.shape
    torch.Size([3, 5])
    """
    y, component = mixture.draw(length, texts, generator)
    return Tokens(y.long().mT.contiguous(), component)


def single_stream(
    mixture: MarkovMixture, component: int, texts: int, length: int, generator: torch.Generator
) -> Tokens:
    """One realisation inside one component, cut into consecutive texts: (texts, length), (texts,).

    ValueError for a component that the mixture does not have.
    """
    check_count("texts", texts)
    if not 0 <= component < len(mixture.chains):
        raise ValueError(f"component = {component}; the mixture has 0 to {len(mixture.chains) - 1}")
    weights = tuple(float(k == component) for k in range(len(mixture.chains)))
    y, _ = replace(mixture, weights=weights).draw(texts * length, 1, generator)
    return Tokens(y.long().view(texts, length), torch.full((texts,), component))


def switching_stream(mixture: MarkovMixture, length: int, epsilon: float, generator: torch.Generator) -> Tokens:
    """One stream whose component is drawn anew with probability epsilon a step: (length,), (length,).

    Every component's chain runs on, unseen while another one is heard. ValueError unless 0 < epsilon < 1.
    """
    check_fraction("epsilon", epsilon)
    alone = [
        single_stream(mixture, component, 1, length, generator).tokens[0] for component in range(len(mixture.chains))
    ]
    anew = torch.rand(length, generator=generator, dtype=torch.float64) < epsilon
    anew[0] = True
    picks = torch.multinomial(torch.tensor(mixture.weights), length, replacement=True, generator=generator)
    component = picks[torch.where(anew, torch.arange(length), 0).cummax(dim=0).values]
    return Tokens(torch.stack(alone).gather(0, component[None])[0], component)
