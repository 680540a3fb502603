"""The ledger of real data: a layer made from one stretch of the stock market reads the quarters after it (OLS-8)."""

from derived.lab import measure
from derived.lab.claims import at_least, computed

from ..experiments.real import Quarters

CLAIMS = (
    computed(
        "OLS-8.b",
        "A layer made from a thousand days of the S&P 500 to forecast absolute returns reads one later quarter at a time: in at "
        "least three of four quarters it is off by more than a quarter of the least-squares forecast.",
        Quarters,
        measure.share("error > 0.25", "method == 'self'", unit=["quarter"]),
        "share of quarters in which the layer that attends to the quarter is off by more than $0.25$",
        at_least(0.75),
        null=measure.share("error > 0.25", "method == 'cross'", unit=["quarter"]),  # it attends to the thousand days
        where="OLS-6.a on data; one path, whose quarters are not independent",
        unit="share of quarters",
        made_of="real data",
    ),
)
