"""Away from the training ecology: mixing in a new one, and what a merged pair pays (TE-7, 8).

alpha_star    share of the new ecology from which sigma^2 of the pair exceeds epsilon
alpha_split   share from which telling the pair apart lowers J_beta
"""

from dataclasses import dataclass
from typing import ClassVar

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from derived.lab.claims import on_page
from derived.lab.experiment import Experiment
from derived.lab.plot import BLUE, INK, RED, THEORY, beside, panel_label, shades
from derived.lab.rng import stream

from .data.ecologies import random_ecology, simplex
from .model.codes import split_cost, split_gain
from .model.deployment import injection_threshold, pair_bound, split_injection_threshold
from .model.ecology import FiniteEcology, mix, rounding_bound
from .model.partitions import cells, normal_form, set_partitions


@dataclass(frozen=True, kw_only=True)
class Injection(Experiment):
    """TE-7: pairs of worlds that the base ecology barely tells apart and a new one tells apart, mixed at each share.

    Two worlds in two ecologies; both levels lie a share of the way from one to the other: epsilon for sigma^2, beta h
    for the gain. Rows: replicate, alpha, sigma2 and gain (of the mixture), linear2 and linear (the straight lines),
    epsilon, level (beta h), alpha_star, alpha_split, gap (of both straight lines), bound, crossing (|sigma^2 - epsilon|
    at alpha_star and |J of merged less J of split| at alpha_split), before and after (J of merged less J of split a
    little below and above alpha_split), wrong (the price of this pair, and a level at which both shares agree for it,
    used for an independent pair: J of split less J of merged at the mean of its shares where it counts as resolved
    before the split pays, else 0).
    """

    replicas: int = 40
    alphas: tuple[float, ...] = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)

    tiny: ClassVar = {"replicas": 8, "alphas": (0.0, 0.5, 1.0)}
    deterministic: ClassVar = {"alpha_star": 1e-9, "alpha_split": 1e-9}

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        return pd.concat([self.one(seed, replicate) for replicate in range(self.replicas)], ignore_index=True)

    def ecologies(self, seed: int, replicate: int, which: str) -> tuple[FiniteEcology, FiniteEcology]:
        """A base that mixes the two laws nearly, and a new ecology that does not; two worlds, the same prior."""
        generator = stream(seed, "injection", which, replicate)
        shared, apart = simplex((1, 2, 4), generator), simplex((2, 2, 4), generator)
        prior, near = np.array([0.4, 0.6]), simplex((2, 2, 4), generator)
        base = FiniteEcology(prior, simplex((2,), generator), 0.9 * shared + 0.1 * near)
        return base, FiniteEcology(prior, simplex((2,), generator), apart)

    def one(self, seed: int, replicate: int) -> pd.DataFrame:
        base, new = self.ecologies(seed, replicate, "pair")
        low, high = (float(each.hellinger()[0, 1]) for each in (base, new))
        epsilon = low + 0.3 * (high - low)
        first, last = (split_gain(each, [0], [1]) for each in (base, new))
        beta = (first + 0.4 * (last - first)) / split_cost(base, [0], [1])
        star = injection_threshold(base, new, (0, 1), epsilon)
        split = split_injection_threshold(base, new, [0], [1], beta)
        found = []
        for alpha in self.alphas:
            mixture = mix(base, new, alpha)
            sigma2, gain = float(mixture.hellinger()[0, 1]), split_gain(mixture, [0], [1])
            straight = (low + alpha * (high - low), first + alpha * (last - first))
            found.append(
                {"alpha": alpha, "sigma2": sigma2, "gain": gain, "linear2": straight[0], "linear": straight[1]}
            )
            found[-1]["gap"] = max(abs(sigma2 - straight[0]), abs(gain - straight[1]))
        crossing = abs(float(mix(base, new, star).hellinger()[0, 1]) - epsilon)
        row = {
            "epsilon": epsilon,
            "beta": beta,
            "level": beta * split_cost(base, [0], [1]),
            "bound": rounding_bound(new),
        }
        row |= {"alpha_star": star, "alpha_split": split}
        row["crossing"] = max(crossing, abs(saving(base, new, split, beta)))
        row["before"], row["after"] = (saving(base, new, split + shift, beta) for shift in (-1e-3, 1e-3))
        row["wrong"] = self.wrong(seed, replicate, base, new, beta)
        return pd.DataFrame(found).assign(replicate=replicate, **row)

    def wrong(self, seed: int, replicate: int, base: FiniteEcology, new: FiniteEcology, beta: float) -> float:
        """The level that is right for this pair of ecologies, used for another: by how much the merge is still better
        half way between the two shares; 0 where the level errs on the other side or does not apply."""
        share = split_injection_threshold(base, new, [0], [1], beta)
        epsilon = float(mix(base, new, share).hellinger()[0, 1])  # at this level the two shares of the pair agree
        base, new = self.ecologies(seed, replicate, "other")
        try:
            star = injection_threshold(base, new, (0, 1), epsilon)
            split = split_injection_threshold(base, new, [0], [1], beta)
        except ValueError:
            return 0.0
        return max(0.0, -saving(base, new, (star + split) / 2, beta)) if star < split else 0.0


