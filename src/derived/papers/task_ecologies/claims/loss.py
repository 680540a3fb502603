"""TE-1, 2, 6 and 9: the loss of a code. Each is decided by the check cell of its statement on the page."""

from derived.lab.claims import on_page

CLAIMS = (
    on_page(
        "TE-1",
        source="paper",
        where="Theorem 8 (a), (b)",
        paper_value="gap 3.8e-16",
        plain="The best loss of a code is an entropy floor plus the Jensen-Shannon divergence inside its cells.",
    ),
    on_page(
        "TE-2",
        source="paper",
        where="Theorem 8 (c)",
        paper_value="0 failures",
        plain="Training forces apart exactly the worlds that some training context tells apart, and is silent about the rest.",
    ),
    on_page("TE-6.a"),
    on_page("TE-6.c"),
    on_page("TE-9.b", source="paper", where="after Definition 9; Proposition 61 and Theorem 63"),
)
