"""The ledger of information through the levels, and of what dropping a level changes."""

from derived.lab.claims import on_page, unseen

CORRECTION = (
    on_page("HKT-7.a"),
    on_page("HKT-7.c", where="a tempting reading"),
    on_page("HKT-7.i", amends="HKT-7.c"),
    unseen(
        "HKT-7.h",
        "The approximation error has three components, one of them a non-Gaussian correction, as printed.",
        "only the abstract was visible; HKT-7.a is an exact identity of this form for our construction",
        plain="The error of the approximation has three parts, each with a meaning, and one of them corrects for data"
        " that are not Gaussian.",
        source="paper",
        where="abstract (Theorem 4.3)",
        paper_value="not visible",
    ),
)

DECAY = (
    on_page("HKT-8.c"),
    unseen(
        "HKT-8.f",
        "The approximation bound decays geometrically in the number of levels, as printed.",
        "only the abstract was visible; HKT-8.c is a bound of this form for our construction",
        source="paper",
        where="abstract (Prop. 4.4)",
        paper_value="not visible",
    ),
)
