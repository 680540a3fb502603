"""CAC-1 to CAC-10, CAC-16 and the control: the target of a drafted token, what is emitted, what it gains, and what it pays.

What a theorem says is decided by the check cell of its statement on the page.
"""

import pandas as pd

from derived.lab import measure, stats
from derived.lab.claims import at_least, at_most, on_page, reported, statistic
from derived.lab.stats import Estimate

from ..experiments.position import NearOptimal, RandomPairs
from .measures import ratio_of_totals

OF_BEST = "of the best possible gain"


def share_of_best(kind: str, delta: float, rule: str = "cactus") -> measure.Measure:
    """A rule's gain in acceptance over the best possible at the same KL, total over total, for one kind of draft."""
    return ratio_of_totals("gain", "best_gain", f"kind == '{kind}' and rule == '{rule}' and matched == {delta}")


def lenient(rows: pd.DataFrame) -> Estimate:
    """The KL of lenience less that of Cactus at equal mean acceptance, that of the smallest budget."""
    spent = measure.chosen(rows, "kind == 'noised' and matched == matched.min()")
    by_rule = spent.pivot(index="replicate", columns="rule", values="kl")
    return stats.mean(by_rule["lenience"] - by_rule["cactus"])


PROVED = (
    on_page("CAC-1", source="prior", where="Leviathan et al. and Chen et al., 2023"),
    on_page(
        "CAC-2.a",
        plain="Draft and verify writes exactly the target law, whichever law one chooses.",
        source="digest",
        where="Theorem 1",
    ),
    on_page("CAC-2.b", source="digest", where="Theorem 1"),
    on_page(
        "CAC-3",
        plain="Raising the drafted token and shrinking all others in proportion is the best target within a divergence budget.",
        source="digest",
        where="Theorem 2",
    ),
    on_page("CAC-4.a"),
    on_page("CAC-4.b", source="digest", where="Corollary 6"),
    on_page("CAC-4.c"),
    on_page(
        "CAC-5.a",
        plain="The target of each drafted token stays within its stated budget.",
        source="digest",
        where="several notes and re-implementations",
        paper_value=r"KL $\le\delta$",
    ),
    on_page("CAC-5.b", amends="CAC-5.a"),
    on_page("CAC-6.a"),
    on_page(
        "CAC-6.b",
        plain="What Cactus emits is never farther from the large model than the draft is.",
        source="digest",
        where="Theorem 3",
    ),
    on_page("CAC-7.a", where="a reading that several notes invite; Theorem 3, as retold, does not claim it"),
    on_page("CAC-7.b", amends="CAC-7.a"),
    on_page("CAC-7.e", where="written for the second edition, the criterion before the run"),
    on_page("CAC-8.a"),
    on_page("CAC-8.b"),
    on_page("CAC-10.a"),
    on_page("CAC-10.b", source="digest", where="Proposition 4, read as of kept and rejected drafts alike"),
    on_page("CAC-10.c", amends="CAC-10.b", source="digest", where="Proposition 4"),
    on_page("CAC-16"),
)

NEAR_OPTIMAL = (
    reported(
        "CAC-9.a",
        r"At equal KL of the emitted law the gain of Cactus in acceptance is this share of the best possible, with drafts near the verifier, $V=50$ and $\delta=0.01$.",
        NearOptimal,
        share_of_best("noised", 0.01),
        OF_BEST,
        judged_at=("ci", "cpu"),
        where="the page has the shares of lenience and interpolation, at the same acceptance, beside it",
    ),
    statistic(
        "CAC-10.d",
        r"At equal mean acceptance typical acceptance with $\varepsilon=0.09$ spends more KL than Cactus, with drafts near the verifier.",
        NearOptimal,
        measure.mean("kl - kl_cactus", "rule == 'tas' and kind == 'noised'"),
        "mean difference over pairs",
        at_least(0),
        control=lenient,
        unit="nats",
        where="one rival alone: the page has what lenience and interpolation gain at the same acceptance",
    ),
)

CONTROL = statistic(
    "control",
    r"An unrelated draft gains acceptance below its price: TV spent is at most nine tenths of the acceptance gained.",
    RandomPairs,
    ratio_of_totals(
        "tv", "acceptance - exact_acceptance", "kind == 'independent' and rule == 'cactus' and knob == 0.1"
    ),
    r"TV over acceptance, totals of the pairs at $\delta=0.1$, by the jackknife (it must fail)",
    at_most(0.9),
    unit="TV per acceptance",
)
