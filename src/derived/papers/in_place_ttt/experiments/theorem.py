"""What one pair does to logits: the theorem, its assumption enforced; keys of random layers; edges of chunks."""

import itertools
from dataclasses import dataclass
from typing import ClassVar

import pandas as pd
import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity, normalize

from derived.lab.experiment import Experiment, rows
from derived.lab.rng import stream

from ..model.forms import depthwise_target, gated_mlp_keys, in_place_ttt
from ..model.theory import expected_logits, promise

TOKENS = ("v", "k", "other")


def normal(*shape: int, draw: torch.Generator, dtype: torch.dtype) -> Tensor:
    """Independent standard normal numbers, on the CPU."""
    return torch.randn(*shape, generator=draw, dtype=dtype)


@dataclass(frozen=True, kw_only=True)
class Logits(Experiment):
    """IPT-7 and 8.a: the logits that a written pair moves, unrelated keys independent and centred (assumption 2).

    Each replicate draws embeddings of unequal length, a text and keys of its own. The memory is run, on the keys and on
    the keys with the signs of all unrelated ones turned: the mean of the two is the expectation, exactly. Rows: target
    (next or reconstruction), replicate, token (v*, k* or another), delta (the first run), mean (of the two), expected
    (closed form), gain and reach (of the theorem), gap |mean - expected|, bound (rounding).
    """

    replicates: int = 400
    V: int = 24
    d: int = 48
    h: int = 96
    N: int = 64

    tiny: ClassVar = {"replicates": 12, "V": 5, "d": 6, "h": 7, "N": 9}
    deterministic: ClassVar = dict.fromkeys(("expected", "gain", "reach"), 1e-9)

    def conditions(self) -> list[dict]:
        return [{"target": target} for target in ("next", "reconstruction")]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        parts = [self.one(condition["target"], stream(seed, "logits", r), dtype) for r in range(self.replicates)]
        columns = {name: torch.stack([part[name] for part in parts]) for name in parts[0]}
        return rows({"replicate": range(self.replicates), "token": list(TOKENS)}, columns)

    def one(self, target: str, draw: torch.Generator, dtype: torch.dtype) -> dict[str, Tensor]:
        """One text: the pair stands first, the chunk that asks is of its own."""
        lengths = 0.8 + 0.4 * torch.rand(self.V, 1, generator=draw, dtype=dtype)
        e = lengths * normalize(normal(self.V, self.d, draw=draw, dtype=dtype), dim=-1)
        k, v, other = torch.randperm(self.V, generator=draw)[:3].tolist()
        text = torch.randint(self.V, (self.N + 2,), generator=draw)
        text[:2] = torch.tensor([k, v])
        written = e[text.roll(-1)] if target == "next" else e[text]
        keys = normal(self.N + 2, self.h, draw=draw, dtype=dtype) / self.h**0.5
        runs = []
        for sign in (1.0, -1.0):
            signed = torch.cat([keys[:1], sign * keys[1:], keys[:1]])  # the last token asks with the pair's key
            values = torch.cat([written, torch.zeros_like(written[:1])])
            read = in_place_ttt(signed, values, torch.zeros(self.d, self.h, dtype=dtype), 1.0, self.N + 2)
            runs.append(e @ read[-1])
        align, gram = keys[0].square().sum().item(), e @ e.mT
        norm2, epsilon = gram.diagonal().min().item(), gram.fill_diagonal_(0.0).abs().max().item()
        promised, at = promise(norm2, epsilon, align), torch.tensor([v, k, other])
        mean = sum(runs)[at] / 2
        expected = expected_logits(e, v if target == "next" else k, align)[at]
        size = (self.N + 2) * e.square().sum(dim=-1).max() * keys.square().sum(dim=-1).max()
        whole = {"gain": promised.gain, "reach": promised.reach, "bound": 8 * torch.finfo(dtype).eps * size}
        columns = {"delta": runs[0][at], "mean": mean, "expected": expected, "gap": (mean - expected).abs()}
        return columns | {name: torch.as_tensor(value, dtype=dtype).expand(3) for name, value in whole.items()}


