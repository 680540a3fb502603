"""Trained models: their keys, what bf16 keeps of a write to their down-projections, what a write costs that no training
has prepared, and what one gains for which the new parts alone were trained.

The models are all-MiniLM-L6-v2, whose MLPs have no gate, and Gemma 3 270M, whose MLPs have; or others of
``lab.real.models``, or folders of one's own.
"""

import copy
import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from typing import ClassVar

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, normalize

from derived.lab import stats
from derived.lab.claims import RECORDED, at_least, at_most, computed, reported, statistic
from derived.lab.experiment import Experiment, rows
from derived.lab.measure import Measure, chosen, largest, lowest
from derived.lab.plot import BLUE, MUTED, RED, beside, mean_and_reach
from derived.lab.plot import largest as largest_tier
from derived.lab.real import models, texts
from derived.lab.rng import stream
from derived.lab.training import mean_cross_entropy

from .fits import fit
from .model.convert import convert_model, memories
from .model.forms import chunk_grid, depthwise_target, read_mask
from .model.module import InPlaceTTTMLP
from .model.theory import share_written

BF16 = 8  # significant bits
LAST = ("mlp.down_proj", "output.dense")  # what decoders and BERT call the last matrix of an MLP


@functools.lru_cache(maxsize=1)
def load(name: str) -> models.Pretrained:
    """A trained model, read once for the conditions that follow one another; nobody writes to it."""
    return models.load(name)


def twin(model: nn.Module) -> nn.Module:
    """The same model in modules of its own, which share its weights."""
    return copy.deepcopy(model, {id(weight): weight for weight in model.parameters()})


