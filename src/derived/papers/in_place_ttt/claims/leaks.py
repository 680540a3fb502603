"""IPT-4: what an output depends on, and where the future could leak in, decided by check cells on the page."""

from derived.lab.claims import on_page

CLAIMS = (
    on_page(
        "IPT-4.a",
        source="paper",
        where="Section 3.4; centred taps on each chunk: released code",
        plain="Although it writes what comes next, the layer never sees the future.",
    ),
    on_page("IPT-4.b"),
    on_page("IPT-4.d"),
)
