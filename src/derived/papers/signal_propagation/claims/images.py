"""Networks fed with generated images: SP-16."""

import numpy as np
import pandas as pd

from derived.lab.claims import Claim
from derived.lab.stats import LEVEL, Estimate, mean

from ..experiments.images import GeneratedImages

GPU = {"gpu": "holds"}


def images_fold_error(rows: pd.DataFrame) -> Estimate:
    """Fold error over images and the last two thirds of the blocks, per initialisation, in the worst case."""
    late = rows[rows["b"] > rows["b"].min() + (rows["b"].max() - rows["b"].min()) / 3]
    late = late[late["b"] < rows["b"].max()]
    late = late.assign(error=np.log(late["J"] / late["J_theory"]).abs())
    cases = [case.groupby("init")["error"].mean() for _, case in late.groupby(["norm", "alpha"])]
    found = [mean(np.exp(case), 1 - (1 - LEVEL) / len(cases)) for case in cases]
    return max(found, key=lambda one: one.high)


CLAIMS = (
    Claim(
        id="SP-16",
        statement=r"From the measured $(q,p)$ of block 8 on, the recurrence describes networks fed with images.",
        source="paper",
        where="abstract; CIFAR-100 there, generated images here: supports the mechanism only",
        paper_value="not visible",
        kind="statistic",
        criterion=r"fold error over the last two thirds of the blocks, joint 99.9 % intervals below 1.15",
        experiment=GeneratedImages,
        measure=images_fold_error,
        accept=(float("-inf"), 1.15),
        expected=GPU,
        judged_at=("gpu",),
    ),
)
