"""Three equally likely worlds in the simplex of three tokens, two of them fixed: what the explorer shows.

name      meaning
along     where the third world stands between the other two, 0 at the first, 1/2 in the middle
height    how far it is moved from there towards its own token
local     no single split or merge lowers J_beta
best      J_beta is least
"""

import numpy as np

from ..model.ecology import FiniteEcology
from ..model.partitions import is_refinement, set_partitions

FIXED = np.array([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25]])
ALONG = (0.0, 0.2, 0.4, 0.45, 0.5)
HEIGHT = (0.0, 0.1, 0.2, 0.333, 0.37, 0.45, 0.6)  # at 1/3 and in the middle all three are equally far apart
PRICES = (0.01, 0.02, 0.03, 0.04, 0.045, 0.05, 0.055, 0.06, 0.07, 0.1, 0.13)
TIE = 1e-12  # nats: values that differ by less are equal


def triangle(along: float, height: float) -> FiniteEcology:
    """The ecology with the third world at (1 - height) ((1 - along) P_1 + along P_2) + height e_3.

    >>> triangle(0.5, 1 / 3).laws[2, 0].round(3)
    array([0.25, 0.25, 0.5 ])
    """
    third = (1 - height) * ((1 - along) * FIXED[0] + along * FIXED[1]) + height * np.eye(3)[2]
    return FiniteEcology(np.full(3, 1 / 3), [1.0], np.stack([*FIXED, third])[:, None])


def standing(complexities: np.ndarray, excesses: np.ndarray, beta: float) -> tuple[np.ndarray, np.ndarray]:
    """Which of the five codes of three worlds are best at a price, and which are local minima, in the order of
    ``set_partitions(3)``. Codes are neighbours if one is the other with one cell split.

    >>> worlds = triangle(0.5, 1 / 3)
    >>> codes = set_partitions(3)
    >>> points = [np.array([measure(code) for code in codes]) for measure in (worlds.complexity, worlds.js_excess)]
    >>> standing(*points, 0.055)
    (array([ True, False, False, False, False]), array([ True, False, False, False,  True]))
    """
    values = excesses + beta * complexities
    codes = set_partitions(3)
    near = [
        [abs(p.max() - q.max()) == 1 and (is_refinement(p, q) or is_refinement(q, p)) for q in codes] for p in codes
    ]
    local = [values[place] <= values[each].min() + TIE for place, each in enumerate(np.array(near))]
    return values <= values.min() + TIE, np.array(local)


def triangles() -> list[dict]:
    """A row for each place of the third world, price and code: its excess, its complexity, and how it stands."""
    rows, codes = [], set_partitions(3)
    for along in ALONG:
        for height in HEIGHT:
            ecology = triangle(along, height)
            points = [
                np.array([measure(code) for code in codes]) for measure in (ecology.complexity, ecology.js_excess)
            ]
            third = dict(zip(("token_1", "token_2", "token_3"), ecology.laws[2, 0].tolist(), strict=True))
            for beta in PRICES:
                best, local = standing(*points, beta)
                for place, code in enumerate(codes):
                    row = {"along": along, "height": height, "beta": beta, "code": "".join(map(str, code))}
                    row |= {"complexity": points[0][place], "excess": points[1][place]}
                    rows.append(row | {"best": bool(best[place]), "local": bool(local[place])} | third)
    return rows