def saving(base: FiniteEcology, new: FiniteEcology, alpha: float, beta: float) -> float:
    """J_beta of the merged pair less that of the split pair, in the mixture: positive where the split pays."""
    mixture = mix(base, new, alpha)
    return mixture.objective([0, 0], beta) - mixture.objective([0, 1], beta)


@dataclass(frozen=True, kw_only=True)
class OffEcology(Experiment):
    """TE-8: the simplest optimum of one ecology on another that tells a merged pair apart. A row is one merged pair of
    worlds: replicate, size (worlds in its cell), excess (of the code on the second ecology), cell (what its cell adds
    to it), pair (the bound), ratio (bound over excess), own (bound over what its cell adds: 1 for a cell of two),
    training (excess on the first ecology).
    """

    n: int = 6
    replicas: int = 60

    tiny: ClassVar = {"replicas": 10}
    deterministic: ClassVar = {"excess": 1e-9, "pair": 1e-9}

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        found, partitions = [], set_partitions(self.n)
        partitions = partitions[partitions.max(axis=1) < self.n - 1]  # something must be merged
        for replicate in range(self.replicas):
            classes = partitions[(replicate * 37 + 5) % len(partitions)]
            generator = stream(seed, "off", replicate)
            first = random_ecology(self.n, 3, 4, generator, classes=classes)
            second = FiniteEcology(first.prior, simplex((3,), generator), simplex((self.n, 3, 4), generator, 0.1))
            code = first.quotient()
            training, excess = first.js_excess(code), second.js_excess(code)
            for cell in (each for each in cells(code) if each.size > 1):
                alone = np.arange(self.n)
                alone[cell] = cell[0]
                adds = second.js_excess(normal_form(alone))
                for place, u in enumerate(cell):
                    for w in cell[place + 1 :]:
                        pair = pair_bound(second, int(u), int(w))
                        row = {"replicate": replicate, "size": cell.size, "excess": excess, "cell": adds, "pair": pair}
                        found.append(row | {"ratio": pair / excess, "own": pair / adds, "training": training})
        return pd.DataFrame(found)


# Claims: TE-7 and 8: away from the training ecology. Each is decided by the check cell of its statement on the page.

CLAIMS = (
    on_page("TE-7.a", source="paper", where="Proposition 15; a slip, harmless: Corollary 48 has the right range"),
    on_page("TE-7.b", amends="TE-7.a"),
    on_page("TE-7.c", source="paper", where="comment after Theorem 55, which the page quotes; our reading of it"),
    on_page("TE-7.d", where=r"Proposition 47; $\alpha_{\rm JS}$ is ours", amends="TE-7.c"),
    on_page(
        "TE-8.a",
        source="paper",
        where="Proposition 77",
        plain="A code that is perfect in training pays where a merged pair matters: at least so much, by a formula.",
    ),
    on_page("TE-8.b", source="paper", where="Proposition 78"),
    on_page("TE-8.c", source="paper", where='Proposition 46 (a); a slip, harmless: "only" needs the least complexity'),
    on_page("TE-8.d", amends="TE-8.c"),
)


