"""The ledger of the layer at the data it was made from: least squares in one pass, any rank, ridge (OLS-1 to 6, 11).

Each is decided by the check cell of its statement on the page.
"""

from derived.lab.claims import on_page

CLAIMS = (
    on_page(
        "OLS-1.a",
        source="paper",
        where="abstract; the weights as retold",
        plain="One layer of linear attention, with the right weights, gives exactly the least-squares fit.",
        paper_value="equality",
    ),
    on_page("OLS-2"),
    on_page("OLS-3.a"),
    on_page("OLS-3.b"),
    on_page("OLS-4.a", where="the paper assumes full column rank (as retold)", paper_value="full rank assumed"),
    on_page("OLS-5.a", where="a tempting step"),
    on_page("OLS-5.b", amends="OLS-5.a"),
    on_page("OLS-6.a"),
    on_page("OLS-11.a", where="a misreading to prevent"),
    on_page("OLS-11.b", amends="OLS-11.a"),
)
