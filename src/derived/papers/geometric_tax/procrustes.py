"""What distortion measures on pooled states, with nothing trained (GT-2).

symbol   name   meaning                                                        axes
D        D      Procrustes distortion of a cloud and its disturbed copy        (replicates,)
J        J      mean square of a disturbed token's jump                        (replicates,)
V        V      variance of pooled embeddings between sequences                (replicates,)
r        r      share of positions that are disturbed                          scalar
"""

from dataclasses import dataclass
from typing import ClassVar

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure
from torch import Tensor

from derived.lab import measure, stats
from derived.lab.claims import at_least, on_page, statistic, within
from derived.lab.experiment import Experiment
from derived.lab.measure import farthest_from
from derived.lab.plot import BLUE, GREEN, RED, THEORY, beside, largest, plain_log, points
from derived.lab.rng import stream
from derived.lab.stats import Estimate

from .data.systems import lorenz
from .measures import ratio
from .model.codebooks import UniformQuantizer
from .model.metrics import pooled_law, procrustes_distortion


def normals(seed: int, *name: str | int, shape: tuple[int, ...], device: torch.device) -> Tensor:
    """Standard normals of a named stream."""
    return torch.randn(*shape, generator=stream(seed, *name), dtype=torch.float64).to(device)


def codes(kind: str, K: int, p: int, seed: int, replicate: int) -> Tensor:
    """A vector for each bin, of variance p: "linear" in its number, "smooth" (random waves, a tenth of the range long),
    or "random"."""
    centre = (torch.arange(K, dtype=torch.float64) + 0.5) / K
    drawn = torch.randn(p, generator=stream(seed, "code", kind, replicate), dtype=torch.float64)
    if kind == "linear":
        return (centre[:, None] - 0.5) * drawn * 12**0.5
    if kind == "smooth":
        phase = 2 * torch.pi * torch.rand(p, generator=stream(seed, "phase", replicate), dtype=torch.float64)
        return 2**0.5 * torch.cos(10 * centre[:, None] * drawn + phase)
    return torch.randn(K, p, generator=stream(seed, "code", kind, replicate), dtype=torch.float64)


@dataclass(frozen=True, kw_only=True)
class Pooled(Experiment):
    """GT-2: a tax without training. The x of Lorenz' system in 256 bins; a bin's state is its code, a sequence's
    embedding their mean; a share r of values (one at least) is disturbed by 10 % of the range. Rows: code, r,
    replicate, D, law (the pooled law at the measured J and V), J, V, J_law (2 p P(change) for random codes,
    slope^2 E dx^2 for a linear one)."""

    n: int = 800
    L: int = 512
    K: int = 256
    p: int = 12
    rates: tuple[float, ...] = (0.01, 0.02, 0.05, 0.1)
    replicates: int = 8

    tiers: ClassVar = {"ci": {"n": 240, "L": 128}, "cpu": {}}
    tiny: ClassVar = {"n": 100, "L": 64, "replicates": 4}

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        paths = lorenz(self.replicates * self.n, self.L, generator=stream(seed, "paths"))[..., 0].to(device)
        tables = []
        for replicate, x in enumerate(paths.unflatten(0, (self.replicates, self.n))):
            tables += [self.one(kind, x, seed, device, replicate) for kind in ("linear", "smooth", "random")]
        return pd.concat(tables, ignore_index=True)

    def one(self, kind: str, x: Tensor, seed: int, device: torch.device, replicate: int) -> pd.DataFrame:
        """All rates of one code; all codes see the same paths and the same noise."""
        bins = UniformQuantizer(self.K, x.min().item(), x.max().item())
        code = codes(kind, self.K, self.p, seed, replicate).to(device)
        states = code[bins.encode(x)]
        X, found = states.mean(dim=1), []
        V = X.var(dim=0).sum()
        noise = normals(seed, "noise", replicate, shape=x.shape, device=device)
        order = torch.rand(self.n, self.L, generator=stream(seed, "where", replicate)).argsort(dim=1).to(device)
        for r in self.rates:
            hit = order < max(1, round(r * self.L))
            share = hit.double().mean().item()
            after = torch.where(hit, x + 0.1 * (bins.high - bins.low) * noise, x)
            moved = code[bins.encode(after)]
            jump = (moved - states).square().sum(dim=-1)[hit]
            J = jump.mean()
            changed = (bins.encode(after) != bins.encode(x))[hit].double().mean()
            slope = (code[-1] - code[0]).square().sum() / (self.K - 1) ** 2
            steps = (bins.encode(after) - bins.encode(x))[hit].double().square().mean()
            guess = {"random": 2 * self.p * changed, "linear": slope * steps, "smooth": J}[kind]
            D = procrustes_distortion(X, moved.mean(dim=1))
            row = {"code": kind, "r": share, "replicate": replicate, "D": D, "law": pooled_law(share, self.L, J, V)}
            found.append(row | {"J": J, "V": V, "J_law": guess})
        return pd.DataFrame(found).astype({name: float for name in ("D", "law", "J", "V", "J_law")})