@dataclass(frozen=True, kw_only=True)
class Keys(Experiment):
    """IPT-7.e and 7.g: cosines of unrelated keys of random layers, and the bias that they leave on all logits.

    The inputs of the other tokens are orthogonal to that of the query. Rows: mlp (gated or plain), N, replicate (a draw
    of weights and inputs), cosine (mean over the tokens), bias (size of the mean over the vocabulary of the change of a
    logit, over the query's |z|^2).
    """

    replicates: int = 40
    counts: tuple[int, ...] = (64, 256, 1024)
    V: int = 16
    d: int = 48
    h: int = 512

    tiny: ClassVar = {"replicates": 12, "counts": (16, 64), "h": 256, "d": 16}

    def conditions(self) -> list[dict]:
        return [{"mlp": mlp, "N": N} for mlp, N in itertools.product(("gated", "plain"), self.counts)]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        found = [self.one(**condition, draw=stream(seed, "keys", condition["N"], r)) for r in range(self.replicates)]
        cosine, bias = torch.stack(found).to(dtype).unbind(dim=-1)
        return rows({"replicate": range(self.replicates)}, {"cosine": cosine, "bias": bias})

    def one(self, mlp: str, N: int, draw: torch.Generator) -> Tensor:
        drawn = lambda *shape: normal(*shape, draw=draw, dtype=self.dtype)  # noqa: E731
        asks, others = normalize(drawn(1, self.d), dim=-1), drawn(N, self.d)
        others = self.d**0.5 * normalize(others - others @ asks.mT * asks, dim=-1)
        inputs = torch.cat([self.d**0.5 * asks, others])
        gate, up = drawn(self.h, self.d) / self.d**0.5, drawn(self.h, self.d) / self.d**0.5
        keys = gated_mlp_keys(inputs, gate, up) if mlp == "gated" else torch.relu(inputs @ gate.mT)
        e = normalize(drawn(self.V, self.d), dim=-1)
        written = e[torch.arange(N) % self.V]
        shift = e @ (written.mT @ (keys[1:] @ keys[0])) / keys[0].square().sum()
        return torch.stack([cosine_similarity(keys[1:], keys[:1], dim=-1).mean(), shift.mean().abs()])


PLACES = ("inside", "across the edge", "same chunk")


@dataclass(frozen=True, kw_only=True)
class Edges(Experiment):
    """IPT-7.h: the right logit when the pair stands inside a chunk, across an edge, or in the chunk that asks.

    One unit key and one unit embedding for each token of the vocabulary, next-token target with the taps inside the
    chunk. k* stands twice, v* once. Rows: place, replicate, delta (change of the right logit; 1 without noise).
    """

    replicates: int = 60
    V: int = 64
    d: int = 48
    h: int = 96
    chunk: int = 32
    chunks: int = 4

    tiny: ClassVar = {"replicates": 40, "V": 16, "h": 48, "chunk": 8}

    def conditions(self) -> list[dict]:
        return [{"place": place} for place in PLACES]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        delta = [self.one(condition["place"], stream(seed, "edges", r), dtype) for r in range(self.replicates)]
        return rows({"replicate": range(self.replicates)}, {"delta": torch.stack(delta)})

    def one(self, place: str, draw: torch.Generator, dtype: torch.dtype) -> Tensor:
        n = self.chunk * self.chunks
        e = normalize(normal(self.V, self.d, draw=draw, dtype=dtype), dim=-1)
        z = normalize(normal(self.V, self.h, draw=draw, dtype=dtype), dim=-1)
        text = torch.randint(2, self.V, (n,), generator=draw)  # tokens 0 and 1 are k* and v*
        at = {"inside": self.chunk // 2, "across the edge": self.chunk - 1, "same chunk": n - self.chunk // 2}[place]
        text[at], text[at + 1], text[-1] = 0, 1, 0
        kernel = torch.tensor([0.0, 0.0, 1.0], dtype=dtype).expand(self.d, 3)
        values = depthwise_target(e[text], kernel, chunk=self.chunk)
        read = in_place_ttt(z[text], values, torch.zeros(self.d, self.h, dtype=dtype), 1.0, self.chunk)
        return e[1] @ read[-1]
