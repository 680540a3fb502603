"""TE-7 and 8: away from the training ecology. Each is decided by the check cell of its statement on the page."""

from derived.lab.claims import on_page

CLAIMS = (
    on_page("TE-7.a", source="paper", where="Proposition 15; a slip, harmless: Corollary 48 has the right range"),
    on_page("TE-7.b", amends="TE-7.a"),
    on_page("TE-7.c", source="paper", where="comment after Theorem 55, which the page quotes; our reading of it"),
    on_page("TE-7.d", where=r"Proposition 47; $\alpha_{\rm JS}$ is ours", amends="TE-7.c"),
    on_page(
        "TE-8.a",
        source="paper",
        where="Proposition 77",
        plain="A code that is perfect in training pays where a merged pair matters: at least so much, by a formula.",
    ),
    on_page("TE-8.b", source="paper", where="Proposition 78"),
    on_page("TE-8.c", source="paper", where='Proposition 46 (a); a slip, harmless: "only" needs the least complexity'),
    on_page("TE-8.d", amends="TE-8.c"),
)
