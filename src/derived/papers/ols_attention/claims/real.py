"""The ledger of real data and weights: a layer made from one stretch of time reads the next (OLS-8)."""

from derived.lab import measure
from derived.lab.claims import RECORDED, at_least, computed, statistic

from ..experiments.real import Eras, Quarters

FROZEN = "frozen / refitted"

CLAIMS = (
    computed(
        "OLS-8.b",
        "A layer made from a thousand days of the S&P 500 to forecast absolute returns reads one later quarter at a time: in at "
        "least three of four quarters it is off by more than a quarter of the least-squares forecast.",
        Quarters,
        measure.share("error > 0.25", "method == 'self' and order == 'in order'", unit=["quarter"]),
        "share of quarters in which the layer that attends to the quarter is off by more than $0.25$",
        at_least(0.75),
        null=measure.share("error > 0.25", "method == 'self' and order == 'days'", unit=["quarter"]),  # dealt by chance
        where="OLS-6.a on data; one path, whose quarters are not independent",
        unit="share of quarters",
        made_of="real data",
    ),
    statistic(
        "OLS-8.c",
        "A layer made from vectors of sentences, by a trained MiniLM, in one generation of State of the Union speeches reads "
        "a speech of the next generation: its relative error is at least a tenth larger than that of a layer made from the "
        "speech's own generation.",
        Eras,
        measure.mean(FROZEN, "order == 'in order'", unit=["name"]),
        "error of frozen over that of refitted weights, by president",
        at_least(1.1),
        null=measure.mean(FROZEN, "order == 'shuffled'", unit=["name"]),  # generations dealt by chance
        where="OLS-6.a on trained vectors, 16 principal axes, 29 speeches a generation; a pilot on six novels fixed the sizes",
        unit="ratio of errors",
        judged_at=RECORDED,
        made_of="real weights",
    ),
)
