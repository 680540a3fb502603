"""Claims on one layer: one token, the moments of a head, drift and bracket of the overlaps (HT-1 to 4).

The check cells of their statements decide them. Statements of version 1 of the paper reached us through a third-party
formalisation; their source is ``digest``.
"""

from derived.lab.claims import on_page

CLAIMS = (
    on_page("HT-1.a"),
    on_page(
        "HT-2.a",
        plain="At Gaussian initialisation the average pull of a head is zero: all motion of the tokens is noise.",
        source="digest",
        where="version 1, Gaussian case and `lem:lemma_app`",
    ),
    on_page("HT-3.a", source="digest", where="version 1, `lem:Ito_formula`; the bracket is ours"),
    on_page(
        "HT-4.a",
        source="digest",
        where="version 1, `lem:drift_on_simplex_selfcontained`; refuted before us by the formalisation",
        paper_value="exactly $b$",
    ),
    on_page("HT-4.b", amends="HT-4.a"),
)
