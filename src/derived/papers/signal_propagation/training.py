"""Training small vision transformers, R networks side by side: over depth and alpha, and at equal predicted growth.

symbol     name        meaning                                               axes
loss       losses      mean cross-entropy of each network at each step       (R, steps)
lr(t)      lr, warmup  lr min(1, (t + 1)/warmup), then constant
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure
from numpy.typing import ArrayLike
from scipy import optimize
from torch import Tensor

from derived.lab import stats, training
from derived.lab.checks import check_count, check_positive
from derived.lab.claims import RECORDED, between, reported, statistic, unseen, within
from derived.lab.experiment import Experiment, rows
from derived.lab.measure import Measure, by_draw, chosen, farthest_from, jointly
from derived.lab.plot import beside, largest, mean_and_reach, panel_label, plain_log, shades
from derived.lab.rng import stream
from derived.lab.stats import Estimate

from .data.generated import LabelledImages, template_images
from .model.jacobian import gradient_amplification
from .model.kernels import NormKernel, kernel_of
from .model.meanfield import propagate
from .model.transformer import Sigmas, token_moments
from .model.vit import VisionTransformer


class Trained(NamedTuple):
    """What ``train`` returns; a network that diverged shows NaN or infinity, nothing is clipped."""

    losses: Tensor  # (R, steps), in float64 on the CPU
    test_loss: Tensor  # (R,)
    test_accuracy: Tensor  # (R,)


def train(
    model: VisionTransformer,
    data: LabelledImages,
    test: LabelledImages,
    *,
    steps: int,
    batch_size: int = 128,
    lr: float = 3e-4,
    warmup: int = 0,
    weight_decay: float = 0.05,
    generator: torch.Generator,
) -> Trained:
    """AdamW, betas (0.9, 0.999), linear warm-up over ``warmup`` steps, then a constant rate. [repo]

    Weight decay acts on the weight matrices, not on positions, biases or normalisers. ``data`` and ``test`` hold D
    draws of pictures; network r sees draw r mod D, in batches from ``generator`` with replacement, each draw its own.
    """
    check_count("steps", steps)
    check_count("batch_size", batch_size)
    check_count("warmup", warmup, 0)
    check_positive("lr", lr)
    device, (draws, num) = data.images.device, data.labels.shape
    batches = torch.randint(num, (steps, draws, batch_size), generator=generator, device=generator.device).to(device)
    own = torch.arange(len(model.embedding), device=device) % draws  # the draw that each network sees

    def loss(step: int) -> Tensor:
        picked = own[:, None], batches[step][own]
        return training.mean_cross_entropy(model(data.images[picked]), data.labels[picked])

    # What decays: W_Q .. W_2, the patch embedding and the head; positions and biases have three axes, too.
    def is_matrix(name: str, weight: Tensor) -> bool:
        return weight.ndim == 3 and name not in ("positions", "head_bias")  # one per network: (R, out, in)

    optimiser = training.adamw(model, betas=(0.9, 0.999), weight_decay=weight_decay, decays=is_matrix)
    losses = training.train(loss, optimiser, steps=steps, rate=lambda step: lr * min(1.0, (step + 1) / max(warmup, 1)))
    pairs = zip(test.images.split(batch_size, dim=1), test.labels.split(batch_size, dim=1), strict=True)
    return Trained(losses, *training.evaluate((model(images[own]), labels[own]) for images, labels in pairs))


@dataclass(frozen=True, kw_only=True)
class Trainability(Experiment):
    """SP-17: small Derf vision transformers over depth and alpha, and warm-up at the largest depth and alpha.

    Stands in for ViT-Base on CIFAR-100 (depths 12 to 36, 20 epochs). A replicate has its own classes, pictures and
    batches, which its networks share, and each network its own weights. Each depth and alpha is trained at every rate
    in ``factors`` times its own of ``centres``, (depths, alphas), where a pilot of another seed had its best. Rows:
    rate, replicate; loss (mean over the last tenth of the steps), test_loss, test_accuracy, log_pooled (the prediction)
    and log_measured at initialisation.
    """

    depths: tuple[int, ...] = (6, 12, 24, 36)
    warmup: int = 100
    alphas: tuple[float, ...] = (0.3, 0.6, 1.0, 1.6)
    centres: tuple[tuple[float, ...], ...] = 4 * ((6.3e-4,) * 4,)
    factors: tuple[float, ...] = (0.625, 1.0, 1.6)
    replicates: int = 8
    width: int = 192
    num_heads: int = 3
    size: int = 64
    patch: int = 8
    num_classes: int = 100
    num_train: int = 20_000
    num_test: int = 2_000
    steps: int = 1000
    batch_size: int = 64

    tiers: ClassVar = {
        "ci": {
            **{"depths": (2,), "warmup": 2, "alphas": (0.5, 1.5), "centres": ((1e-3, 1e-3),), "factors": (1.0,)},
            **{"replicates": 2, "width": 24, "num_heads": 2, "size": 16, "num_classes": 4, "num_train": 64},
            **{"num_test": 32, "steps": 2, "batch_size": 8},
        },
        "cpu": {
            **{"depths": (3, 6, 12), "warmup": 50, "alphas": (0.4, 0.8, 1.6), "replicates": 45, "width": 32},
            **{"centres": ((2.5e-3, 2.5e-3, 1.6e-3), (2.5e-3, 2e-3, 1e-3), (2e-3, 8e-4, 4e-4))},
            **{"num_heads": 2, "size": 32, "num_classes": 10, "num_train": 3200, "num_test": 500, "steps": 200},
            **{"batch_size": 16},
        },
        "gpu": {},
    }
    tiny: ClassVar = {"width": 12}
    dtype: ClassVar = torch.float32

    def conditions(self) -> list[dict]:
        grid = [{"depth": depth, "alpha": alpha, "warmup": 0} for depth in self.depths for alpha in self.alphas]
        return [*grid, grid[-1] | {"warmup": self.warmup}]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        data, test = (self._draws(name, seed, dtype, device) for name in ("train", "test"))
        centre = self.centres[self.depths.index(condition["depth"])][self.alphas.index(condition["alpha"])]
        tables = [self._trained(data, test, factor * centre, seed, **condition) for factor in self.factors]
        return pd.concat(tables, ignore_index=True)

    def _trained(
        self, data: LabelledImages, test: LabelledImages, rate: float, seed: int, depth: int, alpha: float, warmup: int
    ) -> pd.DataFrame:
        """A network of each replicate at one rate; the same weights and batches at every rate, and with warm-up."""
        model = VisionTransformer(
            image_size=self.size,
            patch=self.patch,
            width=self.width,
            num_heads=self.num_heads,
            depth=depth,
            num_classes=self.num_classes,
            norm="erf",
            alpha=alpha,
            num_networks=self.replicates,
            generator=stream(seed, "weights", depth, alpha),
            dtype=data.images.dtype,
            device=data.images.device,
        )
        states = model.states(test.images[:, :16])
        loss = training.mean_cross_entropy(model.read_out(states[-1]), test.labels[:, :16]).sum()
        log_measured = gradient_amplification(loss, states)[:, 0].log().numpy()
        q, p, _ = (each.mean(dim=-1).cpu().numpy() for each in token_moments(states[0].detach()))
        kernel = kernel_of("erf", np.full(self.replicates, alpha))
        predicted = pooled_growth(q, p, kernel, states[0].shape[-2], depth)
        options = {"steps": self.steps, "batch_size": self.batch_size, "lr": rate, "warmup": warmup}
        run = train(model, data, test, **options, generator=stream(seed, "batches"))
        tail = max(1, self.steps // 10)
        columns = {"loss": run.losses[:, -tail:].mean(dim=-1), "test_loss": run.test_loss}
        columns |= {"test_accuracy": run.test_accuracy, "log_pooled": predicted, "log_measured": log_measured}
        return rows({"rate": rate, "replicate": range(self.replicates)}, columns)

    def _draws(self, name: str, seed: int, dtype: torch.dtype, device: torch.device) -> LabelledImages:
        """The pictures of every replicate, (replicates, num, ...): each with classes of its own."""
        num = self.num_train if name == "train" else self.num_test
        kind = {"num_classes": self.num_classes, "size": self.size, "dtype": dtype, "device": device}
        return draws_of_pictures(name, "classes", num, self.replicates, seed, kind)


@dataclass(frozen=True, kw_only=True)
class MatchedGrowth(Experiment):
    """SP-22: LayerNorm, Derf at the alpha with LayerNorm's predicted growth, and Derf at a large alpha, trained alike.

    All arms have LayerNorm behind the mean over tokens and before the head, so that only the branches differ. The rate
    is the one of ``rates``, the same for all arms, with the least training loss of ``pilots`` networks of their own;
    then ``replicates`` fresh networks, pictures and batches, shared by the arms. Rows: depth, arm, alpha, stage (pilot or
    judged), rate, replicate; loss, test_loss, test_accuracy and log_pooled, the predicted growth.
    """

    depths: tuple[int, ...] = (12,)
    large: float = 3.0
    rates: tuple[float, ...] = (1.6e-4, 2.5e-4, 4e-4, 6.3e-4, 1e-3, 1.6e-3, 2.5e-3)
    pilots: int = 2
    replicates: int = 16
    width: int = 32
    num_heads: int = 2
    size: int = 32
    patch: int = 8
    num_classes: int = 10
    num_train: int = 3200
    num_test: int = 500
    steps: int = 200
    batch_size: int = 16

    tiers: ClassVar = {
        "ci": {
            **{"depths": (2,), "rates": (1e-3, 2e-3), "pilots": 1, "replicates": 2, "width": 12, "size": 16},
            **{"num_classes": 4, "num_train": 32, "num_test": 16, "steps": 2, "batch_size": 8},
        },
        "cpu": {},
    }
    dtype: ClassVar = torch.float32

    def conditions(self) -> list[dict]:
        return [{"depth": depth, "arm": arm} for depth in self.depths for arm in ("LayerNorm", "matched", "large")]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        depth, arm = condition["depth"], condition["arm"]
        where = {"dtype": dtype, "device": device}
        common = self._model(1, "layernorm", 1.0, depth, stream(seed, "matched growth, start"), **where)
        shown = self._draws("pilot", 1, seed, where)[0].images[:, :64]
        q, p, _ = (float(each.mean()) for each in token_moments(common.states(shown)[0].detach()))
        alpha = {"LayerNorm": 1.0, "large": self.large}.get(arm) or matched_alpha(q, p, common.tokens, depth)
        tables = [self._trained("pilot", self.pilots, rate, arm, alpha, depth, seed, where) for rate in self.rates]
        best = pd.concat(tables).replace(np.inf, np.nan).groupby("rate")["loss"].mean().idxmin()
        tables.append(self._trained("judged", self.replicates, best, arm, alpha, depth, seed, where))
        return pd.concat(tables, ignore_index=True)

    def _model(self, num_networks, norm, alpha, depth, generator, **where) -> VisionTransformer:
        sizes = {"image_size": self.size, "patch": self.patch, "width": self.width, "num_heads": self.num_heads}
        kind = {"norm": norm, "alpha": alpha, "last_norm": "layernorm", "num_classes": self.num_classes}
        return VisionTransformer(**sizes, **kind, depth=depth, num_networks=num_networks, generator=generator, **where)

    def _draws(self, stage: str, count: int, seed: int, where: dict) -> tuple[LabelledImages, LabelledImages]:
        sizes = {"num_classes": self.num_classes, "size": self.size, **where}
        train, test, classes = (f"matched growth, {stage} {name}" for name in ("train", "test", "classes"))
        data = draws_of_pictures(train, classes, self.num_train, count, seed, sizes)
        return data, draws_of_pictures(test, classes, self.num_test, count, seed, sizes)

    def _trained(self, stage, count, rate, arm, alpha, depth, seed, where) -> pd.DataFrame:
        """``count`` networks at one rate; weights, pictures and batches are the same for every arm and rate."""
        data, test = self._draws(stage, count, seed, where)
        norm = "layernorm" if arm == "LayerNorm" else "erf"
        model = self._model(count, norm, alpha, depth, stream(seed, "matched growth, weights", stage, depth), **where)
        q, p, _ = (each.mean(dim=-1).cpu().numpy() for each in token_moments(model.states(test.images)[0].detach()))
        growth = pooled_growth(q, p, kernel_of(norm, np.full(count, alpha)), model.tokens, depth)
        options = {"steps": self.steps, "batch_size": self.batch_size, "lr": rate}
        run = train(model, data, test, **options, generator=stream(seed, "matched growth, batches", stage))
        columns = {"loss": run.losses[:, -max(1, self.steps // 10) :].mean(dim=-1), "test_loss": run.test_loss}
        columns |= {"test_accuracy": run.test_accuracy, "log_pooled": growth}
        return rows({"stage": stage, "alpha": alpha, "rate": rate, "replicate": range(count)}, columns)


def pooled_growth(q: ArrayLike, p: ArrayLike, kernel: NormKernel, n: int, depth: int) -> np.ndarray:
    """ln of the predicted amplification of a gradient that all tokens share, at the usual weights."""
    sigmas = Sigmas()
    common = {"a": sigmas.a, "s": sigmas.s, "n": n, "depth": depth, "output_gradient": "pooled"}
    return propagate(q, p, kernel=kernel, **common).log_J_backward[..., 0]


def matched_alpha(q: float, p: float, n: int, depth: int) -> float:
    """The alpha at which Derf has LayerNorm's predicted growth, from tokens of second moment q and overlap p."""
    level = pooled_growth(q, p, kernel_of("layernorm"), n, depth)
    return optimize.brentq(lambda alpha: pooled_growth(q, p, kernel_of("erf", alpha), n, depth) - level, 0.05, 20.0)


