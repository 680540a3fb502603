"""Retrieval from associative memories: flipped bits, and the noise of one read-out (OLS-15 and 17).

K, d   number and dimension of the patterns
beta   inverse temperature of softmax
noise  energy of what a read-out adds to the pattern, over that of the pattern
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import matplotlib.pyplot as plt
import pandas as pd
import torch
from matplotlib.figure import Figure

from derived.lab import measure, stats
from derived.lab.claims import at_least, at_most, on_page, statistic, within
from derived.lab.experiment import Experiment, rows
from derived.lab.plot import BLUE, GREEN, MUTED, PINK, RED, THEORY, beside, plain_log, points
from derived.lab.rng import stream
from derived.lab.stats import Estimate

from .model import capacity as closed
from .model import hopfield
from .words import shown


@dataclass(frozen=True, kw_only=True)
class OneStepRetrieval(Experiment):
    """OLS-17: wrong bits after one step from 10 % flipped bits at K = e^{0.9 alpha N} and e^{0.5 alpha N}, F = e^u.

    All K patterns of a memory are tried; ``all_repaired`` says whether no bit of any of them is wrong. ``before``:
    wrong bits of a step that does nothing.
    """

    sizes: tuple[tuple[int, float], ...] = ((30, 0.9), (30, 0.5), (50, 0.5), (70, 0.5))
    rho: float = 0.1
    replicates: int = 64

    tiny: ClassVar = {"sizes": ((30, 0.9), (30, 0.5))}

    def conditions(self) -> list[dict]:
        return [{"N": N, "fraction": fraction} for N, fraction in self.sizes]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        N, fraction = condition["N"], condition["fraction"]
        K = round(math.exp(fraction * float(closed.demircigil_exponent(self.rho)) * N))
        generator = stream(seed, "one-step retrieval", N, fraction, device=device)
        errors = hopfield.bit_error_rate(
            N, K, "exp", rho=self.rho, num_tests=K, trials=self.replicates, generator=generator, dtype=dtype
        )
        columns = {"K": K, "bit_error": errors, "all_repaired": errors == 0, "before": round(self.rho * N) / N}
        return rows({"replicate": range(self.replicates)}, columns)


@dataclass(frozen=True, kw_only=True)
class Steps(Experiment):
    """OLS-15: one step from stored patterns and from patterns with one wrong bit, by three rules.

    ``flip``: the rule of F = e^u; ``softmax``: the sign of softmax attention over the patterns, beta = 1; ``nothing``.
    ``load``: "typical" is K = 0.02 * 2^N, the typical capacity; "many" is K = 2^(3N/4), beyond 2^(N/2).
    ``wrong``: wrong bits per pattern after the step; ``kept``: whether all patterns that are tried are right.
    """

    sizes: tuple[int, ...] = (10, 12, 14, 16)
    replicates: int = 24
    num_tests: int = 96

    tiny: ClassVar = {"sizes": (8, 10), "replicates": 4}

    def conditions(self) -> list[dict]:
        loads = [{"load": load, "N": N} for load in ("typical", "many") for N in self.sizes]
        return [condition | {"flips": flips} for condition in loads for flips in (0, 1)]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        N, load, flips = condition["N"], condition["load"], condition["flips"]
        K = round(0.02 * 2**N if load == "typical" else 2 ** (0.75 * N))
        generator = stream(seed, "steps", load, N, flips, device=device)
        patterns = hopfield.random_signs(self.replicates, K, N, generator=generator, dtype=dtype)
        stored = patterns[:, : self.num_tests]
        probes = hopfield.corrupt(stored, flips / N, generator=generator) if flips else stored
        read = hopfield.retrieve(probes, patterns, "lse").state
        moved = {"flip": hopfield.kh_step(probes, patterns, "exp"), "softmax": read.sign(), "nothing": probes}
        wrong = torch.stack([(state != stored).to(dtype).sum(dim=-1) for state in moved.values()])
        columns = {"K": K, "wrong": wrong.mean(dim=-1), "kept": (wrong == 0).all(dim=-1)}
        return rows({"rule": [*moved], "replicate": range(self.replicates)}, columns)


@dataclass(frozen=True, kw_only=True)
class ReadOutNoise(Experiment):
    """OLS-15, figure of retrieval: noise energy of linear read-outs of one of N unit patterns against theory.

    ``hebb``: the other patterns' part of X^T X x_1. ``projection``: the part of unit noise that P keeps.
    """

    d: int = 128
    nums: tuple[int, ...] = (2, 4, 8, 16, 32, 64, 96)
    replicates: int = 256

    def conditions(self) -> list[dict]:
        return [{"memory": memory, "num_patterns": num} for memory in ("hebb", "projection") for num in self.nums]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        num, kind = condition["num_patterns"], condition["memory"]
        generator = stream(seed, "read-out noise", num)
        signs = hopfield.random_signs(self.replicates, num, self.d, generator=generator, dtype=dtype)
        patterns = signs / math.sqrt(self.d)
        if kind == "hebb":
            first = patterns[:, :1]
            noise = hopfield.linear_read_out(first, patterns, kind) - first
            theory = closed.hebb_noise(num, self.d)
            naive = (num - 1) / self.d  # without the coherent part: the negative control
        else:
            white = torch.randn(self.replicates, 1, self.d, generator=generator, dtype=dtype) / math.sqrt(self.d)
            noise = hopfield.linear_read_out(white, patterns, kind)
            theory = naive = closed.projection_noise(num, self.d)
        energy = noise.square().sum(dim=(-2, -1))
        return rows({"replicate": range(self.replicates)}, {"noise": energy, "theory": theory, "naive": naive})


# Claims: The ledger of retrieval: the softmax step, its bound, flipped bits and noise (OLS-14 to OLS-17).
#
# beta  inverse temperature of softmax
# K, d  number and dimension of the patterns

RAMSAUER = {"source": "prior", "where": "Ramsauer et al. 2021"}


def keeps_and_repairs(rule: str) -> measure.Measure:
    """The share of memories that keep all patterns at the larger load and halve wrong bits at the typical one."""

    def share(rows: pd.DataFrame) -> Estimate:
        some, memory = measure.chosen(rows, f"rule == '{rule}'"), ["N", "replicate"]
        kept = measure.chosen(some, "load == 'many' and flips == 0").set_index(memory)["kept"]
        wrong = measure.chosen(some, "load == 'typical' and flips == 1").set_index(memory)["wrong"]
        good = kept.astype(bool) & (wrong < 0.5)
        return stats.proportion(int(good.sum()), len(good))

    return share


CLAIMS = (
    on_page("OLS-14.a", paper_value="equality", **RAMSAUER),
    statistic(
        "OLS-15.f",
        r"The Hebb read-out of one of $K$ unit patterns in $d$ dimensions carries the noise energy "
        r"$\frac{K-1}d(1+\frac{K-2}d)$.",
        ReadOutNoise,
        measure.mean("noise / theory", "memory == 'hebb' and num_patterns == num_patterns.max()"),
        "measured over exact at the largest $K$",
        within(1, 0.1),
        control=measure.mean("naive / theory", "memory == 'hebb' and num_patterns == num_patterns.max()"),
        unit="of the exact noise",
    ),
    on_page(
        "OLS-16.b",
        source="prior",
        where="Ramsauer et al. 2021, Theorem 5, with the radius that its proof needs",
    ),
    statistic(
        "OLS-17.a",
        r"With $F=e^u$, at $N=30$ and $K=e^{0.9\alpha N}$, one step from 10 % of flipped bits leaves at most 2 % of the bits wrong.",
        OneStepRetrieval,
        measure.mean("bit_error", "fraction == 0.9"),
        "share of wrong bits after the step",
        at_most(0.02),
        control=measure.mean("before", "fraction == 0.9"),
        source="prior",
        where="Demircigil et al. 2017, whose theorem says every bit of every pattern, see OLS-17.c",
        paper_value=r"error $\to0$",
        unit="share of bits",
    ),
    statistic(
        "OLS-17.c",
        r"With $F=e^u$, at half of the exponent, $K=e^{0.5\alpha N}$, one step from 10 % of flipped bits repairs every bit of "
        r"every pattern, for $N=30$, $50$ and $70$.",
        OneStepRetrieval,
        measure.share("all_repaired", "fraction == 0.5", unit=["N", "replicate"]),
        "share of memories",
        at_least(0.9),
        control=measure.share("before == 0", "fraction == 0.5", unit=["N", "replicate"]),
        source="prior",
        where=r"Demircigil et al. 2017: below $\alpha$ the share tends to 1 as $N$ grows",
        paper_value=r"share $\to1$",
        unit="share of memories",
        horizon="$N=70$, 627 patterns",
    ),
    statistic(
        "OLS-15.g",
        r"At the typical capacity, $K=0.02\cdot2^N$ patterns, one step of the flip rule of $F=e^u$ from a pattern with one "
        r"wrong bit leaves more wrong bits than it was given, for $N=14$ and $16$.",
        Steps,
        measure.mean(
            "wrong", "load == 'typical' and flips == 1 and rule == 'flip' and N >= 14", by=["N"], decides=measure.lowest
        ),
        "wrong bits per pattern after the step, where one was wrong before, at both sizes",
        at_least(1.05),
        control=measure.mean(
            "wrong",
            "load == 'typical' and flips == 1 and rule == 'nothing' and N >= 14",
            by=["N"],
            decides=measure.lowest,
        ),
        where="stability is not memory",
        unit="wrong bits",
    ),
    statistic(
        "OLS-15.h",
        r"With the sign of softmax attention's own step ($\beta=1$) in place of the flip rule, all patterns that we tried keep all "
        r"signs at $K=2^{3N/4}$, beyond $2^{N/2}$, and at $K=0.02\cdot2^N$ fewer than half of the wrong bits are left, for $N$ "
        r"from 10 to 16.",
        Steps,
        keeps_and_repairs("softmax"),
        "share of memories that keep all patterns that are tried at the larger load, and on average leave less than half a "
        "wrong bit of one at the smaller",
        at_least(0.9),
        control=keeps_and_repairs("nothing"),  # keeps all, repairs nothing
        where="the limit $2^{N/2}$ is the flip rule's; at the larger load the step repairs little, as the page shows",
        unit="share of memories",
    ),
)


# Figures: The noise of each read-out of a stored pattern.


def read_out_noise(rows: pd.DataFrame) -> Figure:
    """Noise energy of each read-out against the patterns; rows: memory, num_patterns, noise, theory, naive."""
    figure, ax = plt.subplots(figsize=(5.8, 3.7))
    said = []
    for memory, words, color, marker, height in (
        ("hebb", "Hebb (linear)", RED, "^", 7),
        ("projection", "projection (whitened)", BLUE, "o", -7),
        ("cubic", "cubic kernel", GREEN, "s", 0),
        ("softmax", "softmax", PINK, "D", 0),
    ):
        part = rows[rows["memory"] == memory]
        if part.empty:
            continue
        theory = part.groupby("num_patterns")["theory"].first().dropna()
        ax.plot(theory.index, theory, **THEORY)
        last = shown(points(ax, part, "num_patterns", "noise", color, marker)).iloc[-1]
        beside(ax, last["num_patterns"], last["value"], words, color, (9, height))
        said.append(f"{words} {last['value']:.2g}")
    naive = rows[rows["memory"] == "hebb"].groupby("num_patterns")["naive"].first()
    ax.plot(naive.index, naive, color=MUTED, linewidth=0.9, linestyle="--")
    middle = naive.index[len(naive) // 2]
    beside(ax, middle, naive[middle], "Hebb without the\ncoherent part", MUTED, (6, -18))
    ax.set(xscale="log", yscale="log", xlabel="stored patterns $K$", ylabel="noise energy (signal: 1)")
    plain_log(ax.xaxis, sorted(rows["num_patterns"].unique())[::2])
    ax.set_xlim(right=rows["num_patterns"].max() * 6)
    figure.set_label(
        f"Noise energy against the number of stored patterns on logarithmic axes. At the largest number: "
        f"{', '.join(said)}. The Hebb points follow the exact line and leave the dashed one, which forgets the "
        f"coherent part."
    )
    return figure
