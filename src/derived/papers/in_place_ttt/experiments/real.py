"""A trained model: what its keys have in common, and what bf16 keeps of a write to its down-projections.

The model is all-MiniLM-L6-v2, whose MLPs have no gate, or another of ``lab.real.models``, or a folder of one's own.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar

import pandas as pd
import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from derived.lab.experiment import Experiment, rows
from derived.lab.real import models, texts
from derived.lab.rng import stream

from ..model.theory import share_written

BF16 = 8  # significant bits
LAST = ("mlp.down_proj", "output.dense")  # what decoders and BERT call the last matrix of an MLP


@dataclass(frozen=True, kw_only=True)
class TrainedKeys(Experiment):
    """IPT-7.g and 16.c: keys and down-projections of all layers, of a trained model and of one before training.

    A replicate is a piece of a novel. Rows: weights (trained, fresh), layer, replicate, cosine (mean over pairs of
    different tokens of the piece, its first token left out), centred (the same, the piece's mean key subtracted), std
    (of the layer's weights that are not zero), changed and changed_by_more (share of these that a random write of
    Frobenius norm ``tau``, and of ten thousand times as much, changes in bf16), theory (the closed form of changed).
    """

    model: str = "minilm"
    pieces: int = 24
    length: int = 128
    tau: float = 1e-5

    needs: ClassVar = ("minilm", "austen")
    tiers: ClassVar = {"ci": {"pieces": 8, "length": 32}, "cpu": {}}
    tiny: ClassVar = {"pieces": 2}
    dtype: ClassVar = torch.float32

    def conditions(self) -> list[dict]:
        return [{"weights": "trained"}, {"weights": "fresh"}]

    @torch.no_grad()
    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        loaded = models.load(self.model)
        read = loaded if condition["weights"] == "trained" else models.fresh(loaded, stream(seed, "fresh"))
        layers = down_projections(read.model)
        pieces = self.read(loaded.tokens, seed)
        with keys_of(layers) as keys:
            for piece in pieces:
                read.model(piece)
        shared = [[cosines(key[0, 1:], ids[0, 1:]) for key in each] for each, ids in zip(keys, pieces, strict=True)]
        cosine, centred = torch.tensor(shared).double().unbind(dim=-1)
        written = [self.written(each.weight, stream(seed, "write", i)) for i, each in enumerate(layers)]
        names = ("std", "changed", "changed_by_more", "theory")
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

    def written(self, weight: Tensor, draw: torch.Generator) -> tuple[float, float, float, float]:
        """Size, shares changed by a write and by a large one, and what theory has for the first."""
        kept = weight[weight != 0].bfloat16()
        std, rms = kept.double().square().mean().sqrt().item(), self.tau / weight.numel() ** 0.5
        write = torch.randn(kept.shape, generator=draw, dtype=torch.float64)
        after = ((kept.double() + size * write).bfloat16() for size in (rms, 1e4 * rms))
        return std, *((one != kept).double().mean().item() for one in after), share_written(std, rms, BF16)


def down_projections(model: nn.Module) -> list[nn.Module]:
    """The last matrix of each MLP, from below."""
    return [each for name, each in model.named_modules() if name.endswith(LAST) and "attention" not in name]


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
