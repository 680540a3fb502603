"""Networks of the shape of a vision transformer: many tokens (SP-13), ViT-Base and the author's numbers (SP-15)."""

import numpy as np
import pandas as pd

from derived.lab import stats
from derived.lab.claims import RECORDED, at_least, at_most, between, reported, statistic
from derived.lab.effect import Published
from derived.lab.measure import highest, jointly, mean
from derived.lab.stats import Estimate

from ..experiments.vision import ManyTokens, VisionTransformer
from .measures import fold_error

# Read off the vector graphics of the author's notebook to about 0.5 %: J^{32,0} of timm's ViT-Base, one initialisation.
AUTHOR = {("erf", 0.1): 1.079, ("erf", 0.3): 1.755, ("erf", 0.5): 3.078, ("erf", 0.7): 4.902, ("erf", 0.9): 7.506}
AUTHOR |= {("erf", 1.1): 11.21, ("erf", 1.3): 16.55, ("erf", 1.5): 24.10, ("erf", 1.7): 35.42, ("erf", 1.9): 51.30}
AUTHOR |= {("layernorm", 1.0): 6.003}


def ratio_to_author(rows: pd.DataFrame) -> Estimate:
    """Our mean J^{32,0} over the author's reading, where they differ most; each interval alone, since none is judged."""
    cases = rows[rows["b"] == 0].groupby(["norm", "alpha"])
    ratios = [stats.mean(part["J"] / AUTHOR[case]) for case, part in cases if case in AUTHOR]
    return max(ratios, key=lambda one: abs(np.log(one.value)))


CLAIMS = (
    statistic(
        "SP-13.a",
        r"In a pre-LayerNorm network of 196 tokens and 128 blocks with $\zeta=\frac19$, $J^{128,0}$ is that of the "
        "recurrence at finite $n$, $11.4$.",
        ManyTokens,
        mean("J / J_theory", "b == 0"),
        "measured over recurrence",
        between(1 / 1.4, 1.4, "[1/1.4, 1.4]"),
        unit="ratio to the recurrence",
        where="eight of the sixteen networks had been seen when the other eight were added, since they left it undecided; "
        "tier gpu has thirty-two of its own",
        judged_at=RECORDED,
        control=mean("J / J_infinite", "b == 0"),
    ),
    statistic(
        "SP-13.b",
        r"In a pre-LayerNorm network of 196 tokens and 128 blocks with $\zeta=\frac19$, the theory for $n\to\infty$ is "
        "short of $J^{128,0}$ by a factor of at least three.",
        ManyTokens,
        mean("J / J_infinite", "b == 0"),
        "measured over the recurrence for infinitely many tokens",
        at_least(3.0),
        unit="ratio to the recurrence",
        judged_at=RECORDED,
        control=mean("J / J_theory", "b == 0"),  # a theory that does know n
    ),
    statistic(
        "SP-15.a",
        "The recurrences describe networks of the shape of ViT-Base with permutation-symmetric tokens.",
        VisionTransformer,
        jointly(fold_error("J"), ("norm", "alpha"), highest),
        r"geometric-mean fold error of $J^{32,b}$ over blocks, the worst norm and $\alpha$, jointly over these",
        at_most(1.03),
        unit="fold error",
        plain="A few numbers per block predict how gradients grow in freshly initialised vision transformers.",
        source="paper",
        where="abstract; at these sizes theories without $K$ and for infinitely many tokens do as well; eight of the "
        "twenty-eight networks at each norm and $\\alpha$ had been seen when the other twenty were added; the paper's number "
        "is a fold error over $\\alpha$ of one initialisation, ours one over blocks of the mean",
        paper_value=Published(1.015, "fold error", error=0.005),  # 1 to 2 % in the author's notebook,
        judged_at=RECORDED,
        control=lambda rows: jointly(fold_error("J"), ("norm", "alpha"), highest)(rows.assign(J_theory=1.0)),
    ),
    reported(
        "SP-15.b",
        r"We measured $J^{32,0}$ on our networks of the shape of ViT-Base and compare it with the author's measurement on "
        r"one initialisation of timm's network, at the normaliser and the $\alpha$ at which the two differ most.",
        VisionTransformer,
        ratio_to_author,
        "ratio to the author's value",
        source="repo",
        where="figure stored in a notebook, read to 0.5 %",
        paper_value=Published(
            AUTHOR["layernorm", 1.0],
            "$J^{32,0}$ with LayerNorm",
            error=0.03,
            ours=mean("J", "b == 0 and norm == 'layernorm'"),
        ),
        judged_at=RECORDED,
    ),
)
