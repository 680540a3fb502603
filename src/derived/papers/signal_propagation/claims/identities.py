"""What check cells of the page decide: closed forms, the two ends of a product, the window, and a tempting reading."""

from derived.lab.claims import on_page

CLAIMS = (
    on_page("SP-1", source="repo", where="code", paper_value="equality"),
    on_page("SP-5"),
    on_page("SP-12.a", where="a tempting reading; the order of limits was not visible"),
    on_page("SP-14.a"),
)
