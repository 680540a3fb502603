"""TE-1, 2, 6 and 9: the loss of a code. Criteria and expected verdicts were written before the run."""

import math

import pandas as pd

from derived.lab import measure
from derived.lab.claims import at_most, bound, computed, exactly, identity, refuted
from derived.lab.stats import Estimate

from ..experiments.loss import Decomposition, Hellinger, Informed, Planted
from .measures import told


def coarsest(rows: pd.DataFrame) -> Estimate:
    """How many codes of two cells have no excess, where the code of one cell has one; NaN if an excess is missing."""
    covers = rows[rows["kind"] == "covers"]
    if covers["excess"].isna().any():
        return Estimate(math.nan, len(covers))
    whole = covers.loc[covers["cells"] == 1, "excess"] > 1e-3
    free = (covers["cells"] == 2) & (covers["excess"] < 1e-12)
    return Estimate(float(free.sum() * whole.all()), len(covers))


CLAIMS = (
    identity(
        "TE-1",
        r"The least cross-entropy of a code $p$ is the floor $L_0$ plus $\Delta(p)$, the mean over contexts and cells $S$ of ${\rm JS}_{\pi(\cdot|S)}$ of the laws in the cell; the cell mixtures reach it.",
        Decomposition,
        measure.worst(),
        "largest distance of three routes to the loss over its derived rounding bound, every partition of up to six worlds",
        source="paper",
        where="Theorem 8 (a), (b)",
        paper_value="gap 3.8e-16",
        plain="The best loss of a code is an entropy floor plus the Jensen-Shannon divergence inside its cells.",
    ),
    computed(
        "TE-2",
        r"A code has no excess exactly if it refines the training-equivalence classes; so $\prod B(|{\rm class}|)$ codes have none.",
        Planted,
        measure.largest("mismatches + abs(free - predicted)"),
        "partitions for which excess below $10^{-12}$ and refinement disagree, most in one ecology",
        exactly(0),
        source="paper",
        where="Theorem 8 (c); the count is ours",
        paper_value="0 failures",
        unit="partitions",
        plain="Training forces apart exactly the worlds that some training context tells apart, and is silent about the rest.",
    ),
    identity(
        "TE-6.a",
        r"Where contexts know the world, the excess is the same mean with the weights $\pi(w|S,c)$ in place of $\pi(w|S)$; if the context gives two worlds away with probability $t$, the constant code's is $1-t$ times that at $t=0$.",
        Informed,
        measure.most_of(
            measure.worst(),
            measure.worst("abs(excess - predicted)", where="kind == 'revealing'"),
            measure.worst("mismatch", "0.5"),
        ),
        "largest gap over its derived rounding bound, and no code misjudged as free or not",
    ),
    refuted(
        "TE-6.b",
        r"The formula with the prior weights $\pi(w|S)$ gives the excess also where contexts know the world.",
        Informed,
        measure.largest("abs(naive - excess)"),
        "a difference, in nats,",
        at_most(1e-9),
        unit="nats",
    ),
    refuted(
        "TE-6.c",
        r"Where contexts know the world, there is still one coarsest code without excess.",
        Informed,
        coarsest,
        "a number of coarsest codes without excess, of three worlds,",
        at_most(1),
        unit="codes",
    ),
    bound(
        "TE-9.a",
        r"Of any two laws with Hellinger distance $\eta$, $\eta^2\le-2\ln(1-\eta^2)\le{\rm KL}$.",
        Hellinger,
        measure.most_of(measure.largest("first", "kind == 'pairs'"), measure.largest("second", "kind == 'pairs'")),
        "te-hellinger",
        source="paper",
        where="after Definition 9",
    ),
    identity(
        "TE-9.b",
        r"The matrix $\sigma^2$, centred on both sides and times $-\frac12$, is half the Gram matrix of centred root laws: it has no negative eigenvalue, and its rank is at most the number of classes less one.",
        Hellinger,
        measure.most_of(
            measure.worst(where="kind == 'kernels'"),
            measure.worst(told("rank > k - 1", "rank", "k"), "0.5", "kind == 'kernels'"),
        ),
        "largest gap over its derived rounding bound, and no rank above that",
        source="paper",
        where="Proposition 61 and Theorem 63",
    ),
)
