"""The ledger of causality: what a row reads, and a leak that looks like a result."""

from derived.lab.claims import at_least, at_most, on_page, statistic, unseen
from derived.lab.measure import mean

from ..experiments.leak import Leak

CLAIMS = (
    on_page("HKT-3.a"),
    on_page("HKT-3.b", where="a tempting implementation"),
    on_page("HKT-3.c", amends="HKT-3.b"),
    statistic(
        "HKT-3.d",
        r"A causal layer predicts i.i.d. symbols no better than chance, $\ln V$.",
        Leak,
        mean("loss - chance", "kind == 'hkt'"),
        r"test loss less $\ln V$",
        at_least(-0.01),
        unit="nats",
        where="an even guess passes, as it should: the row lives by the arm that fails it, HKT-3.e, where the layer leaks",
        control=mean("loss - chance", "kind == 'hkt-block'"),
    ),
    statistic(
        "HKT-3.e",
        "With means of blocks a layer predicts i.i.d. symbols better than chance by at least $0.1$ nats: the leak looks"
        " like a result.",
        Leak,
        mean("loss - chance", "kind == 'hkt-block'"),
        r"test loss less $\ln V$",
        at_most(-0.1),
        unit="nats",
        where="the control of HKT-3.d",
        control=mean("loss - chance", "kind == 'plain'"),  # attention without summaries
    ),
    unseen(
        "HKT-3.f",
        "The paper's own trainable downsampling is causal.",
        "only the abstract was visible; HKT-3.a and c are two ways to make it so",
        source="paper",
        where="abstract",
        paper_value="not visible",
    ),
)
