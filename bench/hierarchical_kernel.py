"""Races of the hierarchical kernel: the layer against its materialised form and SDPA, ListOps against plain recursion.

    python bench/hierarchical_kernel.py [--quick] [--threads N] [--output FILE]

1. One causal layer, three levels, width 64, T = 512 to 4096: fused (one attention of width L d_k on wide features,
   which a CPU does tile by tile) and coarse tables (tile by tile) against the materialised layer (every table of
   T x T), against torch's fused attention without levels, the least that any layer with values of this width costs,
   and against FlexAttention with a score function that looks up the coarse tables, compiled (which on a CPU needs a C++
   compiler; without one this peer is left out, and said so). Its peak memory includes the compilation. Targets at
   T = 2048: fused at most 0.6 of the materialised time and a quarter of its memory.
2. The ListOps generator, generation by generation, against the plain recursive one. Target: 10 times faster. Both draw
   one law: chi-square on operators, lengths and values.
"""

import argparse
import dataclasses
import functools
import shutil
from collections.abc import Callable
from pathlib import Path

import harness
import numpy as np
import torch
from scipy import stats
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from derived.lab.rng import stream
from derived.papers.hierarchical_kernel.data import listops
from derived.papers.hierarchical_kernel.data.listops import ListOps
from derived.papers.hierarchical_kernel.experiments.clock import AttentionInputs
from derived.papers.hierarchical_kernel.model.attention import score_tables

ROOT = Path(__file__).resolve().parents[1]
RATIO = 1 / 0.6  # fused at most 0.6 of the materialised time
MEMORY = 4.0
LEAST_P = 1e-4  # of a chi-square test of equal laws


def build_layer(T: int) -> AttentionInputs:
    return AttentionInputs(max(T, 128))  # a block of FlexAttention's mask


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


def another_layer(inputs: AttentionInputs, ours: torch.Tensor, peer: torch.Tensor) -> float:
    """Without levels the result is another one; the layer itself is compared with the materialised one."""
    return same_layer(inputs, ours, materialised(inputs))


def build_law(num: int, every: int) -> tuple[ListOps, int, int]:
    return ListOps(distinct=False), num, min(every, num)


def forest(inputs: tuple) -> np.ndarray:
    """all trees at once, one generation after another"""
    law, num, _ = inputs
    drawn = law.sample(num, stream(0, "bench forest"))
    return counts(drawn.tokens.numpy(), drawn.lengths.numpy(), drawn.labels.numpy())


def recursive(inputs: tuple) -> np.ndarray:
    """plain recursion and rejection"""
    law, num, every = inputs
    draw = stream(0, "bench recursive")
    trees = [law.sample_tree(draw) for _ in range(num // every)]
    codes = [np.array(listops.tokens(tree)) for tree in trees]
    values = [listops.evaluate(tree) for tree in trees]
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
    if min(chances) < LEAST_P:
        raise SystemExit(f"the laws differ: p = {chances} for operators, lengths, values")
    return min(chances)


def within(gap: float, bound: float) -> float:
    if not gap <= bound:
        raise SystemExit(f"the results differ by {gap:.3g}, more than {bound:.3g}")
    return gap


def layer_races(quick: bool, rounds: int, threads: int) -> list[harness.Row]:
    rows = []
    peers = [(materialised, same_layer, RATIO), (without_levels, another_layer, 1.0)]
    if shutil.which("c++") or shutil.which("g++"):
        peers.append((flexible, same_layer, 1.0))
    else:
        print("no C++ compiler: FlexAttention is left out")
    for T in (128, 256) if quick else (512, 1024, 2048, 4096):
        for ours in (fused, tables):
            for peer, gap, target in peers:
                facts = {"gap": gap, "target": target, "rounds": rounds, "threads": threads}
                name = f"{ours.__doc__.partition(',')[0]}, T = {T}, 3 levels, width 64"  # no column says which is ours
                row = harness.race(name, build_layer, {"T": T}, ours, peer, **facts)
                saved = row.peer_peak_mb >= MEMORY * row.ours_peak_mb
                asked = ours is fused and peer is materialised and T == 2048  # where the target names memory as well
                rows.append(dataclasses.replace(row, met=row.met and (saved or not asked)))
    return rows


def generator_races(quick: bool, rounds: int, threads: int) -> list[harness.Row]:
    sizes = {"num": 200, "every": 2} if quick else {"num": 10_000, "every": 20}
    facts = {"gap": same_law, "target": 10.0, "rounds": rounds, "threads": threads}
    name = f"ListOps, {sizes['num']} expressions, 100 < T < 512"
    row = harness.race(name, build_law, sizes, forest, recursive, **facts)
    every = sizes["every"]
    scaled = {field: every * getattr(row, field) for field in ("peer_ms", "ratio", "ratio_low", "ratio_high")}
    peer = f"{row.peer} (1/{every} of the number, time x {every})"
    return [dataclasses.replace(row, peer=peer, met=scaled["ratio"] >= row.target, **scaled)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes and few rounds, to see that it runs")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--output", type=Path, help="where the JSON goes")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    rounds = 3 if arguments.quick else 11
    default = "_build/bench/hierarchical_kernel.json" if arguments.quick else "results/hierarchical_kernel/bench.json"
    rows = []
    for races in (layer_races, generator_races):
        for row in races(arguments.quick, rounds, arguments.threads):
            rows.append(row)
            print(
                f"{row.name:42s} {row.ours[:12]:12s} {row.ours_ms:9.1f} ms  {row.peer[:20]:20s} {row.peer_ms:9.1f} ms  "
                f"ratio {row.ratio:7.2f} (target {row.target:.3g}, {'met' if row.met else 'missed'})  "
                f"peak {row.ours_peak_mb:.0f} / {row.peer_peak_mb:.0f} MB  gap {row.largest_gap:.1e}",
                flush=True,
            )
    harness.write(arguments.output or ROOT / default, rows, threads=arguments.threads, dtype="float32 (layer)")


if __name__ == "__main__":
    main()
