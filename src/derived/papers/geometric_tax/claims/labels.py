"""GT-3, GT-4: labels and their order, decided by check cells on the page."""

from derived.lab.claims import on_page

CLAIMS = (
    on_page("GT-3.a"),
    on_page("GT-4.a", control="A theorem on one family: every K and sigma is a trial, and both ends are reached."),
)