# Claims: GT-1, GT-2, GT-13: what distortion measures, and scores that measure nothing.


def farthest(rows: pd.DataFrame, law: str = "law") -> Estimate:
    """Measured over predicted D, in the code and share where it is farthest from one."""
    return measure.mean(f"D / {law}", by=["code", "r"], decides=farthest_from(1))(rows)


def one_share(rows: pd.DataFrame) -> Estimate:
    """The same of a law that knows nothing of the share: what it says of the largest."""
    return farthest(rows.assign(blind=rows.groupby(["code", "replicate"])["law"].transform("max")), "blind")


def without_training(rows: pd.DataFrame, code: str = "random") -> Estimate:
    """D of random codes, or of others, over D of a linear one at the largest share of disturbed positions: geometric
    mean over replicates."""
    top = rows[rows["r"] == rows["r"].max()].pivot(index="replicate", columns="code", values="D")
    return ratio(stats.mean(np.log(top[code] / top["linear"])))


CLAIMS = (
    on_page(
        "GT-1.a", source="prior", where="Schönemann 1966; the author's code takes the rotation and sums the residual"
    ),
    on_page("GT-1.b"),
    on_page("GT-2.a"),
    statistic(
        "GT-2.b",
        r"Mean-pooled states of which a share $r$ jumps by $J$ in mean square are at $D\approx\sqrt{rJ/2LV}$, $V$ the variance between sequences.",
        Pooled,
        farthest,
        "measured over predicted distortion, three codes at four shares judged jointly",
        within(1, 0.15),
        unit="ratio",
        control=one_share,
    ),
    statistic(
        "GT-2.c",
        r"Without any training, random codes of 256 ordered bins make the distortion several times that of a linear code.",
        Pooled,
        without_training,
        "random over linear codes at the largest share of disturbed positions",
        at_least(5),
        unit="times",
        comparison=("smooth codes", lambda rows: without_training(rows, "smooth")),
        control="nothing is trained here, and a linear code over itself has the ratio one",
    ),
    on_page("GT-13.a"),
    on_page("GT-13.b"),
)


# Figures: What noise does to the distortion of pooled codes: rows in, a figure with its alt text as label out.
#
# mark                   meaning
# filled, open marker    recorded, live; bars are 99.9 % intervals over replicates
# thin line              the pooled law at the measured jump J and spread V

CODES = {"random": ("no order", RED), "smooth": ("neighbours alike", GREEN), "linear": ("a line", BLUE)}


def pooled(rows: pd.DataFrame) -> Figure:
    """D against the share of positions that noise strikes, for three kinds of codes; rows of ``Pooled``."""
    figure, ax = plt.subplots(figsize=(5.2, 3.4))
    ends = {}
    for code, (name, color) in CODES.items():
        part = rows[rows["code"] == code]
        points(ax, part, "r", "D", color)
        law = largest(part).groupby("r")[["D", "law"]].mean()
        ax.plot(law.index, law["law"], **THEORY)
        beside(ax, law.index[-1], law["D"].iloc[-1], name, color, shift=(9, 0))
        ends[name] = law["D"].iloc[-1]
    rates = sorted(rows["r"].unique())
    ax.set(xscale="log", yscale="log", xlabel="share $r$ of positions struck", ylabel="distortion $D$")
    plain_log(ax.xaxis, (0.01, 0.02, 0.05, 0.1))
    ax.set_xlim(rates[0] / 1.15, rates[-1] * 2.6)
    said = ", ".join(f"{name} {value:.3f}" for name, value in ends.items())
    figure.set_label(
        f"Distortion of mean codes of Lorenz paths against the share of positions struck by noise, on logarithmic axes "
        f"with slope one half. At a share of {rates[-1]:g}: {said}."
    )
    return figure
