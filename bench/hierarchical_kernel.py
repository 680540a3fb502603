"""Races of the hierarchical kernel: ``python bench/hierarchical_kernel.py [--quick] [--threads 1] [--output FILE]``.

1. One causal layer, three levels, width 64, T = 4096: coarse tables, tile by tile, against torch's fused
   attention on wide features, against FlexAttention with a score function that looks up the coarse tables, compiled
   (which on a CPU needs a C++ compiler; without one it is left out, and said so; its peak memory includes the
   compilation), and for scale against wide features, tile by tile, and the materialised layer (every table of T x T):
   of its time at most 0.6 is asked for, of its memory a quarter. All compute the same layer.
2. What levels cost: coarse tables with the weights (1, 0, 0), which change the result and not the work, against
   torch's fused attention without levels, which then computes the same. This is reported, and no race.
3. The ListOps generator, generation by generation, against a recursion that gives a tree up as soon as it is too long,
   and against the published generator. Target: 10 times faster. All draw one law: chi-square on operators, lengths and
   values. The published generator is run unmodified where $AUTHORS/long-range-arena is a clone of
   github.com/google-research/long-range-arena (commit cd31e5c), and left out elsewhere.
"""

import functools
import importlib.util
import random
import shutil
import sys
import types
from collections.abc import Callable, Iterator
from unittest.mock import MagicMock

import harness
import numpy as np
import torch
from harness import Peer, Race, require, within
from scipy import stats
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from derived.lab.rng import stream
from derived.papers.hierarchical_kernel.clock import AttentionInputs
from derived.papers.hierarchical_kernel.data import listops
from derived.papers.hierarchical_kernel.data.listops import ListOps
from derived.papers.hierarchical_kernel.model.attention import attend_padded, concatenated_features, score_tables

RATIO = 1 / 0.6  # fused at most 0.6 of the materialised time
MEMORY = 4.0
LEAST_P = 1e-4  # of a chi-square test of equal laws


def build_layer(T: int) -> AttentionInputs:
    return AttentionInputs(max(T, 128))  # a block of FlexAttention's mask


def build_one_level(T: int) -> AttentionInputs:
    """Three levels, of which the coarse ones have the weight 0: the same work for the result of one level."""
    inputs = build_layer(T)
    inputs.alpha = torch.tensor([1.0, 0.0, 0.0])
    return inputs


@torch.no_grad()
def fused(inputs: AttentionInputs) -> torch.Tensor:
    """wide features, tile by tile on a CPU"""
    return inputs.attend("fused")


@torch.no_grad()
def tables(inputs: AttentionInputs) -> torch.Tensor:
    """coarse tables, tile by tile"""
    return inputs.attend("tables")


@torch.no_grad()
def materialised(inputs: AttentionInputs) -> torch.Tensor:
    """materialised layer"""
    return inputs.attend("reference")


@torch.no_grad()
def without_levels(inputs: AttentionInputs) -> torch.Tensor:
    """SDPA without levels"""
    return inputs.attend("sdpa")


@torch.no_grad()
def fused_by_torch(inputs: AttentionInputs) -> torch.Tensor:
    """SDPA on wide features"""
    queries, keys = concatenated_features(inputs.q, inputs.k, inputs.alpha)
    return attend_padded(queries, keys, inputs.v, scale=1.0)


@functools.cache
def compiled() -> Callable:
    return torch.compile(flex_attention, dynamic=False)  # the C++ of another length, made dynamic, does not compile


@functools.cache
def causal_blocks(T: int):
    return create_block_mask(lambda b, h, i, j: i >= j, None, None, T, T, device="cpu")


@torch.no_grad()
def flexible(inputs: AttentionInputs) -> torch.Tensor:
    """FlexAttention on coarse tables"""
    weights, coarse = inputs.alpha.tolist(), [table[0, 0] for table in score_tables(inputs.q[1:], inputs.k[1:])]

    def mixed(score, batch, head, i, j):
        terms = (weights[l] * table[i >> l, j >> l] for l, table in enumerate(coarse, start=1))
        return weights[0] * score + sum(terms)

    q, k, v = inputs.q[0], inputs.k[0], inputs.v
    return compiled()(q, k, v, score_mod=mixed, block_mask=causal_blocks(v.shape[-2]))


def same_layer(inputs: AttentionInputs, ours: torch.Tensor, peer: torch.Tensor) -> float:
    """Scores of at most 3 x 64 products in float32: rounding of sqrt(192) 64 eps, passed on by a Lipschitz softmax."""
    return within(float((ours - peer).abs().max()), 192**0.5 * 64 * torch.finfo(torch.float32).eps)


def build_law(num: int, every: int) -> tuple[ListOps, int, int]:
    return ListOps(distinct=False), num, min(every, num)


def forest(inputs: tuple) -> np.ndarray:
    """all trees at once, one generation after another"""
    law, num, _ = inputs
    drawn = law.sample(num, stream(0, "bench forest"))
    return counts(drawn.tokens.numpy(), drawn.lengths.numpy(), drawn.labels.numpy())


class TooLong(Exception):
    """The tree cannot be kept any more."""


