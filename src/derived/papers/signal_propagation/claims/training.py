"""What training shows: predicted amplification against final loss, and where warm-up helps (SP-17)."""

import numpy as np
import pandas as pd

from derived.lab import stats
from derived.lab.claims import RECORDED, at_least, between, reported, statistic, unseen
from derived.lab.measure import by_draw, chosen, lowest
from derived.lab.stats import Estimate

from ..experiments.training import Trainability

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


def over_alpha_alone(rows: pd.DataFrame) -> Estimate:
    """The rank correlation of the predicted amplification less that of alpha, in pairs of replicates."""
    return stats.mean(rank_correlations(rows, "log_pooled") - rank_correlations(rows, "alpha"))


def within_alpha(rows: pd.DataFrame) -> Estimate:
    """The rank correlation over depths at one alpha, at the alpha where it is least, all judged jointly."""
    each = [rank_correlations(part, "log_pooled") for _, part in rows.groupby("alpha")]
    return lowest([stats.mean(one, 1 - (1 - stats.LEVEL) / len(each)) for one in each])


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


def dealt_out(rows: pd.DataFrame) -> pd.DataFrame:
    """The best rates, with their predictions dealt out anew among the networks of a replicate: a prediction of nothing."""
    best, dealt = at_best_rate(chosen(rows)), np.random.default_rng(0).permutation
    pooled = best.groupby(["warmup", "replicate"])["log_pooled"]
    return best.assign(log_pooled=pooled.transform(lambda each: dealt(each.to_numpy())))


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
        "SP-17.d",
        r"Over depth and $\alpha$, predicted amplification ranks the test loss after the first steps without warm-up "
        r"better than $\alpha$ alone does, by 0.1 of rank correlation at least.",
        Trainability,
        over_alpha_alone,
        r"rank correlation with the predicted amplification less that with $\alpha$, in pairs of replicates",
        at_least(0.1),
        unit="difference of rank correlations",
        plain=r"How much gradients are predicted to grow says more on the first steps of training than $\alpha$ does alone.",
        control=lambda rows: over_alpha_alone(dealt_out(rows)),
        **TIERS,
    ),
    statistic(
        "SP-17.e",
        r"At each $\alpha$, predicted amplification and test loss after the first steps without warm-up rise together over "
        "depths.",
        Trainability,
        within_alpha,
        r"rank correlation over depths, at the $\alpha$ where it is lowest, jointly over $\alpha$",
        at_least(0.0),
        unit="rank correlation",
        where="at one $\\alpha$ the prediction grows with depth, so that depth alone would rank as well",
        control=lambda rows: within_alpha(dealt_out(rows)),
        judged_at=RECORDED,
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
)
