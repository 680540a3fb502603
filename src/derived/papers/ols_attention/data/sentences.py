"""Speeches as rows of vectors: the sentences of each, as a trained model of sentences sees them."""

import re

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from derived.lab.real import own, texts
from derived.lab.real.models import Pretrained

SHORTEST = 20  # characters of a sentence; less is a heading or an abbreviation


def speeches(count: int, folder: str = "") -> list[tuple[str, int, str]]:
    """Speaker, year and text of State of the Union speeches, evenly over the years; or of each file of a folder of
    one's own, which speaks for itself and has its place for a year. ValueError where there are fewer than ``count``."""
    found = [(name, place, text) for place, (name, text) in enumerate(own.read(folder).items())] if folder else []
    found = found or [(speech.name, speech.year, speech.text) for speech in texts.speeches()]
    if len(found) < count:
        raise ValueError(f"there are {len(found)} texts, and {count} are asked for")
    return [found[place] for place in np.linspace(0, len(found) - 1, count).round().astype(int)]


def sentences(text: str) -> list[str]:
    """The sentences of a text in order.

    >>> sentences("Fellow citizens of the Senate! No. The year that has passed was a good one.")
    ['Fellow citizens of the Senate!', 'The year that has passed was a good one.']
    """
    return [each for each in re.split(r"(?<=[.!?])\s+", " ".join(text.split())) if len(each) >= SHORTEST]


@torch.no_grad()
def vectors(reader: Pretrained, text: str, count: int) -> Float[Tensor, "n d"]:
    """The first ``count`` sentences of a text, or all of fewer: each the mean of its last states, of length 1."""
    read = (reader.model(reader.tokens(each), output_hidden_states=True) for each in sentences(text)[:count])
    return torch.nn.functional.normalize(torch.stack([each.hidden_states[-1][0].mean(dim=0) for each in read]))
