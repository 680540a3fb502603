"""How the kernel of the noise changes with the tokens: with their Gram matrix, and from one cloud to another."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import pandas as pd
import torch

from derived.lab.experiment import Experiment, rows
from derived.lab.rng import stream

from ..model.chain import overlaps
from ..model.heads import matched_law, normalise, simplex_gram
from ..model.overlaps import barycenter_correlation, kernel_distance
from .chains import off_diagonal


@dataclass(frozen=True, kw_only=True)
class Lipschitz(Experiment):
    """HT-8: how fast s_ij changes with the Gram matrix, |s_ij(R) - s_ij(R')| over max |R - R'|, for growing n.

    Both sides take the same heads, so the difference is sharp. Prompts are random, every token moved by itself, or
    simplices of overlap gamma and gamma + move, whose kernel has two numbers, one on and one off the diagonal.
    Rows: n, logit_std, prompts, pair (a number, or gamma), quotient, and gap: the quotient plus five standard errors
    of its difference; bound: 1 + 9 lambda^2.
    """

    d: int = 128
    tokens: tuple[int, ...] = (2, 8, 32, 128)
    logit_stds: tuple[float, ...] = (0.1, 0.5, 4.0)
    pairs: int = 3
    gammas: tuple[float, ...] = (0.0, 0.3, 0.6, 0.9)
    move: float = 0.05
    batches: int = 8
    samples: int = 100  # heads a batch at the largest n; fewer tokens take more heads at the same cost

    tiers: ClassVar = {
        "ci": {"d": 64, "tokens": (2, 8, 32), "samples": 20},
        "cpu": {"samples": 40},
    }
    tiny: ClassVar = {"d": 16, "tokens": (2, 8), "pairs": 2, "gammas": (0.3,), "batches": 4, "samples": 10}

    def conditions(self) -> list[dict]:
        return [{"n": n, "logit_std": s} for n in self.tokens for s in self.logit_stds]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        n, s = condition["n"], condition["logit_std"]
        samples = self.samples * max(self.tokens) // n
        sigma_a, table = matched_law(self.d, s).sigma_a, []
        for name, pair, one, two in self.prompts(n, seed, device, dtype):  # the heads of one pair fill the memory
            s_one, s_two = (
                barycenter_correlation(
                    *(R.expand(self.batches, n, n), 1.0, sigma_a, self.d),
                    samples=samples,
                    generator=stream(seed, "heads", n, str(pair), device=device),  # the same heads for both
                ).s
                for R in (one, two)
            )
            change, far = s_one - s_two, (one - two).abs().amax()
            if name == "simplex":
                parts = change.diagonal(dim1=-2, dim2=-1), off_diagonal(change)
                change = torch.stack([part.mean(dim=-1) for part in parts], dim=-1)
            error = change.std(dim=0) / self.batches**0.5
            value, safe = ((change.mean(dim=0).abs() + k * error).amax() / far for k in (0, 5))
            row = {"prompts": name, "pair": pair, "quotient": value.item(), "gap": safe.item(), "bound": 1 + 9 * s**2}
            table.append(row)
        return pd.DataFrame(table)

    def prompts(self, n: int, seed: int, device, dtype) -> Iterator[tuple[str, float, torch.Tensor, torch.Tensor]]:
        """Kind, name and the two Gram matrices of every pair."""
        for pair in range(self.pairs):
            g = stream(seed, "lipschitz", pair)
            near, move = torch.randn(2, n, self.d, generator=g, dtype=dtype).to(device) / self.d**0.5
            centre = torch.eye(self.d, device=device, dtype=dtype)[0] * 0.7
            yield "random", pair, *(overlaps(normalise(X)) for X in (near + centre, near + centre + 0.5 * move))
        for gamma in self.gammas:
            both = (simplex_gram(n, value, device=device, dtype=dtype) for value in (gamma, gamma + self.move))
            yield "simplex", gamma, *both


@dataclass(frozen=True, kw_only=True)
class KernelDistance(Experiment):
    """HT-20: E|G_mu(x) - G_nu(y)|^2 at beta = 0, exactly, for clouds of equal size, near and far.

    Clouds are scattered and every point moves by itself, or all points of a cloud coincide and move together while
    x = y. Rows: cloud, instance, gap (the exact left side) and bound of the lemma, and quotient: the left side's root
    for x = y over the mean distance of the points.
    """

    instances: int = 200
    n: int = 6
    d: int = 5

    tiny: ClassVar = {"instances": 5}
    deterministic: ClassVar = {"quotient": 1e-9}

    def conditions(self) -> list[dict]:
        return [{"cloud": "scattered"}, {"cloud": "together"}]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        g, d = stream(seed, "clouds"), self.d
        first, move = torch.randn(2, self.instances, self.n + 1, d, generator=g, dtype=dtype).unbind(dim=0)
        size = torch.logspace(-2, 1, self.instances, dtype=dtype)[:, None, None]
        pairs = torch.stack([normalise(first), normalise(normalise(first) + size * move)], dim=1)
        points, clouds = pairs[:, :, 0], pairs[:, :, 1:]  # one point and a cloud, each before and after a move
        if condition["cloud"] == "together":
            points, clouds = points[:, :1].expand_as(points), clouds[:, :, :1].expand_as(clouds)
        gap, bound = kernel_distance(points, clouds)
        still = kernel_distance(points[:, :1].expand_as(points), clouds)[0].clamp_min(0).sqrt()
        quotient = still / (clouds[:, 0] - clouds[:, 1]).norm(dim=-1).mean(dim=-1)
        return rows({"instance": range(self.instances)}, {"gap": gap, "bound": bound, "quotient": quotient})
