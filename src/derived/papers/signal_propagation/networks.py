"""Random softmax transformers with few tokens against the recurrences, and what softmax adds where it is not uniform.

column                  meaning
J_without_K             the recurrence of J with K dropped
J_without_attention     the MLP's factors alone, at the right q and p
pooled_as_independent   what the recurrence from (1, 0) says of a pooled gradient
J_frozen, J_code        uniform attention; the public code's weights of softmax, without its derivative
J_first, J_softmax      with the derivative of softmax: to first order in sigma^2, and at any sigma
"""

from dataclasses import dataclass
from typing import ClassVar

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure

from derived.lab.claims import Claim, at_least, at_most, between, statistic
from derived.lab.experiment import Experiment, rows
from derived.lab.measure import Measure, highest, jointly, lowest, mean
from derived.lab.plot import BLUE, MUTED, RED, THEORY, largest, mean_and_reach, panel_label, plain_log
from derived.lab.rng import stream
from derived.lab.stats import Estimate

from .marks import NAMES
from .measured import measure
from .measures import farthest, fold_error
from .model.jacobian import apjn_hutchinson
from .model.kernels import NormKernel, kernel_of
from .model.meanfield import MeanFieldTrajectory, propagate, softmax_growth
from .model.softmax import AttentionWeights
from .model.transformer import RandomTransformer, Sigmas, equiangular_tokens


@dataclass(frozen=True, kw_only=True)
class Drawn(Experiment):
    """Blocks, variances, squashing scale and first tokens of the networks that both experiments draw."""

    depth: int = 8
    a: float = 1.0
    s: float = 1.0
    alpha: float = 1.0
    q0: float = 1.0
    p0: float = 0.2

    dtype: ClassVar = torch.float32


@dataclass(frozen=True, kw_only=True)
class Networks(Drawn):
    """SP-2, 3, 4, 18: random softmax transformers with equiangular tokens against the recurrences, block by block.

    Rows: replicate (an initialisation), b; q, p, J, K, pooled as measured, and the same with ``_theory``; theories that
    must miss: ``J_without_K``, ``J_without_attention`` (a = 0 backwards), ``pooled_as_independent`` (J from K^B = 0),
    ``q_apart``, ``p_apart``, ``K_apart`` (from tokens without overlap).
    """

    width: int = 256
    n: int = 12
    heads: tuple[int, ...] = (1, 4)
    parts: int = 6
    inits: int = 32
    probes: int = 8

    tiers: ClassVar = {"ci": {"width": 128, "parts": 1, "probes": 4}, "cpu": {}}
    tiny: ClassVar = {"width": 32, "n": 4, "depth": 3, "inits": 4, "probes": 2}
    deterministic: ClassVar = {name: 1e-9 for name in ("q_theory", "p_theory", "J_theory", "K_theory", "pooled_theory")}

    def conditions(self) -> list[dict]:
        norms = ("layernorm", "erf", "tanh")
        return [
            {"norm": norm, "heads": heads, "part": part}
            for norm in norms
            for heads in self.heads
            for part in range(self.parts)
        ]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        norm, heads, part = condition["norm"], condition["heads"], condition["part"]
        where = {"dtype": dtype, "device": device}
        sigmas = Sigmas(v=1.0, o=self.a**0.5, one=1.0, two=self.s**0.5)
        model = RandomTransformer(
            width=self.width,
            depth=self.depth,
            norm=norm,
            alpha=self.alpha,
            sigmas=sigmas,
            num_heads=heads,
            num_networks=self.inits,
            generator=stream(seed, "networks", heads, part),  # the same weights for every normaliser: compared in pairs
            **where,
        )
        size = (self.n, self.width, self.q0, self.p0)
        x = equiangular_tokens(*size, batch=(self.inits,), generator=stream(seed, "tokens", heads, part), **where)
        theory = self._theory(kernel_of(norm, self.alpha), sigmas)
        generator = stream(seed, "probes", norm, heads, part)
        return measure(model, x, probes=self.probes, generator=generator, theory=theory)

    def _theory(self, kernel: NormKernel, sigmas: Sigmas) -> dict[str, np.ndarray]:
        """The recurrences by block (depth + 1,): right ones, and wrong ones that must miss."""
        # SP-2, 3, 18: what must describe the networks; SP-4 and the controls: what must miss.
        common = {"kernel": kernel, "s": sigmas.s, "n": self.n, "depth": self.depth}
        trajectory = propagate(self.q0, self.p0, a=sigmas.a, **common)
        pooled = propagate(self.q0, self.p0, a=sigmas.a, output_gradient="pooled", **common)
        without = propagate(self.q0, self.p0, a=sigmas.a, cross_token=False, **common)
        apart = propagate(self.q0, 0.0, a=sigmas.a, **common)
        return {
            "q_theory": trajectory.q,
            "p_theory": trajectory.p,
            "J_theory": trajectory.J_backward,
            "K_theory": trajectory.K_backward,
            "pooled_theory": pooled.J_backward,
            "J_without_K": without.J_backward,
            "pooled_as_independent": trajectory.J_backward,
            "q_apart": apart.q,
            "p_apart": apart.p,
            "K_apart": apart.K_backward,
            "J_without_attention": mlp_only(trajectory, kernel, sigmas, self.n),
        }


