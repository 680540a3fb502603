"""The ledger of the layer at the data it was made from: least squares in one pass, any rank, ridge (OLS-1 to 6, 11).

Each is decided by the check cell of its statement on the page.
"""

from derived.lab.claims import Change, on_page

DECIDED = Change(
    "2026-11-24",
    "Decided by the check cell on the page instead of an experiment of the same quantity.",
    "A theorem stands in one place.",
)

CLAIMS = (
    on_page(
        "OLS-1.a",
        source="paper",
        where="abstract; the weights as retold",
        plain="One layer of linear attention, with the right weights, gives exactly the least-squares fit.",
        paper_value="equality",
        changed=(DECIDED,),
    ),
    on_page("OLS-2", changed=(DECIDED,)),
    on_page("OLS-3.a", changed=(DECIDED,)),
    on_page(
        "OLS-3.b",
        changed=(
            Change("2026-11-21", "L is random; before, it was L_λ.", "The row says every L, and OLS-5.b has L_λ."),
            DECIDED,
        ),
    ),
    on_page(
        "OLS-4.a",
        where="the paper assumes full column rank (as retold)",
        paper_value="full rank assumed",
        changed=(DECIDED,),
    ),
    on_page("OLS-5.a", where="a tempting step", changed=(DECIDED,)),
    on_page("OLS-5.b", amends="OLS-5.a", changed=(DECIDED,)),
    on_page("OLS-6.a", changed=(DECIDED,)),
    on_page("OLS-11.a", where="a misreading to prevent", changed=(DECIDED,)),
    on_page("OLS-11.b", amends="OLS-11.a", changed=(DECIDED,)),
)
