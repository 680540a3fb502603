"""The window of small alpha, where it ends (SP-14.b and d), and what check cells decide (SP-1, 5, 12.a, 14.a)."""

import pandas as pd

from derived.lab.claims import between, computed, on_page
from derived.lab.measure import smallest
from derived.lab.stats import Estimate

from ..experiments.window import Window


def crossover(rows: pd.DataFrame) -> Estimate:
    """Block where alpha^2 p reaches 1 over the formula for b_*, at the smallest alpha; n counts the values of alpha."""
    first = rows[rows["alpha"] == rows["alpha"].min()].iloc[0]
    return Estimate(float(first["crossover"] / first["predicted"]), rows["alpha"].nunique())


BOTH = {"experiment": Window}
END = r"$b_*=\ln\frac1{\alpha^2p^0}/\ln[(1+\frac s2\ell)(1+a\ell)]$, $\ell=4\alpha^2/\pi$"
REACHED = r"block where $\alpha^2p=1$ over $b_*$ at the smallest $\alpha$"

CLAIMS = (
    computed(
        "SP-14.b",
        r"While $\alpha^2q\ll1$ the growth in a Derf network is exponential: "
        r"$J^{b,0}\approx(1+\frac s2\frac{4\alpha^2}\pi)^b$.",
        measure=smallest("log_J / high", "alpha ** 2 * q <= 0.005"),
        quantity=r"smallest ratio of $\ln J^{b,0}$ to its law wherever $\alpha^2q\le0.005$",
        accept=between(0.98, 1.0 + 1e-9, "[0.98, 1+10^{-9}]"),
        control=smallest("log_J / high", "alpha ** 2 * q > 0.1"),
        unit="ratio to the law",
        source="repo",
        where="blog",
        **BOTH,
    ),
    computed(
        "SP-14.d",
        r"At the smallest $\alpha$ the window of exponential growth in a Derf network ends after block "
        f"{END}, less than a quarter late.",
        measure=crossover,
        quantity=REACHED,
        accept=between(1.0, 1.25),
        control=lambda rows: crossover(rows[rows["alpha"] == rows["alpha"].max()]),  # no small alpha
        horizon=r"$\alpha=0.02$",
        unit="ratio to the formula",
        **BOTH,
    ),
    on_page("SP-1", source="repo", where="code", paper_value="equality"),
    on_page("SP-5"),
    on_page("SP-12.a", where="a tempting reading; the order of limits was not visible"),
    on_page("SP-14.a"),
)
