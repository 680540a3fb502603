"""IPT-1, 2, 3, 5, 6 and 9.a: one rule in many forms, and the start of a converted model.

Each is decided by the check cell of its statement on the page.
"""

from derived.lab.claims import on_page

CLAIMS = (
    on_page("IPT-1", source="paper", where="equation 1"),
    on_page(
        "IPT-2.a",
        source="paper",
        where="Section 3.4, Algorithm 1",
        plain="The memory can be computed for all chunks at once, with the result of reading one after the other.",
    ),
    on_page("IPT-2.b"),
    on_page("IPT-2.c"),
    on_page("IPT-2.d"),
    on_page("IPT-3.a", source="paper", where="Section 3.4"),
    on_page("IPT-3.b", source="paper", where="Section 3.4 has the reset; the grid is ours"),
    on_page("IPT-5", source="repo", where="inference_model"),
    on_page(
        "IPT-6.a",
        source="paper",
        where="Section 3.4; random weights here",
        plain="Converting a pretrained model changes nothing until it is trained.",
    ),
    on_page("IPT-6.b"),
    on_page("IPT-9.a"),
)
