"""Keys of trained models: the mean cosine of the keys of different tokens, before and after training.

The models are all-MiniLM-L6-v2, whose MLPs have no gate, and Gemma 3 270M, whose MLPs have.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure
from torch import Tensor, nn
from torch.nn.functional import normalize

from derived.lab import stats
from derived.lab.claims import at_least, statistic
from derived.lab.experiment import Experiment, rows
from derived.lab.plot import MUTED, RED, beside, largest, mean_and_reach, panel_label
from derived.lab.real import models, texts
from derived.lab.rng import stream

from .model.theory import share_written

LAST = ("mlp.down_proj", "output.dense")  # what decoders and BERT call the last matrix of an MLP


@dataclass(frozen=True, kw_only=True)
class TrainedKeys(Experiment):
    """Keys and down-projections of all layers, of a trained model and of two before training.

    A replicate is a piece of a novel. Rows: weights (trained; fresh and again, two draws of fresh ones), layer,
    replicate, cosine (mean over pairs of different tokens of the piece, its first token left out), centred (the same,
    the piece's mean key subtracted), std (of the layer's weights that are not zero), changed and changed_by_more (share
    of these that a random write of Frobenius norm ``tau``, and of ten thousand times as much, changes in bf16), theory
    (the closed form of changed), zero (share of the layer's weights that are exactly 0; any write changes them).
    """

    model: str = "minilm"
    pieces: int = 24
    length: int = 128
    tau: float = 1e-5

    needs: ClassVar = ("minilm", "austen")
    tiers: ClassVar = {"ci": {"pieces": 8, "length": 32}, "cpu": {}}
    tiny: ClassVar = {"pieces": 4}
    dtype: ClassVar = torch.float32

    def conditions(self) -> list[dict]:
        return [{"weights": weights} for weights in ("trained", "fresh", "again")]

    @torch.no_grad()
    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        loaded = models.load(self.model)
        weights = condition["weights"]
        read = loaded if weights == "trained" else models.fresh(loaded, stream(seed, weights))
        layers = [each for name, each in read.model.named_modules() if name.endswith(LAST) and "attention" not in name]
        pieces = self.read(loaded.tokens, seed)
        with keys_of(layers) as keys:
            for piece in pieces:
                read.model(piece)
        shared = [[cosines(key[0, 1:], ids[0, 1:]) for key in each] for each, ids in zip(keys, pieces, strict=True)]
        cosine, centred = torch.tensor(shared).double().unbind(dim=-1)
        written = [self.written(each.weight, stream(seed, "write", i)) for i, each in enumerate(layers)]
        names = ("std", "changed", "changed_by_more", "theory", "zero")
        columns = dict(zip(names, torch.tensor(written).double().mT, strict=True))
        index = {"replicate": range(self.pieces), "layer": range(len(layers))}
        return rows(index, {"cosine": cosine, "centred": centred, **columns})

    def read(self, tokens, seed: int) -> list[Tensor]:
        """The pieces, (1, 1 + length) each, from the novels in turn."""
        novels, found = [*texts.austen().values()], []
        for piece in range(self.pieces):
            novel, draw = novels[piece % len(novels)], stream(seed, "pieces", piece)
            begin = int(torch.randint(len(novel) - 8 * self.length, (1,), generator=draw))
            found.append(tokens(novel[begin : begin + 8 * self.length])[:, : 1 + self.length])
        return found

    def written(self, weight: Tensor, draw: torch.Generator) -> tuple[float, ...]:
        """Size, shares changed by a write and by a large one, what theory has for the first, and the share of zeros."""
        kept = weight[weight != 0].bfloat16()
        std, rms = kept.double().square().mean().sqrt().item(), self.tau / weight.numel() ** 0.5
        write = torch.randn(kept.shape, generator=draw, dtype=torch.float64)
        after = ((kept.double() + size * write).bfloat16() for size in (rms, 1e4 * rms))
        changed = ((one != kept).double().mean().item() for one in after)
        return std, *changed, share_written(std, rms), 1 - kept.numel() / weight.numel()


@dataclass(frozen=True, kw_only=True)
class GatedKeys(TrainedKeys):
    """IPT-7.h: the same of a language model whose MLPs have gates, at one draw of fresh weights. Rows as there."""

    model: str = "gemma"

    needs: ClassVar = ("gemma", "austen")

    def conditions(self) -> list[dict]:
        return super().conditions()[:2]


@contextmanager
def keys_of(layers: list[nn.Module]) -> Iterator[list[list[Tensor]]]:
    """What these matrices multiply in each call of their model, a list for each call."""
    seen: list[list[Tensor]] = []

    def note(layer: nn.Module, inputs: tuple[Tensor]) -> None:
        if layer is layers[0]:
            seen.append([])
        seen[-1].append(inputs[0])

    hooks = [layer.register_forward_pre_hook(note) for layer in layers]
    yield seen
    for hook in hooks:
        hook.remove()


def cosines(keys: Tensor, ids: Tensor) -> tuple[float, float]:
    """The mean cosine of the keys (n, h) of two different tokens of a text (n,), as they are and less their mean.

    >>> cosines(torch.tensor([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0]]), torch.tensor([5, 5, 7]))[0]
    0.0
    """
    unlike = ids.unsqueeze(-1) != ids
    units = (normalize(each.double(), dim=-1) for each in (keys, keys - keys.mean(dim=0)))
    as_they_are, centred = (((unit @ unit.mT)[unlike].sum() / unlike.sum()).item() for unit in units)
    return as_they_are, centred


def raised(rows: pd.DataFrame) -> stats.Estimate:
    """The mean cosine of keys over the layers of the trained model less that at fresh weights, text by text."""
    wide = rows.groupby(["replicate", "weights"])["cosine"].mean().unstack()
    return stats.mean(wide["trained"] - wide["fresh"])


def fresh_on_other_texts(rows: pd.DataFrame) -> stats.Estimate:
    """The mean cosine at fresh weights on every other text less that on the texts between."""
    each = rows[rows["weights"] == "fresh"].groupby("replicate")["cosine"].mean().to_numpy()
    pairs = each[: len(each) // 2 * 2].reshape(-1, 2)
    return stats.mean(pairs[:, 0] - pairs[:, 1])


CLAIMS = (
    statistic(
        "IPT-7.h",
        "Training raises the mean cosine of the keys of different tokens of a text, by 0.05 or more, in a language "
        "model with gates.",
        GatedKeys,
        raised,
        "mean over pairs of different tokens and over layers less that at fresh weights, text by text",
        at_least(0.05),
        unit="cosine",
        judged_at=("cpu",),
        control=fresh_on_other_texts,
        made_of="real weights",
        where="Gemma 3 270M, eighteen layers with gates, quantised, on pieces of novels; one draw of fresh weights, "
        "and a mean over layers, in some of which training lowers it",
    ),
)


def keys(sentences: pd.DataFrame, language: pd.DataFrame) -> Figure:
    """The mean cosine of keys of different tokens by layer; rows of ``TrainedKeys`` and of ``GatedKeys``."""
    figure, axes = plt.subplots(1, 2, figsize=(7.4, 3.0), sharey=True)
    words = []
    for ax, (name, found) in zip(axes, (("sentence model", sentences), ("language model", language)), strict=True):
        read = largest(found)
        for weights, color in (("fresh", MUTED), ("trained", RED)):
            layers = read[read["weights"] == weights].groupby("layer")["cosine"]
            value, reach = (np.array(each) for each in zip(*layers.apply(mean_and_reach), strict=True))
            face = color if read["recorded"].iloc[0] else "none"
            ax.errorbar([*layers.groups], value, reach, fmt="-o", color=color, markerfacecolor=face, markersize=4)
            beside(ax, max(layers.groups), value[-1], weights, color, (6, 0), fontsize=9)
            words.append(f"{name}, {weights} {value.mean():.2f}")
        ax.set(xlabel="layer", xlim=(-0.5, 1.3 * max(layers.groups)))
        panel_label(ax, name)
    axes[0].set_ylabel("mean cosine of two keys")
    figure.set_label(f"Mean cosine of the keys of different tokens, by layer; means: {'; '.join(words)}.")
    return figure
