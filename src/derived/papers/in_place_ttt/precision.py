"""What a number format keeps of a write, and how far a clipped write moves an output."""

import itertools
from dataclasses import dataclass
from typing import ClassVar

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure

from derived.lab import measure
from derived.lab.claims import at_most, on_page, statistic
from derived.lab.experiment import Experiment, rows
from derived.lab.measure import Measure
from derived.lab.plot import BLUE, DASHED, THEORY, beside
from derived.lab.rng import stream
from derived.lab.stats import Estimate

from .model.theory import share_written

BITS = {"bfloat16": 8, "float32": 24}


@dataclass(frozen=True, kw_only=True)
class Clip(Experiment):
    """IPT-16: writes of Frobenius norm tau to a matrix d x h of the initialiser's size, the paper's clip among them.

    What is kept is counted on a sample of ``entries`` weights; what moves, on ``sampled_rows`` of its rows. Rows: tau,
    dtype, replicate, changed (share of weights that one write changes), theory (closed form), after (share that differs
    after ``writes`` independent writes, one by one), moved (largest change of an output over its size after as many
    writes, all alike and in float64), bound (what the norms allow).
    """

    replicates: int = 8
    d: int = 2560
    h: int = 9728
    weight_std: float = 0.02
    norms: tuple[float, ...] = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
    writes: int = 32
    entries: int = 1_000_000
    sampled_rows: int = 64
    inputs: int = 16

    tiers: ClassVar = {
        "ci": {"norms": (1e-5, 1e-3, 1e-1), "entries": 250_000},
        "cpu": {},
    }
    tiny: ClassVar = {"replicates": 2, "norms": (1e-5, 1e-1, 10.0), "entries": 20_000, "sampled_rows": 4, "inputs": 2}
    deterministic: ClassVar = {"theory": 1e-9}

    def conditions(self) -> list[dict]:
        return [{"tau": tau, "dtype": name} for tau, name in itertools.product(self.norms, BITS)]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        tau, name = condition["tau"], condition["dtype"]
        found = [self.one(tau, name, stream(seed, "clip", tau, r), device) for r in range(self.replicates)]
        columns = dict(zip(("changed", "after", "moved", "bound"), torch.tensor(found).double().mT, strict=True))
        rms = tau / (self.d * self.h) ** 0.5
        theory = share_written(self.weight_std, rms, BITS[name])
        return rows({"replicate": range(self.replicates)}, columns | {"theory": theory})

    def one(self, tau: float, name: str, draw: torch.Generator, device) -> tuple[float, ...]:
        kept, rms = getattr(torch, name), tau / (self.d * self.h) ** 0.5
        drawn = lambda *shape: torch.randn(*shape, generator=draw).to(device)  # noqa: E731
        start = (self.weight_std * drawn(self.entries)).to(kept)
        state, changed = start, 0.0
        for i in range(self.writes):
            state = (state.double() + rms * drawn(self.entries).double()).to(kept)
            changed = changed if i else (state != start).double().mean().item()
        return changed, (state != start).double().mean().item(), *self.moved(tau, drawn)

    def moved(self, tau: float, drawn) -> tuple[float, float]:
        """The largest share by which an output moves, and what the norms allow.

        All writes point one way and one input is their key, which is the worst case. A few rows of the matrix are
        drawn; the size of an output is that of all d rows, a sum of equal parts.
        """
        W, z = self.weight_std * drawn(self.sampled_rows, self.h).double(), drawn(self.inputs, self.h).double()
        value = drawn(self.sampled_rows).double()
        write = tau * torch.outer(value / value.norm(), z[0] / z[0].norm())
        size = (z @ W.mT).norm(dim=-1) * (self.d / self.sampled_rows) ** 0.5
        change = (z @ (self.writes * write).mT).norm(dim=-1)
        return (change / size).max().item(), (self.writes * tau * z.norm(dim=-1) / size).max().item()


# Claims: IPT-16: what the clip that is printed with the paper's Table 1 leaves of a write.
#
# Criteria and expected verdicts were written before the run, unless a claim says otherwise. The size of the weights,
# 0.02, is our assumption.

MATRIX = r"a matrix of $2560\times9728$ weights of size $0.02$"


def of_limit(tau: str) -> Measure:
    """The mean share of the weights that one write of this norm changed in bf16, or the largest after all writes, each
    over its limit; the one that reaches higher."""
    where = f"tau == {tau} and dtype == 'bfloat16'"

    def measured(rows: pd.DataFrame) -> Estimate:
        one, all_of_them = measure.mean("changed / 1e-4", where)(rows), measure.largest("after / 1e-2", where)(rows)
        reach = {one: one.high, all_of_them: np.nan_to_num(all_of_them.value, nan=np.inf)}  # a NaN is never passed over
        return max(reach, key=reach.get)

    return measured


CLAIMS = (
    statistic(
        "IPT-16.a",
        rf"One write with independent Gaussian entries and Frobenius norm $10^{{-5}}$ to {MATRIX} in bf16 changes at most one weight in ten thousand, and thirty-two change at most one in a hundred.",
        Clip,
        of_limit("1e-5"),
        "share of the weights that changed over its limit, the mean after one write or the largest after thirty-two",
        at_most(1),
        unit="of its limit",
        where="the clip: the paper's setting for Table 1",
        control=of_limit("1e-1"),
    ),
    on_page("IPT-16.b"),
)


# Figures: What a number format keeps of a write: rows in, a figure with its alt text as label out.
#
# mark                  meaning
# filled, open marker   recorded, live
# line in INK           theory; dashed: the clip as printed


def survival(rows: pd.DataFrame, printed: float = 1e-5) -> Figure:
    """Share of bf16 weights that a write changes against its norm; rows: tau, changed, theory, recorded."""
    figure, ax = plt.subplots(figsize=(5.8, 3.1))
    for recorded, part in rows.groupby("recorded"):
        face = BLUE if recorded else "none"
        ax.plot(part["tau"], part["changed"], "o", color=BLUE, markerfacecolor=face)
    theory = rows.groupby("tau")["theory"].first()
    ax.plot(theory.index, theory, **THEORY)
    ax.axvline(printed, **DASHED)
    beside(ax, printed, theory.max(), "clip as printed", shift=(4, -4))
    ax.set(xscale="log", yscale="log", xlabel=r"Frobenius norm $\tau$ of the write", ylabel="bf16 weights changed")
    at = rows[rows["tau"] == printed]["changed"]
    figure.set_label(
        "Share of bf16 weights that a write changes, against its norm, both axes logarithmic; proportional to the norm "
        f"until all change. At {printed:g}: {at.mean():.1e}."
        if len(at)
        else "Share of bf16 weights that a write changes."
    )
    return figure