def draws_of_pictures(name: str, classes: str, num: int, count: int, seed: int, kind: dict) -> LabelledImages:
    """``count`` sets of ``num`` pictures, each with classes of its own; ``name``, ``classes`` are names of streams."""
    drawn = [
        template_images(num, classes=stream(seed, classes, each), generator=stream(seed, name, each), **kind)
        for each in range(count)
    ]
    return LabelledImages(*(torch.stack(each) for each in zip(*drawn, strict=True)))


# Claims: What training shows: predicted amplification against final loss, and where warm-up helps (SP-17).

CELL = ["depth", "alpha", "warmup"]


def at_best_rate(rows: pd.DataFrame) -> pd.DataFrame:
    """Each depth, alpha and warm-up at the rate with the least training loss in the mean over replicates; a run that
    diverged counts as the worst."""
    loss = rows["loss"].replace(np.inf, np.nan).fillna(np.finfo(float).max / len(rows))
    best = loss.groupby([rows[name] for name in [*CELL, "rate"]]).mean().groupby(level=CELL).idxmin()
    return rows[pd.MultiIndex.from_frame(rows[[*CELL, "rate"]]).isin([*best])]


def rank_correlations(rows: pd.DataFrame, column: str) -> pd.Series:
    """Spearman's correlation, by replicate, of a column and the final loss without warm-up; a diverged run ranks last.

    ValueError for a number that is missing and for replicates of different sizes: the claim is then undecided.
    """
    some = at_best_rate(chosen(rows, "warmup == 0")).reset_index(drop=True)
    final = some["test_loss"].replace(np.inf, np.nan).fillna(np.finfo(float).max)
    found = by_draw(some[column], some, ["replicate"])  # pandas' own correlation would pass over a missing one
    if found.size().nunique() > 1:
        raise ValueError(f"the replicates have {found.size().tolist()} networks; each needs all depths and alphas")
    return pd.Series({one: each.corr(final[each.index], method="spearman") for one, each in found})


