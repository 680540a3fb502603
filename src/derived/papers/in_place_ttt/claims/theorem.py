"""IPT-7 and 8.a: the theorem on targets, and what its assumption asks of keys, decided by check cells on the page."""

from derived.lab.claims import on_page

CLAIMS = (
    on_page(
        "IPT-7.a",
        source="paper",
        where="Theorem 1",
        plain="If the keys of other tokens are independent and centred, writing the next token raises the right logit.",
    ),
    on_page("IPT-7.e"),
    on_page("IPT-8.a"),
)