def mlp_only(trajectory: MeanFieldTrajectory, kernel: NormKernel, sigmas: Sigmas, n: int) -> np.ndarray:
    """J from the MLP's factors alone, at the right (q, p): the backward recurrence without its attention terms."""
    q, p = trajectory.q[:-1], trajectory.p[:-1]
    q_tilde, p_tilde, *_ = kernel.moments(q, p)
    mixed = sigmas.a * (p_tilde + (q_tilde - p_tilde) / n)  # what uniform attention adds to q and to p
    # J^{B,b} = prod_{b' >= b} (1 + (s/2) q^_{b'+1/2}), in logarithms.
    gain = np.log1p(sigmas.s / 2 * kernel.moments(q + mixed, p + mixed).q_hat)
    return np.exp(np.concatenate([np.cumsum(gain[::-1])[::-1], [0.0]]))


def annealed(q: np.ndarray, p: np.ndarray, n: np.ndarray, sigma: np.ndarray) -> AttentionWeights:
    """The public code's weights of softmax attention, without its derivative: f = 1/(1 + (n - 1) e^{-t q~}) and g the
    same with p~, t = sigma^2 (q~ - p~). [repo]"""
    t = np.square(sigma) * (q - p)
    f, g = (1 / (1 + (n - 1) * np.exp(-t * each)) for each in (q, p))
    return AttentionWeights(f, g, f, (n - 1) * g, (1 - f) / (n - 1), 1 - g)