# Figures: Away from the training ecology: rows in, a figure with its alt text as label out.
#
# mark            meaning
# blue            sigma^2 of the pair, and its level epsilon
# orange          gain of the split, and its price


def thresholds(rows: pd.DataFrame) -> Figure:
    """sigma^2 and gain of one pair against the share of the new ecology, and both thresholds; rows of ``Injection``."""
    part = rows[rows["replicate"] == rows["replicate"].min()]
    one = part.iloc[0]
    figure, ax = plt.subplots(figsize=(5.8, 3.6))
    for color, column, level, share, name in (
        (BLUE, "sigma2", "epsilon", "alpha_star", r"distance $\sigma^2$; dashed: told apart"),
        (RED, "gain", "level", "alpha_split", r"gain of a split; dashed: its price"),
    ):
        ax.plot(part["alpha"], part[column], "o", color=color, markersize=4)
        ax.plot(
            part["alpha"], part["linear2" if column == "sigma2" else "linear"], color=color, linewidth=1.0, label=name
        )
        ax.plot([0, one[share]], [one[level]] * 2, color=color, linewidth=0.9, linestyle="--")
        ax.plot([one[share]] * 2, [0, one[level]], color=color, linewidth=0.9, linestyle="--")
    beside(ax, one["alpha_star"], 0, r"$\alpha^*$", BLUE, (-4, 8), ha="right")
    beside(ax, one["alpha_split"], 0, r"$\alpha_{\rm JS}$", RED, (4, 8))
    ax.set(
        xlabel=r"share $\alpha$ of the new ecology", ylabel="gain (nats), squared distance", ylim=(0, None), xlim=(0, 1)
    )
    ax.legend(fontsize=8, loc="upper left")
    panel_label(ax, f"Told apart from {one['alpha_star']:.0%}, worth a split from {one['alpha_split']:.0%}")
    wrong = rows.drop_duplicates("replicate")["wrong"]
    figure.set_label(
        f"Both grow linearly with the share: the squared distance passes its level at {one['alpha_star']:.2f}, the "
        f"gain its "
        f"price at {one['alpha_split']:.2f}. One level for two pairs: in {(wrong > 0).mean():.0%} of {len(wrong)} "
        f"draws "
        f"the other pair counts as resolved while merging it is still better, by up to {wrong.max():.4f} nats."
    )
    return figure


def off_ecology(rows: pd.DataFrame) -> Figure:
    """What a code pays where it was not trained, against the bound of each pair that it merges; rows of
    ``OffEcology``."""
    figure, ax = plt.subplots(figsize=(5.6, 3.8))
    sizes = sorted(rows["size"].unique())
    for color, (size, part) in zip(shades(len(sizes)), rows.groupby("size"), strict=True):
        ax.plot(part["pair"], part["cell"], "o", color=color, markersize=4, alpha=0.8, label=f"{size} worlds")
    ends = np.array([rows["pair"].min(), rows["cell"].max()])
    ax.plot(ends, ends, **THEORY)
    beside(ax, ends[0], ends[0], "bound", INK, (10, 0), fontsize=9)
    ax.set(xscale="log", yscale="log", xlabel="bound of the pair (nats)", ylabel="what its cell pays (nats)")
    panel_label(ax, "A merged cell pays at least its pair's bound")
    ax.legend(title="in the cell", fontsize=8, title_fontsize=8, loc="lower right")
    more = rows.loc[rows["size"] > 2, "own"]
    figure.set_label(
        f"What the cell of a merged pair pays off its ecology against the bound, {len(rows)} pairs: on the bound "
        f"where the "
        f"cell is the pair, above it in larger cells, where the bound is at most {more.max():.2f} of it."
    )
    return figure
