"""What training shows: SP-17."""

import numpy as np
import pandas as pd
from scipy import stats as laws

from derived.lab.claims import Claim
from derived.lab.stats import Estimate, mean

from ..experiments.training import Trainability

GPU = {"gpu": "holds"}


def trainability(rows: pd.DataFrame) -> Estimate:
    """Spearman's correlation of predicted amplification and final loss without warm-up; a diverged run ranks last."""
    chosen = rows[(rows["norm"] == "erf") & (rows["warmup"] == 0)]
    final = chosen["test_loss"].replace(np.inf, np.nan).fillna(np.finfo(float).max)
    groups = chosen.assign(final=final).groupby("replicate")
    return mean([float(laws.spearmanr(part["log_pooled"], part["final"]).statistic) for _, part in groups])


def warmup_gain(rows: pd.DataFrame) -> Estimate:
    """Accuracy with warm-up less accuracy without, at the largest predicted amplification."""
    chosen = rows[(rows["norm"] == "erf") & (rows["depth"] == rows["depth"].max())]
    chosen = chosen[chosen["alpha"] == chosen["alpha"].max()]
    wide = chosen.pivot(index="replicate", columns="warmup", values="test_accuracy")
    return mean(wide[wide.columns.max()] - wide[wide.columns.min()])


CLAIMS = (
    Claim(
        id="SP-17.a",
        statement=r"The larger the predicted amplification, over depth and $\alpha$, the worse the trained network.",
        source="paper",
        where="abstract; settings in the repository",
        paper_value="not visible",
        kind="statistic",
        criterion="rank correlation with the final test loss without warm-up, 99.9 % interval above 0",
        experiment=Trainability,
        measure=trainability,
        accept=(0.0, 1.0 + 1e-9),
        expected=GPU,
        judged_at=("gpu",),
    ),
    Claim(
        id="SP-17.b",
        statement="Warm-up helps where the predicted amplification is largest.",
        source="paper",
        where="abstract; settings in the repository",
        paper_value="not visible",
        kind="statistic",
        criterion="gain in test accuracy at the largest depth and $\\alpha$, 99.9 % interval above 0",
        experiment=Trainability,
        measure=warmup_gain,
        accept=(0.0, 1.0),
        expected=GPU,
        judged_at=("gpu",),
    ),
    Claim(
        id="SP-17.c",
        statement="The same with ViT-Base on CIFAR-100, depths 12 to 36, 20 epochs.",
        source="paper",
        where="settings in the repository",
        paper_value="not visible",
        kind="measured",
        criterion="–",
        reason="neither the data nor the published numbers could be had; SP-17.a and b are the small version of it",
    ),
)
