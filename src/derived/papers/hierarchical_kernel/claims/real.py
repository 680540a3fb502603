"""The ledger of real data: pictures of clothes read pixel by pixel, and speeches read letter by letter."""

from derived.lab.claims import RECORDED, at_least, statistic

from ..experiments.real import Clothes, Speeches
from .measures import by_chance, least_gain, settled, tuned_gain

REAL = {"unit": "share", "judged_at": RECORDED, "made_of": "real data", "scale": {"cpu": "ours"}, "matters": 0.02}
TASKS = {
    "HKT-E2": (Clothes, "real pictures of clothes, 14 by 14 grey levels read pixel by pixel"),
    "HKT-E3": (Speeches, "State of the Union speeches, 128 letters in a row, asked for their half-century"),
}
ARMS = "one block, all arms but plain with as many numbers as HKT, each at its own learning rate"
WHERE = {
    "HKT-E2": f"{ARMS}; no picture is given to two networks. Not the paper's CIFAR-10, which could not be had",
    "HKT-E3": f"{ARMS}; half of the speeches, drawn for each network, are kept to judge it. Not the paper's IMDB",
}
PRINTED = {"HKT-E2": "1.44 points on CIFAR-10", "HKT-E3": "7.47 points on IMDB"}

ON_REAL = tuple(
    claim
    for id, (experiment, task) in TASKS.items()
    for claim in (
        statistic(
            f"{id}.f",
            f"HKT is more accurate than standard attention on {task}.",
            experiment,
            settled(tuned_gain("plain")),
            "paired difference of test accuracy at the end of training",
            at_least(0),
            where=WHERE[id],
            paper_value=PRINTED[id],
            null=settled(by_chance("plain")),
            **REAL,
        ),
        statistic(
            f"{id}.g",
            "HKT is more accurate than attention of three times the width of its queries and keys, and than HKT with frozen"
            f" averaging, on {task}.",
            experiment,
            settled(least_gain(("wide", "hkt-average"))),
            "paired differences of test accuracy at the end of training, jointly",
            at_least(0),
            where=WHERE[id],
            null=settled(least_gain(("hkt-average",), "wide")),  # as many numbers, no summaries
            **REAL,
        ),
    )
)
