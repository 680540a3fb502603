r"""One law: a layer multiplies the odds of the mean overlap by 1 + h. Chains of overlaps, torch blocks, and small steps.

A *replicate* is independent of the others: one path, or where paths are cheap the mean over a batch of ``batch`` paths.
Evidence, criterion and expected verdicts were written before the run.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure

from derived.lab.claims import RECORDED, at_least, on_page, statistic, within
from derived.lab.experiment import Experiment, rows
from derived.lab.measure import Measure, farthest_from, mean
from derived.lab.nets import layer_norm
from derived.lab.plot import COLOURS, beside, largest, panel_label, plain_log
from derived.lab.rng import stream
from derived.lab.stats import LEVEL, Estimate
from derived.lab.stats import mean as interval

from .chains import layer_counts, start
from .model.chain import overlaps, post_norm_block
from .model.gram import simulate_gram
from .model.heads import matched_law, normalise
from .model.overlaps import logistic_overlap, odds_after, wide_layer
from .model.two_token import two_token_pde

REACH = 5.5  # of L ln(1 + h): from one token in 64 to an overlap of about 0.8


@dataclass(frozen=True, kw_only=True)
class Odds(Experiment):
    """HT-25: mean overlaps over depth, with fresh weights in every layer unless said.

    kind chain: overlaps alone, uniform attention, the mean of H heads, from ``prompt`` tokens at right angles; block: a
    post-LayerNorm block in torch, h = scale^2, from n random tokens; causal: the same with a causal mask; reused: the
    same weights in every layer. ``law`` is u after odds times (1 + h)^layer (causal: the map of a wide layer), and
    ``clock`` the logistic curve of small steps at h * layer, each from the replicate's own start.

    Rows: kind, d, H, h, replicate, layer, u, law, clock.
    """

    wide: tuple[tuple[int, float], ...] = ((1, 1.0), (1, 0.25), (10, 0.04), (100, 1.0), (1000, 0.25))  # (H, h)
    narrow: tuple[int, int, float] = (256, 10, 0.02)  # d, H, h: of HT-7
    paths: int = 400
    prompt: int = 8
    widths: tuple[int, ...] = (128, 512)
    n: int = 64
    scales: tuple[float, ...] = (0.2, 0.5, 1.0, 2.0)
    heads: tuple[int, ...] = (1, 8)
    reused: float = 0.2
    points: int = 7
    replicates: int = 96

    tiers: ClassVar = {
        "ci": {"wide": ((1, 1.0), (100, 0.25)), "widths": (128,), "n": 16, "scales": (0.5, 1.0), "replicates": 32},
        "cpu": {},
    }
    tiny: ClassVar = {"wide": ((2, 1.0),), "widths": (16,), "n": 4, "paths": 4, "replicates": 4, "points": 3}

    def conditions(self) -> list[dict]:
        widest = max(self.widths)
        chains = [*((65_536, H, h) for H, h in self.wide), self.narrow]
        found = [{"kind": "chain", "d": d, "H": H, "h": h} for d, H, h in chains]
        found += [
            {"kind": "block", "d": d, "H": H, "h": scale**2}
            for d in self.widths
            for scale in self.scales
            for H in self.heads
        ]
        found.append({"kind": "causal", "d": widest, "H": self.heads[0], "h": 1.0})
        return [*found, {"kind": "reused", "d": widest, "H": self.heads[0], "h": self.reused**2}]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        kind, d, H, h = (condition[name] for name in ("kind", "d", "H", "h"))
        reach = REACH / 4 if kind == "reused" else REACH
        layers = sorted({round(reach * k / (self.points - 1) / math.log1p(h)) for k in range(self.points)})
        g = stream(seed, "odds", kind, d, H, str(h), device=device)
        if kind == "chain":
            G = start(self.prompt, 0.0, self.paths, device, dtype)
            heads = matched_law(d, 0.0)
            u = simulate_gram(G, layers[-1], math.sqrt(h * H), H, heads, 0.0, generator=g, record=layers).mean_overlap
        else:
            x = layer_norm(torch.randn(self.replicates, self.n, d, generator=g, device=device, dtype=torch.float32))
            G = overlaps(normalise(x.to(dtype)))
            u = self._blocks(x, layers, condition, g, seed)
        first = u[0].cpu().numpy()
        law = np.stack([odds_after(first, h, layer) for layer in layers])
        if kind == "causal":
            law = causal_law(G, h, layers)
        clock = np.stack([logistic_overlap(h * layer, first) for layer in layers])
        return rows({"layer": layers, "replicate": range(len(first))}, {"u": u, "law": law, "clock": clock})

    def _blocks(self, x: torch.Tensor, layers: list[int], condition: dict, g: torch.Generator, seed: int):
        kept = []
        for layer in range(layers[-1] + 1):
            if layer:
                drawn = stream(seed, "odds, one layer", device=x.device) if condition["kind"] == "reused" else g
                causal = condition["kind"] == "causal"
                x = post_norm_block(x, condition["h"] ** 0.5, condition["H"], generator=drawn, causal=causal)
            if layer in layers:
                kept.append(normalise(x.double()).mean(dim=-2).square().sum(dim=-1))
        return torch.stack(kept)


@dataclass(frozen=True, kw_only=True)
class Deep(Odds):
    """HT-25.c: blocks of ``Odds`` alone, as wide as small language models and 48 deep. Rows: those of ``Odds``."""

    widths: tuple[int, ...] = (768,)
    scales: tuple[float, ...] = (0.35,)  # 48 layers reach REACH
    heads: tuple[int, ...] = (1, 12)

    tiers: ClassVar = {"ci": {"widths": (48,), "n": 16, "replicates": 16}, "cpu": {}}
    tiny: ClassVar = {"widths": (24,), "n": 4, "replicates": 4, "points": 3}

    def conditions(self) -> list[dict]:
        return [condition for condition in super().conditions() if condition["kind"] == "block"]


def causal_law(gram: torch.Tensor, h: float, layers: list[int]) -> np.ndarray:
    """u after these layers of infinite width, hot and with a causal mask: token i reads the mean of tokens 1 to i."""
    n = gram.shape[-1]
    attention = torch.ones(n, n, dtype=gram.dtype, device=gram.device).tril()
    attention = attention / attention.sum(dim=-1, keepdim=True)
    kept = []
    for layer in range(layers[-1] + 1):
        if layer:
            gram = wide_layer(gram, attention @ gram @ attention.mT, h)
        if layer in layers:
            kept.append(gram.mean(dim=(-2, -1)).cpu().numpy())
    return np.stack(kept)


@dataclass(frozen=True, kw_only=True)
class TwoTokens(Experiment):
    """HT-5: two tokens, moments of the overlap for several numbers of heads, against the Fokker-Planck equation.

    Rows: logit_std, H, replicate (a mean over ``batch`` paths), layer, tau, first, second (E R, E R^2), and the same
    with _theory.
    """

    d: int = 8
    logit_stds: tuple[float, ...] = (0.0, 2.0)
    heads: tuple[int, ...] = (1, 2, 6, 32)
    h: float = 0.03
    taus: tuple[float, ...] = (0.3, 0.6, 1.2, 1.8, 2.4, 3.0)
    r0: float = 0.0
    replicates: int = 48
    batch: int = 300

    tiers: ClassVar = {
        "ci": {"heads": (1, 2, 6), "taus": (0.6, 1.8, 3.0), "replicates": 24, "batch": 300},
        "cpu": {"heads": (1, 2, 6, 16), "batch": 200},
    }
    tiny: ClassVar = {"heads": (1, 2), "taus": (0.6, 1.2), "replicates": 4, "batch": 5}
    deterministic: ClassVar = {"first_theory": 1e-7, "second_theory": 1e-7}

    def conditions(self) -> list[dict]:
        return [{"logit_std": s, "H": H} for s in self.logit_stds for H in self.heads]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        s, H = condition["logit_std"], condition["H"]
        eta, law = math.sqrt(self.h * H), matched_law(self.d, s)
        layers = layer_counts(self.taus, eta, H)
        G = start(2, self.r0, self.replicates * self.batch, device, dtype)
        g = stream(seed, "two tokens", str(s), H, device=device)
        chain = simulate_gram(G, layers[-1], eta, H, law, 1.0, generator=g, record=layers)
        R = chain.gram[..., 0, 1].reshape(len(layers), self.replicates, self.batch)
        exact = two_token_pde(self.d, 1.0, law.sigma_a, self.r0, chain.tau)
        theory = {"first_theory": exact.first[:, None], "second_theory": exact.second[:, None]}
        return rows(
            {("layer", "tau"): (layers, chain.tau), "replicate": range(self.replicates)},
            {"first": R.mean(dim=-1), "second": R.square().mean(dim=-1), **theory},
        )


@dataclass(frozen=True, kw_only=True)
class WeakError(Experiment):
    """HT-6: the error of E R of two tokens at one tau, for several steps and numbers of heads.

    The attention is not uniform: at beta = 0 heads enter by h = eta^2/H alone, and step and heads are one measurement.

    Rows: eta, H, replicate (a mean over ``batch`` paths), h, error.
    """

    d: int = 8
    logit_std: float = 2.0
    tau: float = 1.92
    cases: tuple[tuple[float, int], ...] = ((0.8, 1), (0.4, 1), (0.2, 1), (0.8, 4))
    replicates: int = 48
    batch: int = 20_000

    tiers: ClassVar = {
        "ci": {"cases": ((0.8, 1), (0.4, 1), (0.8, 4)), "replicates": 24, "batch": 4000},
        "cpu": {"batch": 8000},
    }
    tiny: ClassVar = {"replicates": 4, "batch": 20}

    def conditions(self) -> list[dict]:
        return [{"eta": eta, "H": H} for eta, H in self.cases]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        eta, H = condition["eta"], condition["H"]
        (layer,) = layer_counts([self.tau], eta, H)
        law = matched_law(self.d, self.logit_std)
        exact = two_token_pde(self.d, 1.0, law.sigma_a, 0.0, [self.tau]).first[0]
        g, errors = stream(seed, "weak error", str(eta), H, device=device), []
        for _ in range(self.replicates):  # one replicate at a time: they need not fit into memory together
            chain = simulate_gram(start(2, 0.0, self.batch, device, dtype), layer, eta, H, law, 1.0, generator=g)
            errors.append(chain.gram[-1, :, 0, 1].mean().item() - exact)
        return rows({"replicate": range(self.replicates)}, {"h": eta**2 / H, "error": errors})


def ratio(one: pd.Series, other: pd.Series) -> Estimate:
    """|mean| of one series over |mean| of the other, the interval from both at a joint level."""
    above, below = (interval(values, 1 - (1 - LEVEL) / 2) for values in (one, other))
    top, bottom = (sorted((abs(each.low), abs(each.high))) for each in (above, below))
    least = 0.0 if above.low < 0 < above.high else top[0]
    floor = 0.0 if below.low < 0 < below.high else bottom[0]
    return Estimate(abs(above.value / below.value), above.n, least / bottom[1], top[1] / floor if floor else np.inf)


def error_ratio(large: tuple[float, int], small: tuple[float, int]) -> Measure:
    """|error| at (eta, H) = large over |error| at small."""

    def measure(rows: pd.DataFrame) -> Estimate:
        return ratio(*(rows[np.isclose(rows["eta"], eta) & (rows["H"] == H)]["error"] for eta, H in (large, small)))

    return measure


def block_gap(value: str, where: str = "h <= 1") -> Measure:
    """The mean of ``value`` over draws at the scale, number of heads and layer where it is farthest from 0."""
    widest = "kind == 'block' and d >= 512 and layer > 0"
    return mean(value, f"{widest} and {where}", by=["h", "H", "layer"], decides=farthest_from(0))


def motionless(rows: pd.DataFrame) -> Estimate:
    """The gap of tokens that keep the overlap with which they start."""
    cases = ["kind", "d", "H", "h", "replicate"]
    first = rows[rows["layer"] == 0].set_index(cases)["u"]
    still = first.loc[pd.MultiIndex.from_frame(rows[cases])].to_numpy()
    return block_gap("u - law")(rows.assign(u=still))


HOT = "kind == 'chain' and d == 256 and h < 0.03 and layer > 0"
SAME_CLOCK = error_ratio((0.8, 4), (0.4, 1))  # four heads, or half the step: both have one h

STACKS = {"unit": "mean overlap", "judged_at": RECORDED, "control": motionless, "scale": {"cpu": "ours"}}
CLAIMS = (
    on_page(
        "HT-2.a",
        plain="At Gaussian initialisation the average pull of a head is zero: all motion of the tokens is noise.",
        source="digest",
        where="version 1, Gaussian case and `lem:lemma_app`",
    ),
    on_page("HT-3.a", source="digest", where="version 1, `lem:Ito_formula`; the bracket is ours"),
    statistic(
        "HT-5.a",
        r"At $h=0.03$ the chain is near the diffusion: for two tokens, from one head to many, hot and cold, $\mathbb ER$ follows the Fokker–Planck equation over $\tau$.",
        TwoTokens,
        mean("first - first_theory", by=["logit_std", "H", "tau"], decides=farthest_from(0)),
        r"$\mathbb ER$ of the chain less that of the Fokker–Planck equation, worst case",
        within(0, 0.035),
        plain="A deep stack of small random layers behaves like a diffusion in which all tokens share one noise.",
        unit="overlap",
        source="digest",
        where="version 1, `thm:weak_error_clean`, `cor:weak_error_centered`; the margin does not tell hot from cold",
        control=mean("-first_theory", by=["logit_std", "H", "tau"], decides=farthest_from(0)),  # two tokens that stay
    ),
    statistic(
        "HT-6.a",
        r"Half the step, $\eta=0.4$ in place of $0.8$, divides the weak error of two tokens by more than $2\sqrt2$: nearer to the four of an error of order $\eta^2$ than to the two of one of order $\eta$.",
        WeakError,
        error_ratio((0.8, 1), (0.4, 1)),
        r"two tokens at logit deviation 2, error at $\eta=0.8$ over that at $0.4$",
        at_least(2**1.5, "2^{3/2}"),  # the middle of 2, order one in the step, and 4, order two
        unit="ratio of errors",
        source="digest",
        where=r"version 1, `thm:weak_error_clean`, at two steps, which bounds the error by $O(\eta)$; order two is ours",
        judged_at=RECORDED,
        control=SAME_CLOCK,
        horizon=r"$\eta=0.8$ and $0.4$ at $\tau=1.92$",
        paper_value=r"$O(\eta)$",
    ),
    statistic(
        "HT-7",
        r"In small steps, $h=0.02$, the mean overlap of hot attention at $d=256$ is logistic, $\dot u=u(1-u)$.",
        Odds,
        mean("u - clock", HOT, by=["layer"], decides=farthest_from(0)),
        r"$n=8$, $d=256$, mean overlap less the logistic at the depth where it is farthest off",
        within(0, 0.03),
        plain="In wide networks hot attention makes the mean overlap of a prompt grow along the logistic curve.",
        unit="mean overlap",
        source="digest",
        where="version 1, `thm:clustering_small_beta`",
        control=mean("1 / 8 - clock", HOT, by=["layer"], decides=farthest_from(0)),  # tokens that stay
        scale={"cpu": "ours"},
    ),
    on_page(
        "HT-25.a",
        where="entered in the ledger after its check had first run; the bound, five standard errors, is that of all checks",
    ),
    statistic(
        "HT-25.b",
        r"In a stack of post-LayerNorm attention blocks of width $512$, freshly drawn, with residual scales $s$ from $0.2$ to $1$ and one head or eight, the mean overlap is that of odds multiplied by $1+s^2$ in each block.",
        Odds,
        block_gap("u - law"),
        "mean overlap less the law of the odds, at the scale, number of heads and depth where it is farthest off",
        within(0, 0.06),
        comparison=("the small-step clock, scales from 1/2 on", block_gap("u - clock", "0.2 < h <= 1")),
        horizon="141 blocks, eight heads",
        **STACKS,
    ),
    statistic(
        "HT-25.c",
        r"In a stack of $48$ post-LayerNorm attention blocks of width $768$, freshly drawn, with residual scale $s=0.35$ and one head or twelve, the mean overlap is that of odds multiplied by $1+s^2$ in each block.",
        Deep,
        block_gap("u - law"),
        "mean overlap less the law of the odds, at the number of heads and depth where it is farthest off",
        within(0, 0.06),
        horizon="48 blocks, twelve heads",
        **STACKS,
    ),
)


def alike(rows: pd.DataFrame) -> Figure:
    """Mean overlap against depth in blocks of three scales, with the law of the odds as lines; rows of ``Odds``."""
    blocks = largest(rows).query("kind == 'block' and h <= 1")
    blocks = blocks[blocks["d"] == blocks["d"].max()]
    figure, ax = plt.subplots(figsize=(5.4, 2.7))
    ends, begun = [], blocks.loc[blocks["layer"] == 0, "u"].mean()
    for (h, part), colour in zip(blocks.groupby("h"), COLOURS, strict=False):
        depth = np.geomspace(1, 1.5 * blocks["layer"].max(), 200)
        ax.plot(depth, odds_after(begun, h, depth), color=colour, linewidth=1)
        means = part[part["layer"] > 0].groupby(["layer", "H"])["u"].mean()
        ax.plot(means.index.get_level_values("layer"), means, "o", color=colour, alpha=0.7)
        half = math.log((1 - begun) / begun) / math.log1p(h)
        words = {1.0: "strong", 0.25: "medium", 0.04: "weak"}.get(round(h, 4), "residual")
        beside(ax, half, 0.5, f"{words}:\nscale {h**0.5:g}", colour, (-9, 4), ha="right")
        ends.append(f"scale {h**0.5:g}, {means.iloc[-1]:.2f} after {part['layer'].max()}")
    ax.set(xscale="log", xlabel="layers passed", xlim=(0.95, depth[-1]), ylim=(-0.03, 1.03))
    ax.set(ylabel="how alike the tokens are:\n0 unrelated, 1 the same", yticks=[0, 0.5, 1])
    plain_log(ax.xaxis, [each for each in (1, 2, 5, 10, 20, 50, 100) if each <= blocks["layer"].max()])
    panel_label(ax, "Untrained layers make all tokens alike, as one formula says")
    figure.set_label(f"Mean overlap of tokens against depth, on an S for each scale: {'; '.join(ends)} layers.")
    return figure
