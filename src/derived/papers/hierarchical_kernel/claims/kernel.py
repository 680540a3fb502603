"""The ledger of the scores as a kernel: when they are positive semidefinite, and their two parts."""

from derived.lab.claims import on_page, unseen

PSD = (
    on_page("HKT-4.a"),
    on_page("HKT-4.c"),
    on_page("HKT-4.e"),
    on_page("HKT-4.f", where="a tempting reading"),
    on_page("HKT-4.g", amends="HKT-4.f"),
    unseen(
        "HKT-4.h",
        "The hierarchical scores are a psd kernel under the paper's condition on the symmetrised bilinear forms.",
        "only the abstract was visible; HKT-4.a is a condition of this form for our construction",
        plain="The mixed scores are a positive semidefinite kernel, if the symmetrised forms of the levels meet a"
        " condition.",
        source="paper",
        where="abstract (Prop. 3.1)",
        paper_value="not visible",
    ),
)

PARTS = (
    on_page("HKT-5.c", where="a reading of Props 3.5, 3.6 for causal layers"),
    on_page("HKT-5.d", amends="HKT-5.c"),
    unseen(
        "HKT-5.g",
        "$L$ levels have $L$ independent pairs of parts, which control reciprocal and directional attention, as printed.",
        "only the abstract was visible; HKT-5.c and d are what holds for our construction. That one table has one such pair"
        " is true of every square matrix",
        plain="Scores have one symmetric and one antisymmetric part at each level, which steer mutual and directed attention.",
        source="paper",
        where="abstract (Props 3.5, 3.6)",
        paper_value="not visible",
    ),
)
