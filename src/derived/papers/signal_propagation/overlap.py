"""Whether tokens collapse onto each other: the overlap p / q through many blocks of torch networks.

column              meaning                                    per
q, p                second moment and overlap of the stream     replicate, b
q_theory, p_theory  the same from the recurrence                b
"""

from dataclasses import dataclass
from typing import ClassVar

import matplotlib.pyplot as plt
import pandas as pd
import torch
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse

from derived.lab.claims import statistic, within
from derived.lab.experiment import Experiment, rows
from derived.lab.measure import farthest_from, mean
from derived.lab.plot import RED, panel_label
from derived.lab.rng import stream

from .marks import NAMES, NORM_COLOURS
from .measured import moments_by_block
from .model.kernels import kernel_of
from .model.meanfield import propagate
from .model.transformer import RandomTransformer, equiangular_tokens


@dataclass(frozen=True, kw_only=True)
class DeepOverlap(Experiment):
    """SP-10: the overlap through 64 blocks of torch networks; rows: replicate, b, q, p, q_theory, p_theory."""

    width: int = 256
    n: int = 12
    depth: int = 64
    alpha: float = 1.0
    q0: float = 1.0
    p0: float = 0.2
    parts: int = 16
    inits: int = 6

    tiers: ClassVar = {"ci": {"width": 96, "parts": 1}, "cpu": {}}
    tiny: ClassVar = {"width": 32, "depth": 4, "inits": 3}
    deterministic: ClassVar = {"q_theory": 1e-9, "p_theory": 1e-9}
    dtype: ClassVar = torch.float32

    def conditions(self) -> list[dict]:
        return [{"norm": norm, "part": part} for norm in ("layernorm", "erf") for part in range(self.parts)]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        norm, part = condition["norm"], condition["part"]
        where = {"dtype": dtype, "device": device}
        model = RandomTransformer(
            width=self.width,
            depth=self.depth,
            norm=norm,
            alpha=self.alpha,
            num_networks=self.inits,
            generator=stream(seed, "deep networks", part),
            **where,
        )
        size = (self.n, self.width, self.q0, self.p0)
        x = equiangular_tokens(*size, batch=(self.inits,), generator=stream(seed, "deep tokens", part), **where)
        q, p, _ = moments_by_block(model, x)
        sizes = {"a": model.sigmas.a, "s": model.sigmas.s, "n": self.n, "depth": self.depth}
        trajectory = propagate(self.q0, self.p0, kernel=kernel_of(norm, self.alpha), **sizes)
        theory = {"q_theory": trajectory.q, "p_theory": trajectory.p}
        return rows({"replicate": range(self.inits), "b": range(self.depth + 1)}, {"q": q, "p": p, **theory})


# Claims: The overlap through many blocks of torch networks: SP-10.c.

CLAIMS = (
    statistic(
        "SP-10.c",
        r"Torch networks of 64 blocks have the overlap $\rho$ of the recurrence, with Derf and with LayerNorm.",
        DeepOverlap,
        mean("p / q - p_theory / q_theory", "b == b.max()", by=["norm"], decides=farthest_from(0.0)),
        r"mean $\rho$ at block 64 less that of the recurrence, the norm farthest off, jointly over norms",
        within(0, 0.02),
        unit="overlap",
        judged_at=("cpu",),
        control=mean(
            "p / q - 0.2", "b == b.max()", by=["norm"], decides=farthest_from(0.0)
        ),  # the overlap of the input
    ),
)


# Figures: Clouds of two tokens over depth, with the ellipses of the recurrence.


def token_clouds(rows: pd.DataFrame) -> Figure:
    """One channel of two tokens; rows: norm, b, u, v (channels of one network) and q, p of the recurrence."""
    norms, depths = list(rows["norm"].unique()), sorted(rows["b"].unique())
    figure, axes = plt.subplots(len(norms), len(depths), figsize=(7.0, 2.2 * len(norms)), squeeze=False)
    overlaps = {}
    for line, norm in zip(axes, norms, strict=True):
        for ax, b in zip(line, depths, strict=True):
            part = rows[(rows["norm"] == norm) & (rows["b"] == b)]
            q, p = float(part["q"].iloc[0]), float(part["p"].iloc[0])
            scale = q**0.5
            ax.scatter(part["u"] / scale, part["v"] / scale, s=3, color=NORM_COLOURS[norm], alpha=0.35, linewidths=0)
            for reach in (1, 2):
                size = [2 * reach * (max(1 + sign * p / q, 0.0)) ** 0.5 for sign in (1, -1)]
                ax.add_patch(Ellipse((0, 0), *size, angle=45, fill=False, edgecolor=RED, linewidth=1.1))
            ax.set(xlim=(-3.3, 3.3), ylim=(-3.3, 3.3), aspect="equal", xticks=[], yticks=[])
            panel_label(ax, rf"$b={b}$, $\rho={p / q:.2f}$")
            overlaps[norm, b] = p / q
        line[0].set_ylabel(f"{NAMES[norm]}\ntoken 2, standardised")
    for ax in axes[-1]:
        ax.set_xlabel("token 1, standardised")
    words = "; ".join(f"{NAMES[norm]} " + ", ".join(f"{overlaps[norm, b]:.2f}" for b in depths) for norm in norms)
    blocks = ", ".join(str(b) for b in depths)
    figure.set_label(
        f"Clouds of the channels of two tokens with ellipses of the theory at blocks {blocks}. Overlaps: {words}. The "
        "cloud of LayerNorm shrinks towards a line, that of Derf does not."
    )
    return figure