@dataclass(frozen=True, kw_only=True)
class TrainedKeys(Experiment):
    """IPT-7.g and 16.c: keys and down-projections of all layers, of a trained model and of two before training.

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
        loaded = load(self.model)
        weights = condition["weights"]
        read = loaded if weights == "trained" else models.fresh(loaded, stream(seed, weights))
        layers = down_projections(read.model)
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
        return std, *changed, share_written(std, rms, BF16), 1 - kept.numel() / weight.numel()


@dataclass(frozen=True, kw_only=True)
class GatedKeys(TrainedKeys):
    """IPT-7.h and 16.d: the same of a language model whose MLPs have gates. Rows as there."""

    model: str = "gemma"

    needs: ClassVar = ("gemma", "austen")

    def conditions(self) -> list[dict]:
        return super().conditions()[:2]  # one draw of fresh weights


@dataclass(frozen=True, kw_only=True)
class RawWrites(Experiment):
    """IPT-17.d and e: a language model with memories that no training has prepared. The loss of a last block of a text
    after the chunks before it were written; the value of a token is what the MLP sees at the next one.

    Arms: "start", the released start, which writes nothing; "raw"; "shuffled", the same with the values of each chunk
    in another order; "clipped", raw with each write clipped to the norm ``tau``. A replicate is a piece of a novel or a
    speech. Rows: texts, replicate, arm, step, loss and base (nats per token of the last block, with the memories and
    without), moved (largest change of a logit there), ratio (what the memory adds to an output over what the trained
    matrix gives, in norm, mean over the block, in the layer where it is largest).
    """

    model: str = "gemma"
    pieces: int = 16
    length: int = 512
    block: int = 128
    chunk: int = 128
    layers: tuple[int, ...] = (0, 6, 12)  # every sixth, as released
    steps: tuple[float, ...] = (1e-6, 1e-5, 1e-4, 0.3)  # the last as released
    tau: float = 1e-5

    needs: ClassVar = ("gemma", "austen", "stdlib")
    tiers: ClassVar = {
        "ci": {"pieces": 2, "length": 64, "block": 32, "chunk": 16, "steps": (1e-5, 0.3)},
        "cpu": {},
    }
    tiny: ClassVar = {"steps": (0.3,)}
    dtype: ClassVar = torch.float32

    def conditions(self) -> list[dict]:
        return [{"texts": "novels"}, {"texts": "speeches"}]

    def arms(self) -> list[tuple[str, float]]:
        """Each arm with its inner step."""
        written = [(arm, step) for arm in ("raw", "shuffled") for step in self.steps]
        return [("start", self.steps[-1]), *written, ("clipped", self.steps[-1])]

    @torch.no_grad()
    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        loaded, found = load(self.model), []
        written = convert_model(twin(loaded.model), self.layers, chunk=self.chunk, projection=False)
        layers = memories(written)
        for replicate, text in enumerate(self.read(condition["texts"], seed)):
            ids = loaded.tokens(text)[:, : self.length]
            last, before = ids[:, -self.block :], self.logits(loaded.model, ids)
            base = mean_cross_entropy(before, last).item()
            for arm, step in self.arms():
                for layer in layers:
                    self.prepare(layer, arm, step, stream(seed, "order", replicate))
                after = self.logits(written, ids)
                loss = mean_cross_entropy(after, last).item()
                facts = {"loss": loss, "base": base, "moved": (after - before).abs().max().item()}
                facts["ratio"] = max(layer.ratio[-self.block :].mean().item() for layer in layers)
                found.append({"replicate": replicate, "arm": arm, "step": step, **facts})
        return pd.DataFrame(found)

    def read(self, which: str, seed: int) -> list[str]:
        """Pieces of the novels in turn, or of as many speeches, from places drawn at random."""
        order = torch.randperm(200, generator=stream(seed, "speeches")).tolist()
        size, found = 8 * self.length, []
        whole = [*texts.austen().values()] if which == "novels" else self.long_speeches(size)
        for piece in range(self.pieces):
            text = whole[piece % len(whole) if which == "novels" else order[piece]]
            begin = int(torch.randint(len(text) - size, (1,), generator=stream(seed, which, piece)))
            found.append(text[begin : begin + size])
        return found

    def long_speeches(self, size: int) -> list[str]:
        """The first two hundred speeches of more letters than ``size``."""
        return [each.text for each in texts.speeches() if len(each.text) > size][:200]

    def logits(self, model: nn.Module, ids: Tensor) -> Tensor:
        """What the model says of each token of the last block, (1, block, V)."""
        return model(ids, use_cache=False, logits_to_keep=self.block + 1).logits[:, :-1]

    def prepare(self, layer: InPlaceTTTMLP, arm: str, step: float, draw: torch.Generator) -> None:
        """Let a memory write as the arm says."""
        layer.__class__, layer.lr, layer.tau = Reordered, step, self.tau if arm == "clipped" else None
        layer.ttt_kernel.zero_()
        if arm != "start":
            layer.ttt_kernel[:, layer.ttt_kernel.shape[1] // 2 + 1] = 1  # the next token alone
        order = [torch.arange(start, stop) for start, stop, _ in chunk_grid(self.length, self.chunk)]
        if arm == "shuffled":
            order = [each[torch.randperm(len(each), generator=draw)] for each in order]
        layer.order = torch.cat(order)


class Reordered(InPlaceTTTMLP):
    """A memory that takes its sources in an order of its own, and notes how much it adds to each output."""

    order: Tensor
    ratio: Tensor

    def _fast(self, keys: Tensor, source: Tensor, context) -> Tensor:
        fast = super()._fast(keys, source[:, self.order], context)
        self.ratio = (fast.norm(dim=-1) / self.down_proj(keys).norm(dim=-1))[0]
        return fast


@dataclass(frozen=True, kw_only=True)
class NewParts(Experiment):
    """IPT-17.f to h: memories in a language model of which the new parts alone, taps and projection, are trained, on
    nine tenths of five novels. All other weights are frozen, so what is below the first memory is read once.

    One training at each inner step of ``steps``; the loss at the end of pieces of the last tenths ("valid") chooses
    one, which is judged on the sixth novel and on speeches, by blocks of tokens after ``contexts``, of one piece. Arms
    say what its memory holds: "own", this text's chunks; "other", those of another piece; "shuffled", its own, the
    values of each chunk in another order. A replicate is a piece. Rows: texts, step, arm, replicate, context, loss and
    base (nats per token of the block, with the memory and without).
    """

    model: str = "gemma"
    layers: tuple[int, ...] = (0, 6, 12)  # every sixth, as released
    chunk: int = 128
    steps: tuple[float, ...] = (1e-5, 1.6e-5, 2.5e-5, 4e-5, 6.3e-5, 1e-4)
    rate: float = 1e-3
    updates: int = 400
    batch: int = 2
    trained: int = 400  # pieces to train on
    length: int = 4096  # their tokens, and those of the pieces to choose by
    read: int = 256  # tokens of a piece whose loss is trained
    pieces: int = 32
    contexts: tuple[int, ...] = (512, 1024, 2048, 4096, 8192)
    block: int = 128

    needs: ClassVar = ("gemma", "austen", "stdlib")
    tiers: ClassVar = {
        "ci": {
            **{"layers": (12,), "chunk": 16, "steps": (1e-4,), "updates": 2, "trained": 2, "length": 48, "read": 8},
            **{"pieces": 2, "contexts": (16, 32), "block": 16},
        },
        "cpu": {
            **{"layers": (12,), "updates": 96, "trained": 64, "length": 1152, "read": 96},
            **{"pieces": 24, "contexts": (512, 1024, 2048)},
        },
        "gpu": {},
    }
    dtype: ClassVar = torch.float32  # but for products of frozen weights, which are in bf16

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        loaded = load(self.model)
        below, above = (part.to(device) for part in split(loaded.model, min(self.layers)))
        contexts = {"valid": (self.length - self.block,), "novel": self.contexts, "speeches": self.contexts}
        ids = {which: self.read_pieces(which, loaded.tokens, seed).to(device) for which in ("train", *contexts)}
        states = {which: halfway(below, each) for which, each in ids.items()}
        base = {which: self.judge(above, states[which], ids[which], contexts[which]) for which in contexts}

        def judged(model: nn.Module, which: str, step: float, arm: str) -> pd.DataFrame:
            loss = self.judge(model, states[which], ids[which], contexts[which])
            facts = {"texts": which, "step": step, "arm": arm}
            index = {"replicate": range(self.pieces), "context": contexts[which]}
            return rows(facts | index, {"loss": loss, "base": base[which]})

        models = [self.fitted(above, step, states["train"], ids["train"], seed) for step in self.steps]
        found = [judged(model, "valid", step, "own") for model, step in zip(models, self.steps, strict=True)]
        best = min(range(len(models)), key=lambda i: found[i]["loss"].mean())
        for which, arm in product(("novel", "speeches"), ("own", "other", "shuffled")):
            for memory in memories(models[best]):
                memory.arm = arm
            found.append(judged(models[best], which, self.steps[best], arm))
        return pd.concat(found, ignore_index=True)

    def read_pieces(self, which: str, tokens, seed: int) -> Tensor:
        """Pieces to train on, to choose by or to judge by, (pieces, tokens), from its texts in turn."""
        num = self.trained if which == "train" else self.pieces
        length = self.length if which in ("train", "valid") else self.contexts[-1] + self.block
        size, novels = 8 * length, [*texts.austen().values()]
        whole = {
            "train": [text[: 9 * len(text) // 10] for text in novels[:5]],
            "valid": [text[9 * len(text) // 10 :] for text in novels[:5]],
            "novel": novels[5:],
            "speeches": [each.text for each in texts.speeches() if len(each.text) > size],
        }[which]
        order, found = torch.randperm(len(whole), generator=stream(seed, "order", which)).tolist(), []
        for piece in range(num):
            text, draw = whole[order[piece % len(whole)]], stream(seed, "pieces", which, piece)
            begin = int(torch.randint(len(text) - size, (1,), generator=draw))
            found.append(tokens(text[begin : begin + size])[0, :length])
        return torch.stack(found)

    def fitted(self, above: nn.Module, step: float, states: Tensor, ids: Tensor, seed: int) -> nn.Module:
        """The upper layers with memories, whose new parts were trained at an inner step."""
        layers = [layer - min(self.layers) for layer in self.layers]
        model, draw = convert_model(twin(above), layers, chunk=self.chunk, lr=step), stream(seed, "batches")
        order = [torch.arange(start, stop) for start, stop, _ in chunk_grid(self.contexts[-1] + self.block, self.chunk)]
        for memory in memories(model):
            memory.__class__, memory.arm = Rewritten, "own"
            memory.order = torch.cat([each[torch.randperm(len(each), generator=draw)] for each in order])

        def loss(update: int) -> Tensor:
            some = torch.randperm(len(ids), generator=draw)[: self.batch]
            places = torch.randint(self.chunk, self.length, (self.read,), generator=draw)
            return losses(model, states[some], ids[some], places).mean()

        fit(nn.ModuleList(memories(model)), loss, steps=self.updates, rate=self.rate)
        return model

    @torch.no_grad()
    def judge(self, model: nn.Module, states: Tensor, ids: Tensor, contexts: tuple[int, ...]) -> Tensor:
        """Nats per token of the blocks after so many tokens, (pieces, contexts)."""
        places = torch.cat([torch.arange(context, context + self.block) for context in contexts])
        each = [losses(model, *two, places) for two in zip(states.split(2), ids.split(2), strict=True)]
        return torch.cat(each).double().unflatten(-1, (len(contexts), self.block)).mean(dim=-1)


class Rewritten(InPlaceTTTMLP):
    """A memory that holds what its arm says was written: by this text, by the one before it in the batch, or by this
    one with the values of each chunk in another order. Its reads are linear attention to earlier chunks."""

    arm: str
    order: Tensor

    def _fast(self, keys: Tensor, source: Tensor, context) -> Tensor:
        values, writing, n = depthwise_target(source, *self._target(), chunk=self.chunk), keys, keys.shape[1]
        if self.arm == "other":
            values, writing = values.roll(1, dims=0), keys.roll(1, dims=0)
        if self.arm == "shuffled":
            values = values[:, self.order[:n]]
        return self.lr * (keys @ writing.mT * read_mask(n, self.chunk, device=keys.device)) @ values


def split(model: nn.Module, first: int) -> tuple[nn.Module, nn.Module]:
    """Copies of the layers below ``first``, as a decoder, and of the rest, as a language model that reads what these
    give (``inputs_embeds``); all weights frozen."""
    whole = copy.deepcopy(model).requires_grad_(False)
    whole.set_attn_implementation("sdpa")
    below, above = twin(whole).model, whole
    below.layers, below.norm = below.layers[:first], nn.Identity()
    above.model.layers = above.model.layers[first:]
    above.config.layer_types = above.config.layer_types[first:]
    above.config.num_hidden_layers -= first
    return below, above


@torch.no_grad()
def halfway(below: nn.Module, ids: Tensor) -> Tensor:
    """What the layers below make of texts (B, n), two at a time: (B, n, d)."""
    with torch.autocast(ids.device.type, torch.bfloat16):
        return torch.cat([below(input_ids=two, use_cache=False).last_hidden_state.float() for two in ids.split(2)])


def losses(above: nn.Module, states: Tensor, ids: Tensor, places: Tensor) -> Tensor:
    """Nats of the tokens at ``places``, (B, places), of texts (B, n) of which the layers below made ``states``."""
    places = places.to(ids.device)
    with torch.autocast(ids.device.type, torch.bfloat16):
        logits = above(inputs_embeds=states, use_cache=False, logits_to_keep=places - 1).logits
    each = cross_entropy(logits.float().flatten(0, 1), ids[:, places].flatten(), reduction="none")
    return each.view(len(ids), -1)


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


# Claims: IPT-7.g and h, 16.d, 17.d to h: trained models; criteria and expected verdicts were written before the run,
# unless a claim says otherwise.

TRAINED = "weights == 'trained'"
FACTS = {
    "made_of": "real weights",
    "where": "all-MiniLM-L6-v2, six layers without gates, on pieces of six novels; two draws of fresh weights",
}
GEMMA = {"made_of": "real weights", "where": "Gemma 3 270M, eighteen layers with gates, quantised, on pieces of novels"}


def mean_cosines(rows: pd.DataFrame) -> pd.DataFrame:
    """The mean over layers at each kind of weights, a row for each text."""
    return rows.groupby(["replicate", "weights"])["cosine"].mean().unstack()


def moved_by_training(way: int, *draws: str) -> Measure:
    """The mean cosine of keys over the layers of the trained model less that at each draw of fresh weights, text by
    text, where it is least; for ``way`` = -1 the other way round."""

    def measure(rows: pd.DataFrame):
        wide, level = mean_cosines(rows), 1 - (1 - stats.LEVEL) / len(draws)
        return lowest([stats.mean(way * (wide["trained"] - wide[fresh]), level) for fresh in draws])

    return measure


def moved_by_another_draw(rows: pd.DataFrame) -> stats.Estimate:
    """How far the second draw of fresh weights lies from the first, towards the side on which it lies."""
    wide = mean_cosines(rows)
    moved = wide["again"] - wide["fresh"]
    return stats.mean(moved * (1 if moved.mean() > 0 else -1))


def fresh_on_other_texts(rows: pd.DataFrame) -> stats.Estimate:
    """The mean cosine at fresh weights on every other text less that on the texts between."""
    each = mean_cosines(rows)["fresh"].to_numpy()
    pairs = each[: len(each) // 2 * 2].reshape(-1, 2)
    return stats.mean(pairs[:, 0] - pairs[:, 1])


def own_size(rows: pd.DataFrame) -> float:
    """The inner step at which what a memory adds is nearest in size to what its layer gives, on a scale of factors."""
    ratios = chosen(rows, "arm == 'raw'").groupby("step")["ratio"].mean()
    return np.log(ratios).abs().idxmin()


def cost(arm: str, step: Callable[[pd.DataFrame], float] = own_size) -> Measure:
    """Loss with memories at a step, which the rows give, less that without, text by text, where it is lowest."""

    def measure(rows: pd.DataFrame):
        level, found = 1 - (1 - stats.LEVEL) / 2, []
        for kind in ("novels", "speeches"):
            some = chosen(rows, f"texts == '{kind}' and arm == '{arm}' and step == {step(rows)}")
            found.append(stats.mean(some["loss"] - some["base"], level))
        return lowest(found)

    return measure


def by_arm(rows: pd.DataFrame, kind: str) -> pd.DataFrame:
    """The losses of the pieces of a kind, a row for each piece and context, a column for each arm and the base."""
    some = chosen(rows, f"texts == '{kind}'")
    index = ["replicate", "context"]
    return some.pivot(index=index, columns="arm", values="loss").assign(base=some.groupby(index)["base"].first())


def gain(arm: str, *over: str) -> Measure:
    """The loss of the others less that of an arm, a mean over contexts of each piece, where it is least."""

    def measure(rows: pd.DataFrame):
        level, found = 1 - (1 - stats.LEVEL) / (2 * len(over)), []
        for kind in ("novel", "speeches"):
            means = by_arm(rows, kind).groupby("replicate").mean()
            found += [stats.mean(means[other] - means[arm], level) for other in over]
        return lowest(found)

    return measure


def growth(arm: str, over: str) -> Measure:
    """That difference after the longest context less that after the shortest, piece by piece, where it is lowest."""

    def measure(rows: pd.DataFrame):
        level, found = 1 - (1 - stats.LEVEL) / 2, []
        for kind in ("novel", "speeches"):
            wide = by_arm(rows, kind)
            gained = (wide[over] - wide[arm]).unstack("context")
            found.append(stats.mean(gained[gained.columns.max()] - gained[gained.columns.min()], level))
        return lowest(found)

    return measure


PIECES = "piece by piece, the lower of two kinds of text"
TRAINED_PARTS = {
    "unit": "nats per token",
    "judged_at": RECORDED,
    "made_of": "real weights",
    "where": "after Figure 2 and Table 1, continual training; Gemma 3 270M, one memory in layer 12, one training of about a hundred steps at one rate, contexts of 512 to 2,048 tokens; three memories and 8,192 tokens were not run. Validation chose the smallest of six inner steps, so that the memory is not tuned",
}

CLAIMS = (
    statistic(
        "IPT-7.g",
        "Training lowers the mean cosine of the keys of different tokens of a text, by 0.05 or more, in a sentence model without gates.",
        TrainedKeys,
        moved_by_training(-1, "fresh", "again"),
        "mean over pairs of different tokens and over layers at fresh weights less that of the trained model, text by text, the lower of two draws",
        at_least(0.05),
        unit="cosine",
        judged_at=("cpu",),
        control=moved_by_another_draw,
        **FACTS,
    ),
    statistic(
        "IPT-7.h",
        "Training raises the mean cosine of the keys of different tokens of a text, by 0.05 or more, in a language model with gates.",
        GatedKeys,
        moved_by_training(1, "fresh"),
        "mean over pairs of different tokens and over layers less that at fresh weights, text by text",
        at_least(0.05),
        unit="cosine",
        judged_at=("cpu",),
        control=fresh_on_other_texts,
        made_of="real weights",
        where=GEMMA["where"]
        + "; one draw of fresh weights, and a mean over layers, in some of which training lowers it",
    ),
    computed(
        "IPT-16.d",
        r"In no down-projection of a trained language model with gates, of $640\times2048$ weights a layer, does a random write of Frobenius norm $10^{-5}$ change in bf16 more than one in a thousand of the weights that are not exactly zero; those that are zero, it changes all.",
        GatedKeys,
        largest("changed", TRAINED + " and replicate == 0"),  # one write a layer, the same for every text
        "largest share over the layers, of the weights that are not exactly zero",
        at_most(1e-3),
        unit="share of the weights that are not zero",
        judged_at=("cpu",),
        control=largest("changed_by_more", TRAINED + " and replicate == 0"),
        **GEMMA,
    ),
    computed(
        "IPT-17.d",
        "Memories put into a trained language model at the released start change no logit.",
        RawWrites,
        largest("moved", "arm == 'start'"),
        "largest change of a logit over texts, in float32",
        at_most(1e-6),
        unit="logits",
        source="paper",
        judged_at=("cpu",),
        control=largest("moved", "arm == 'clipped'"),
        made_of="real weights",
        where="Section 3.4; Gemma 3 270M, memories in three layers, on novels and speeches",
        scale={},
    ),
    statistic(
        "IPT-17.e",
        "A memory that no training has prepared harms a trained language model: written into three layers at an inner step at which it adds about as much as a layer gives, it costs 0.1 nats or more a token, on novels and on speeches.",
        RawWrites,
        cost("raw"),
        "loss with memories at the inner step, of those tried, at which they add nearest to what a layer gives, less that "
        "without, text by text, the lower of two kinds of text",
        at_least(0.1),
        unit="nats per token",
        judged_at=("cpu",),
        control=cost("raw", lambda rows: rows["step"].min()),
        made_of="real weights",
        where="after notes on the code's issues, where a first written state raised a loss from 1.86 to 10.81; Gemma 3 270M; "
        "values are what the MLP sees at the next token, without a projection; four inner steps, up to the released 0.3",
    ),
    statistic(
        "IPT-17.f",
        "A memory in a language model, its new parts alone trained on five novels, lowers the loss on a sixth novel and on speeches, and lowers it more than the same memory does when another text has written it.",
        NewParts,
        gain("own", "base", "other"),
        "loss without the memory, and with that of another text, less the loss with it, mean over three blocks of a piece; "
        + PIECES,
        at_least(0),
        control=gain("shuffled", "base", "other"),
        matters=0.01,
        **TRAINED_PARTS,
    ),
    reported(
        "IPT-17.g",
        "A memory in a language model, its new parts alone trained on five novels, changes the loss on a sixth novel and on speeches by this much, part of which a memory that another text has written would change as well.",
        NewParts,
        gain("own", "base"),
        **TRAINED_PARTS,
    ),
    statistic(
        "IPT-17.h",
        "The longer the context, the more such a memory gains by having read this text rather than another.",
        NewParts,
        growth("own", "other"),
        "loss with the memory of another text less that with its own, after the longest context less after the shortest; "
        + PIECES,
        at_least(0),
        control=growth("shuffled", "other"),
        matters=0.01,
        **TRAINED_PARTS,
    ),
)


# Figures: Keys of a trained model: rows in, a figure with its alt text as label out.
#
# mark                   meaning
# filled, open marker    recorded, live; bars are 99.9 % intervals over texts

LINES = (("fresh", "cosine", "before training", MUTED), ("trained", "cosine", "trained", RED))
LINES += (("trained", "centred", "trained, mean subtracted", BLUE),)


def keys(rows: pd.DataFrame) -> Figure:
    """The mean cosine of keys of different tokens by layer; rows of ``TrainedKeys``."""
    rows = largest_tier(rows)
    figure, ax = plt.subplots(figsize=(6.2, 3.1))
    words, layers = [], sorted(rows["layer"].unique())
    for weights, column, name, color in LINES:
        part = rows[rows["weights"] == weights]
        found = [mean_and_reach(part[part["layer"] == layer][column]) for layer in layers]
        value, reach = (np.array(each) for each in zip(*found, strict=True))
        face = color if rows["recorded"].iloc[0] else "none"
        ax.errorbar(layers, value, reach, fmt="-o", color=color, markerfacecolor=face, markersize=4, capsize=3)
        beside(ax, layers[-1], value[-1], name, color, (6, 0), fontsize=9)
        words.append(f"{name} {value.min():.2f} to {value.max():.2f}")
    ax.set(xlabel="layer", ylabel="mean cosine of unlike tokens' keys", xlim=(-0.2, 1.55 * layers[-1]))
    ax.set_xticks(layers)
    figure.set_label(f"Mean cosine of the keys of different tokens of a text, by layer: {'; '.join(words)}.")
    return figure
