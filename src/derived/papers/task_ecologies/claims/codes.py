"""TE-3, 4, 5 and 15: codes under a price. All but TE-5.c are decided by the check cells of their statements."""

from derived.lab import measure
from derived.lab.claims import on_page, reported

from ..experiments.codes import GlobalPath

CLAIMS = (
    on_page("TE-3", source="paper", where="Theorem 50, Corollary 52", paper_value="0 failures"),
    on_page(
        "TE-4.a",
        source="paper",
        where="Theorem 55",
        paper_value="gap 7.1e-16",
        plain="A distinction is kept if and only if its predictive gain exceeds its price.",
    ),
    on_page("TE-4.b", source="paper", where="Proposition 57, Corollary 58"),
    on_page("TE-5.a"),
    reported(
        "TE-5.c",
        "The cheapest single merge foretells the next step of the best partition, on languages with family relations.",
        GlobalPath,
        measure.mean("matched + 0.0", "kind == 'family'", unit=["replicate"]),
        "share of steps",
        source="paper",
        where="Figure 6, right",
        paper_value="12 of 13 steps",
        judged_at=("ci", "cpu"),
    ),
    on_page("TE-15"),
)