def rank_correlation(rows: pd.DataFrame) -> Estimate:
    """Of the predicted amplification and the final loss."""
    return stats.mean(rank_correlations(rows, "log_pooled"))


def by_warmup(rows: pd.DataFrame) -> pd.DataFrame:
    """Replicates by steps of warm-up: test accuracy at the largest predicted amplification."""
    some = at_best_rate(chosen(chosen(rows, "depth == depth.max()"), "alpha == alpha.max()"))
    return some.pivot(index="replicate", columns="warmup", values="test_accuracy").sort_index(axis=1)


def warmup_gain(rows: pd.DataFrame) -> Estimate:
    """Accuracy with the longest warm-up less accuracy without."""
    found = by_warmup(rows)
    return stats.mean(found.iloc[:, -1] - found.iloc[:, 0])


def gain_by_chance(rows: pd.DataFrame) -> Estimate:
    """Accuracy of the second half of the networks without warm-up less that of the first half; an odd one is left out."""
    plain = by_warmup(rows).iloc[:, 0].to_numpy()
    first, second = plain[: len(plain) // 2 * 2].reshape(2, -1)
    return stats.mean(second - first)


def loss_apart(arm: str = "matched") -> Measure:
    """Test loss of an arm of ``MatchedGrowth`` less that of LayerNorm, in pairs of replicates, at the depth where it
    reaches farthest from zero, jointly."""

    def one(case: pd.DataFrame, level: float) -> Estimate:
        wide = case.pivot(index="replicate", columns="arm", values="test_loss")
        return stats.mean(wide[arm] - wide["LayerNorm"], level)

    return jointly(one, ["depth"], farthest_from(0.0), "stage == 'judged'")


PAPER = {"source": "paper", "paper_value": "not visible"}
TIERS = {
    "where": "abstract, of the first epochs; settings in the repository. Each network has weights of its own, each "
    "replicate pictures of its own, and each depth and alpha the best of three rates, around that of a pilot of three "
    "networks of another seed, whose losses had been seen",
    "judged_at": RECORDED,
}

CLAIMS = (
    reported(
        "SP-17.a",
        r"We measured the rank correlation, over depth and $\alpha$, of the predicted amplification with the test loss after the "
        r"first steps without warm-up; $\alpha$ alone, and depth alone, are correlated with that loss as well.",
        Trainability,
        rank_correlation,
        "rank correlation",
        plain=r"Predicted growth goes with the losses after the first steps; so does $\alpha$ alone, and so does depth alone.",
        **PAPER,
        **TIERS,
    ),
    statistic(
        "SP-17.b",
        "In the first steps warm-up helps where the predicted amplification is largest.",
        Trainability,
        warmup_gain,
        r"gain in test accuracy at the largest depth and $\alpha$",
        between(0.0, 1.0),
        unit="share",
        control=gain_by_chance,
        **PAPER,
        **TIERS,
    ),
    unseen(
        "SP-17.c",
        "With ViT-Base on CIFAR-100, depths 12 to 36 and 20 epochs, a larger predicted amplification goes with a worse "
        "network, and warm-up helps where it is largest.",
        "neither the data nor the published numbers could be had; SP-17.a and b are the small version of it",
        where="settings in the repository",
        **PAPER,
    ),
    statistic(
        "SP-22",
        "Small vision transformers of twelve blocks with LayerNorm, and with Derf at the $\\alpha$ that has LayerNorm's predicted "
        "growth, have the same test loss after the same first steps, each at the best rate of one grid, within 0.1 nats.",
        MatchedGrowth,
        loss_apart(),
        "test loss with Derf less that with LayerNorm, in pairs of replicates",
        within(0, 0.1),
        unit="nats",
        plain="At equal predicted growth LayerNorm and Derf learn alike in the first steps.",
        control=loss_apart("large"),  # Derf whose growth is not matched
        judged_at=("cpu",),
        where="200 steps of 16 generated pictures",
    ),
)


# Figures: Best rate and test accuracy over the predicted growth.


def best_rates(rows: pd.DataFrame) -> Figure:
    """The best rate and the test accuracy against the predicted growth, a line an alpha; ``Trainability`` at the best
    rates."""
    rows = largest(rows)
    rows = rows[rows["warmup"] == 0]
    alphas, words, gains = sorted(rows["alpha"].unique()), [], []
    figure, axes = plt.subplots(2, 1, figsize=(5.5, 5.0), sharex=True)
    for alpha, color in zip(alphas, shades(len(alphas)), strict=True):
        cells = [part for _, part in rows[rows["alpha"] == alpha].groupby("depth")]
        growth, rate = (np.array([one[name].mean() for one in cells]) for name in ("log_pooled", "rate"))
        accuracy, reach = np.transpose([mean_and_reach(one["test_accuracy"]) for one in cells])
        face = color if rows["recorded"].iloc[0] else "none"
        for ax, values, half in zip(axes, (rate, accuracy), (None, reach), strict=True):
            ax.errorbar(np.exp(growth), values, half, fmt="o-", color=color, markerfacecolor=face, elinewidth=0.9)
        beside(axes[0], np.exp(growth[-1]), rate[-1], rf"$\alpha={alpha:g}$", color, (-7, -5), ha="right")
        gains.append(f"{accuracy[-1] - accuracy[0]:+.2f} at $\\alpha={alpha:g}$".replace("-", "−"))
        for one, x, y, at in zip(cells, growth, accuracy, rate, strict=True):
            depth = one["depth"].iloc[0]
            label = f"{depth:g}" if words else f"depth {depth:g}"
            below = depth == cells[-1]["depth"].iloc[0]  # clear of the next line
            beside(axes[0], np.exp(x), at, label, color, (2, -11) if below else (4, 7))
            words.append(
                f"depth {depth:g}, alpha {alpha:g}: {y:.2f} at rate {at:.2g}, predicted growth ×{np.exp(x):.1f}"
            )
    axes[0].set(yscale="log", ylabel="best learning rate", ylim=(0.6 * rows["rate"].min(), 1.6 * rows["rate"].max()))
    axes[1].set(xscale="log", ylabel="test accuracy at that rate", xlabel="predicted growth of the pooled gradient")
    plain_log(axes[0].yaxis, (0.0005, 0.001, 0.002, 0.004))
    plain_log(axes[1].xaxis, (1, 1.5, 2, 3, 5, 8))
    panel_label(axes[0], "By and large, more predicted growth, a smaller best rate")
    panel_label(axes[1], f"Accuracy over depth: {gains[0]}, {gains[-1]}")
    figure.set_label(f"Best rate and test accuracy against the predicted growth: {'; '.join(words)}.")
    return figure
