"""SK-1, SK-2, SK-4, SK-10.a, SK-19: what softmax and Sinkhorn solve, what a half-step gains, what the temperature does.

Each is decided by the check cell of its statement on the page.
"""

from derived.lab.claims import on_page

ROWS = (
    on_page(
        "SK-1",
        plain="Normalising rows and columns gives the coupling that solves entropic optimal transport.",
        source="paper",
        where="abstract and introduction",
    ),
    on_page(
        "SK-2.a",
        plain="Normalising rows alone is softmax: the same problem with half of its constraints.",
        source="paper",
        where="abstract (a natural connection); the exact statement is earlier",
    ),
    on_page("SK-2.b", source="prior", where="folklore of entropic transport"),
    on_page(
        "SK-2.c",
        where='the README of the public code of Sinkformers says it of a toy at its first weights; "whatever the scores" is ours',
    ),
    on_page("SK-4.a", source="prior", where="Altschuler, Weed and Rigollet 2017"),
    on_page(
        "SK-10.a",
        plain="The normaliser decides the kind of relation: rows alone a conditional distribution, rows and columns a coupling.",
        source="paper",
        where="abstract of v3",
    ),
    on_page("SK-19.a", source="prior", where="Peyré and Cuturi 2019"),
)