@dataclass(frozen=True, kw_only=True)
class SharpAttention(Drawn):
    """SP-21: random softmax transformers at query and key weights from small to large, against four theories.

    ``n4``: also four heads, at one number of tokens and sigma = 1. Rows: norm, n, sigma, heads, replicate; J from output
    to input, and J_frozen, J_code, J_first, J_softmax.
    """

    widths: tuple[tuple[int, int, int], ...] = ((8, 256, 64), (16, 256, 64), (64, 384, 16))  # tokens, width, networks
    sigmas: tuple[float, ...] = (0.3, 1.0, 2.0, 3.0)
    n4: int = 16
    probes: int = 4
    draws: int = 500
    batch: int = 16

    tiers: ClassVar = {"ci": {"widths": ((8, 64, 16),), "sigmas": (0.3, 1.0, 3.0), "n4": 8, "draws": 100}, "cpu": {}}
    tiny: ClassVar = {"widths": ((4, 16, 4),), "n4": 4, "depth": 2, "draws": 10, "batch": 2}
    deterministic: ClassVar = {"J_frozen": 1e-9, "J_code": 1e-9, "J_first": 1e-9, "J_softmax": 1e-6}

    def conditions(self) -> list[dict]:
        cases = [(n, sigma, 1) for n, *_ in self.widths for sigma in self.sigmas] + [(self.n4, 1.0, 4)]
        return [
            {"norm": norm, "n": n, "sigma": sigma, "heads": heads}
            for norm in ("layernorm", "erf")
            for n, sigma, heads in cases
        ]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        norm, n, sigma, heads = (condition[name] for name in ("norm", "n", "sigma", "heads"))
        width, inits = next((width, inits) for tokens, width, inits in self.widths if tokens == n)
        found = [
            self._measured(norm, n, sigma, heads, width, part, seed=seed, dtype=dtype, device=device)
            for part in range(inits // self.batch)
        ]
        common = {"kernel": kernel_of(norm, self.alpha), "a": self.a, "s": self.s, "n": n, "depth": self.depth}
        of_tables = stream(seed, "sharp tables", norm, n, sigma)
        theories = {
            "J_frozen": propagate(self.q0, self.p0, **common),
            "J_code": propagate(self.q0, self.p0, sigma=sigma, weights=annealed, **common),
            "J_first": propagate(self.q0, self.p0, sigma=sigma, **common),
            "J_softmax": softmax_growth(self.q0, self.p0, sigma=sigma, draws=self.draws, generator=of_tables, **common),
        }
        columns = {name: path.J_backward[0] for name, path in theories.items()}
        return rows({"replicate": range(inits)}, {"J": torch.cat(found), **columns})

    def _measured(self, norm, n, sigma, heads, width, part, *, seed, **where) -> torch.Tensor:
        """J from output to input of ``batch`` networks, the mean over probes."""
        sharp = sigma**0.5
        sigmas = Sigmas(q=sharp, k=sharp, v=1.0, o=self.a**0.5, one=1.0, two=self.s**0.5)
        model = RandomTransformer(
            width=width,
            depth=self.depth,
            norm=norm,
            alpha=self.alpha,
            sigmas=sigmas,
            num_heads=heads,
            num_networks=self.batch,
            generator=stream(seed, "sharp networks", n, sigma, heads, part),  # the same for both normalisers
            **where,
        )
        of_tokens, of_probes = (stream(seed, f"sharp {name}", n, sigma, heads, part) for name in ("tokens", "probes"))
        x = equiangular_tokens(n, width, self.q0, self.p0, batch=(self.batch,), generator=of_tokens, **where)
        return apjn_hutchinson(model, x, num_probes=self.probes, generator=of_probes).J.mean(dim=1)[:, 0]


# Claims: SP-3, 4, 18 on nearly uniform attention, SP-21 on sharp attention.

CASES = ("norm", "heads")
RECORDED = {"judged_at": ("cpu",)}


def described(
    id: str, statement: str, column: str, limit: float, instead: str, rival: str = "", why: str = "", **fields
) -> Claim:
    """The fold error of a measured column against the recurrence, worst of normaliser and number of heads.

    The column ``instead`` takes the recurrence's place: in the control, or, where it is another working theory, in the
    comparison named ``rival``; ``why`` then says why there is no control.
    """
    measure = jointly(fold_error(column), CASES, highest)

    def wrong(rows: pd.DataFrame) -> Estimate:
        return measure(rows.assign(**{f"{column}_theory": rows[instead]}))

    arms = {"comparison": (rival, wrong), "control": why} if rival else {"control": wrong}
    return statistic(
        id,
        statement,
        Networks,
        measure,
        "geometric-mean fold error over blocks of the mean over initialisations, the worst norm and number of heads, "
        "jointly over these",
        at_most(limit),
        unit="fold error",
        **arms | RECORDED | fields,
    )


def over(theory: str) -> Measure:
    """J over a theory, the case of normaliser, tokens, sigma and heads that is farthest from one, jointly over these."""
    return mean(f"J / {theory}", by=["norm", "n", "sigma", "heads"], decides=farthest)


CLAIMS = (
    described(
        "SP-3.a",
        r"With $\sigma_Q^2\sigma_K^2=0.094$ and twelve tokens the recurrence of $J$ describes softmax transformers of "
        "finite width.",
        "J",
        1.03,
        instead="J_without_K",
        source="repo",
        where="code",
        paper_value="1 to 2 %",
        plain="In small random networks whose attention is nearly uniform, four numbers per block predict how gradients "
        "grow, to three per cent.",
    ),
    statistic(
        "SP-4.a",
        r"Without $K$ the recurrence gives an amplification $J^{B,0}$ at least 10 % too small at $n=12$, $a=1$.",
        Networks,
        mean("J / J_without_K", "b == 0", by=CASES, decides=lowest),
        r"$J^{B,0}$ measured over the value without $K$, the lowest norm and number of heads, jointly over these",
        at_least(1 / 0.9, "1/0.9"),
        unit="ratio to the recurrence without K",
        comparison=("the recurrence with $K$", mean("J / J_theory", "b == 0", by=CASES, decides=lowest)),
        control="a theory that says nothing of gradients is farther off still, and would pass",
        paper_value="1.5 % → 0.8 % at $n=197$",
        **RECORDED,
    ),
    described(
        "SP-18",
        "The gradient of a head that pools all tokens is amplified as the recurrence from $(1,1)$ says.",
        "pooled",
        1.09,
        instead="pooled_as_independent",
        rival="the recurrence for independent output gradients",
        why="a theory without growth fails for every gradient, as the control of SP-3.a shows",
    ),
    statistic(
        "SP-21",
        r"From $\sigma_Q\sigma_K=0.3$ to $3$, at 8, 16 and 64 tokens, after LayerNorm and after Derf, random softmax "
        "transformers of 8 blocks have the $J^{8,0}$ of the recurrence with the derivative of softmax, within a factor of "
        "1.25.",
        SharpAttention,
        over("J_softmax"),
        r"measured over predicted, the normaliser, $n$, $\sigma_Q\sigma_K$ and number of heads that reach farthest from one, "
        "jointly over these",
        between(1 / 1.25, 1.25, "[1/1.25, 1.25]"),
        unit="ratio to the recurrence",
        plain="With softmax's own derivative the recurrence predicts networks whose attention is sharp; with frozen "
        "attention it falls short by a factor of several.",
        comparison=("the public code's weights, without the derivative", over("J_code")),
        control=over("J_frozen"),
        **RECORDED,
    ),
)


# Figure: sharp attention against four theories.

THEORIES = {
    "J_frozen": ("frozen, uniform", RED),
    "J_code": ("public code's weights", MUTED),
    "J_softmax": ("with softmax's derivative", BLUE),
}


def softmax(rows: pd.DataFrame) -> Figure:
    """J over three theories against sigma, a panel for each number of tokens; rows of ``SharpAttention``."""
    rows = largest(rows).query("heads == 1")
    tokens = sorted(rows["n"].unique())
    figure, axes = plt.subplots(1, len(tokens), figsize=(7.4, 3.3), sharey=True, squeeze=False)
    words = []
    for ax, n in zip(axes[0], tokens, strict=True):
        ax.axhline(1, **THEORY | {"linewidth": 0.8})
        for theory, (name, color) in THEORIES.items():
            for norm, marker in (("layernorm", "o"), ("erf", "s")):
                part = rows[(rows["n"] == n) & (rows["norm"] == norm)]
                cells = [one["J"] / one[theory] for _, one in part.groupby("sigma")]
                ratio, reach = np.transpose([mean_and_reach(one) for one in cells])
                at, lead = sorted(part["sigma"].unique()), n == tokens[0] and norm == "layernorm"
                label = name if lead else None
                kind = "-" if norm == "layernorm" else "--"
                ax.errorbar(at, ratio, reach, fmt=marker + kind, color=color, markersize=4, linewidth=1.2, label=label)
                words.append(f"{n} tokens, {NAMES[norm]}, over {name}: {', '.join(f'{each:.2f}' for each in ratio)}")
        panel_label(ax, f"{n} tokens")
        ax.set(xlabel=r"sharpness $\sigma_Q\sigma_K$", yscale="log")
        plain_log(ax.yaxis, (1, 2, 3, 5, 8))
    axes[0, 0].set_ylabel("networks over theory")
    axes[0, 0].legend(fontsize=8, loc="upper left")
    figure.suptitle("Frozen attention misses sharp networks; the derivative of softmax mends it", x=0.02, ha="left")
    figure.set_label(f"Measured J over three theories against the sharpness of attention. {'; '.join(words)}.")
    return figure