def hasty_tree(law: ListOps, draw: Callable[[], float]) -> tuple[list[int], int]:
    """Codes and value of one tree of the law, whatever its length; TooLong as soon as it has max_length symbols."""
    codes, length = [], 1

    def node(depth: int) -> int:
        nonlocal length
        if depth >= law.max_depth or draw() >= law.branch:
            digit = int(10 * draw())
            codes.append(listops.DIGIT + digit)
            return digit
        num, operator = 2 + int((law.max_args - 1) * draw()), int(4 * draw())
        length += num + 1
        if length >= law.max_length:
            raise TooLong
        codes.append(listops.OPEN + operator)
        values = [node(depth + 1) for _ in range(num)]
        codes.append(listops.CLOSE)
        return listops.apply(listops.OPERATORS[operator], values)

    value = node(1)
    return codes, value


def recursive(inputs: tuple) -> np.ndarray:
    """recursion that gives up a tree once it is too long"""
    law, num, every = inputs
    draw, kept = random.Random(0).random, []
    while len(kept) < num // every:
        try:
            codes, value = hasty_tree(law, draw)
        except TooLong:
            continue
        if len(codes) > law.min_length:
            kept.append((np.array(codes), value))
    codes = [each for each, _ in kept]
    return counts(np.concatenate(codes), np.array([len(each) for each in codes]), np.array([v for _, v in kept]))


@functools.cache
def published_module() -> types.ModuleType:
    """The published generator; what it needs to write files is not imported."""
    path = harness.authors_code("long-range-arena", "lra_benchmarks", "data", "listops.py")
    for name in ("absl", "tensorflow", "tensorflow.compat", "tensorflow.compat.v1"):
        sys.modules.setdefault(name, MagicMock())
    spec = importlib.util.spec_from_file_location("published_listops", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def published(inputs: tuple) -> np.ndarray:
    """the published generator"""
    law, num, every = inputs
    theirs, kept = published_module(), set()
    random.seed(0)
    while len(kept) < num // every:
        tree, length = theirs.generate_tree(1, law.max_depth, law.max_args)
        if law.min_length < length < law.max_length:
            kept.add(tree)
    texts, values = zip(*((theirs.to_string(tree), theirs.to_value(tree)) for tree in kept), strict=True)
    codes = [np.array([listops.CODES[word] for word in text.split() if word not in "()"]) for text in texts]
    return counts(np.concatenate(codes), np.array([len(each) for each in codes]), np.array(values))


def counts(codes: np.ndarray, lengths: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Operators (4), lengths by tens (52) and values (10), counted."""
    operators = np.bincount(codes.ravel(), minlength=listops.VOCABULARY)[11:15]
    return np.concatenate([operators, np.bincount(lengths // 10, minlength=52), np.bincount(values, minlength=10)])


def same_law(inputs: tuple, ours: np.ndarray, peer: np.ndarray) -> float:
    """The least p-value of three chi-square tests; it stands in the table's column of gaps."""
    chances = []
    for part in (slice(0, 4), slice(4, 56), slice(56, 66)):
        table = np.stack([ours[part], peer[part]])
        chances.append(float(stats.chi2_contingency(table[:, table.sum(axis=0) > 0]).pvalue))
    require(min(chances) >= LEAST_P, f"the laws differ: p = {chances} for operators, lengths, values")
    return min(chances)


def layer_races(quick: bool) -> Iterator[Race]:
    peers = (
        Peer(run=fused_by_torch, gap=same_layer),
        Peer(run=fused, gap=same_layer, role="plain"),
        Peer(run=materialised, gap=same_layer, role="plain", target=RATIO, memory=MEMORY),
    )
    if shutil.which("c++") or shutil.which("g++"):
        peers = (*peers, Peer(run=flexible, gap=same_layer))
    else:
        print("no C++ compiler: FlexAttention is left out")
    three = "3 levels, width 64"
    T = 256 if quick else 4096
    yield Race(name=f"coarse tables, T = {T}, {three}", build=build_layer, sizes={"T": T}, ours=tables, peers=peers)
    alone = (Peer(run=without_levels, gap=same_layer, why="It has no levels: this is what they cost."),)
    for T in (256,) if quick else (2048, 4096):
        name = f"coarse tables with weights (1, 0, 0), T = {T}, {three}"
        yield Race(name=name, build=build_one_level, sizes={"T": T}, ours=tables, peers=alone)


def generator_races(quick: bool) -> Iterator[Race]:
    sizes = {"num": 400, "every": 2} if quick else {"num": 10_000, "every": 20}
    peers = (Peer(run=recursive, gap=same_law, every=sizes["every"], target=10.0),)
    if harness.authors_code("long-range-arena"):
        peers += (Peer(run=published, gap=same_law, role="author", every=sizes["every"], target=10.0),)
    name = f"ListOps, {sizes['num']} expressions, 100 < T < 512"
    yield Race(name=name, build=build_law, sizes=sizes, ours=forest, peers=peers)


def races(quick: bool) -> Iterator[Race]:
    yield from layer_races(quick)
    yield from generator_races(quick)


if __name__ == "__main__":
    timed = harness.contests(races)
    harness.command("hierarchical_kernel", timed, rounds=31, quick_rounds=6, dtype="float32 (layer)")
