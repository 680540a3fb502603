"""Numbers of the paper's committed outputs (exp1_static_results.txt and exp2_split_merge_results.txt of the author's
repository), typed as they stand there. Worlds are languages with equal weights.

name          meaning
Pair          two languages, the Jensen-Shannon gain of telling them apart, and the printed threshold beta*
Step          a step of the best partition: the price at which it begins, its labels, its excess
Distances     a matrix of behavioural distances, the threshold tau of its corpus, and the counts made of it
"""

from typing import NamedTuple


class Pair(NamedTuple):
    """Telling two languages apart, for the languages as numbers."""

    first: str
    second: str
    gain: float
    beta: float


class Step(NamedTuple):
    """The best partition from a price on; labels in the order of LANGUAGES."""

    beta: float
    labels: tuple[int, ...]
    excess: float


class Distances(NamedTuple):
    """Distances of five languages in the order of FIVE, of the model with seed 1; the counts are of the first few, on
    which it was trained."""

    corpus: str
    trained_on: int
    upper: tuple[float, ...]  # above the diagonal, row by row
    tau: float
    separated: int  # s, pairs farther apart than tau
    cells: int  # k, connected components of the rest


LANGUAGES = ("english", "french", "german", "italian", "spanish", "finnish", "portuguese")
FIVE = ("english", "french", "german", "italian", "finnish")

#: The pairs of least and of greatest gain, and those of the first steps of each path.
PAIRS = {
    "commedia": (
        Pair("spanish", "portuguese", 0.0154321848, 0.0222639365),
        Pair("italian", "spanish", 0.0226671196, 0.0327017411),
        Pair("english", "german", 0.038706183, 0.0558412183),
        Pair("french", "spanish", 0.0459546731, 0.0662985791),
        Pair("german", "finnish", 0.1402593263, 0.2023514345),
        Pair("french", "finnish", 0.1477643054, 0.2131788306),
    ),
    "manifesto": (
        Pair("spanish", "portuguese", 0.0184935681, 0.0266805789),
        Pair("english", "french", 0.0410450171, 0.0592154426),
        Pair("italian", "portuguese", 0.0436860585, 0.0630256599),
        Pair("english", "german", 0.0580730238, 0.0837816635),
        Pair("german", "finnish", 0.1435455184, 0.2070924075),
        Pair("french", "finnish", 0.1792977256, 0.2586719395),
    ),
}

PATHS = {
    "commedia": (
        Step(0.0, (1, 2, 3, 4, 5, 6, 7), 0.0),
        Step(0.0222639365, (1, 2, 3, 4, 5, 6, 5), 0.0044091957),
        Step(0.0281053892, (1, 2, 3, 4, 4, 5, 4), 0.012076115),
        Step(0.0558412183, (1, 2, 1, 3, 3, 4, 3), 0.0231350244),
        Step(0.0627019192, (1, 2, 1, 2, 2, 3, 2), 0.043283306),
        Step(0.0891271894, (1, 1, 1, 1, 1, 2, 1), 0.0919096364),
        Step(0.1389979582, (1, 1, 1, 1, 1, 1, 1), 0.1489149673),
    ),
    "manifesto": (
        Step(0.0, (1, 2, 3, 4, 5, 6, 7), 0.0),
        Step(0.0266805789, (1, 2, 3, 4, 5, 6, 5), 0.0052838766),
        Step(0.0592154426, (1, 1, 2, 3, 4, 5, 4), 0.0170110243),
        Step(0.0593701031, (1, 1, 2, 3, 3, 4, 3), 0.0332067008),
        Step(0.0793672416, (1, 1, 1, 2, 2, 3, 2), 0.0548574324),
        Step(0.0827904123, (1, 1, 2, 1, 1, 3, 1), 0.0720721118),
        Step(0.0920369069, (1, 1, 1, 1, 1, 2, 1), 0.1076163347),
        Step(0.1602569155, (1, 1, 1, 1, 1, 1, 1), 0.1733403109),
    ),
}

_ALICE, _MANIFESTO = 0.010782721796370255, 0.013304129787308251
DISTANCES = (
    Distances(
        "alice",
        2,
        (0.010781, 0.00469, 0.013615, 0.019474, 0.008081, 0.007263, 0.01542, 0.010451, 0.015771, 0.01009),
        _ALICE,
        0,
        1,
    ),
    Distances(
        "alice",
        5,
        (0.003935, 0.003288, 0.009976, 0.031104, 0.006043, 0.00488, 0.022882, 0.009366, 0.032168, 0.020853),
        _ALICE,
        4,
        2,
    ),
    Distances(
        "manifesto",
        2,
        (0.014944, 0.01398, 0.02633, 0.017226, 0.008423, 0.017824, 0.020427, 0.021488, 0.020231, 0.015363),
        _MANIFESTO,
        1,
        2,
    ),
    Distances(
        "manifesto",
        5,
        (0.007521, 0.006178, 0.017452, 0.039419, 0.006359, 0.009954, 0.032214, 0.014497, 0.032664, 0.02864),
        _MANIFESTO,
        6,
        2,
    ),
)
