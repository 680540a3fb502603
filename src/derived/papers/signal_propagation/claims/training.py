"""What training shows: predicted amplification against final loss, and where warm-up helps (SP-17)."""

import numpy as np
import pandas as pd

from derived.lab import stats
from derived.lab.claims import RECORDED, at_least, between, statistic, unseen
from derived.lab.measure import by_draw, chosen
from derived.lab.stats import Estimate

from ..experiments.training import Trainability


def rank_correlation(rows: pd.DataFrame) -> Estimate:
    """Spearman's correlation of predicted amplification and final loss without warm-up; a diverged run ranks last.

    ValueError for a prediction that is missing and for replicates of different sizes: the claim is then undecided.
    """
    some = chosen(rows, "norm == 'erf' and warmup == 0").reset_index(drop=True)
    final = some["test_loss"].replace(np.inf, np.nan).fillna(np.finfo(float).max)
    predicted = by_draw(
        some["log_pooled"], some, ["replicate"]
    )  # pandas' own correlation would pass over a missing one
    if predicted.size().nunique() > 1:
        raise ValueError(f"the replicates have {predicted.size().tolist()} networks; each needs all depths and alphas")
    return stats.mean([each.corr(final[each.index], method="spearman") for _, each in predicted])


def warmup_gain(rows: pd.DataFrame) -> Estimate:
    """Accuracy with warm-up less accuracy without, at the largest predicted amplification."""
    some = chosen(chosen(rows, "norm == 'erf' and depth == depth.max()"), "alpha == alpha.max()")
    wide = some.pivot(index="replicate", columns="warmup", values="test_accuracy")
    return stats.mean(wide[wide.columns.max()] - wide[wide.columns.min()])


PAPER = {"source": "paper", "paper_value": "not visible"}
TIERS = {
    "where": "abstract; settings in the repository; a pilot of two conditions sized tier cpu, and the verdict expected of "
    "it was written before its run",
    "judged_at": RECORDED,
}

CLAIMS = (
    statistic(
        "SP-17.a",
        r"Over depth and $\alpha$, predicted amplification and final test loss without warm-up rise together in rank.",
        Trainability,
        rank_correlation,
        "rank correlation with the final test loss without warm-up",
        at_least(0.0),
        unit="rank correlation",
        plain="On the whole, networks whose gradients are predicted to grow more train worse.",
        **PAPER,
        **TIERS,
    ),
    statistic(
        "SP-17.b",
        "Warm-up helps where the predicted amplification is largest.",
        Trainability,
        warmup_gain,
        r"gain in test accuracy at the largest depth and $\alpha$",
        between(0.0, 1.0),
        unit="share",
        plain="A warm-up of the learning rate helps where gradients are predicted to grow most.",
        **PAPER,
        **TIERS,
    ),
    unseen(
        "SP-17.c",
        "With ViT-Base on CIFAR-100, depths 12 to 36 and 20 epochs, a larger predicted amplification goes with a worse "
        "network, and warm-up helps where it is largest.",
        "neither the data nor the published numbers could be had; SP-17.a and b are the small version of it",
        plain="ViT-Base trains worse on CIFAR-100, and needs a warm-up more, where its gradients are predicted to grow "
        "more.",
        where="settings in the repository",
        **PAPER,
    ),
)
