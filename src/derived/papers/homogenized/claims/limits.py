"""Claims on limits with a drift: flows and their correctors, decided on the page (HT-14, 15), and many heads (HT-16.b).

Evidence, criterion and expected verdicts were written before the run, except where a claim says otherwise.
"""

import pandas as pd

from derived.lab.claims import on_page, statistic, within
from derived.lab.measure import by_draw, chosen, power
from derived.lab.stats import Estimate

from ..experiments.limits import Interpolation

GROUPS = 24  # of draws of the weights: the variance within one is a replicate


def noise_power(rows: pd.DataFrame) -> Estimate:
    """The power of H with which the variance of m over the weights falls."""
    sweep = chosen(rows, "kind == 'heads'")
    size = sweep["replicate"].nunique() // GROUPS
    groups = sweep.assign(group=sweep["replicate"] // size).query(f"group < {GROUPS}")
    spread = by_draw(groups["m"], groups, ["group", "H"]).var().rename("m")
    return power("m", "H", unit=["group"])(spread.reset_index())


CLAIMS = (
    on_page(
        "HT-14.a",
        plain="Without noise, layers follow their differential equation with an error of the order of the step squared.",
        source="digest",
        where="version 1, `cor:ode1`; refuted before us by the formalisation, between grid points",
        paper_value="2",
    ),
    on_page("HT-14.b", amends="HT-14.a"),
    on_page("HT-15.a", source="digest", where="version 1, `cor:ode2`, `eq:SDE_ito_clean`", paper_value="2"),
    on_page("HT-15.b", amends="HT-15.a"),
    on_page(
        "HT-15.d",
        source="digest",
        where="version 1, `cor:ode2`; refuted before us by the formalisation",
        paper_value="2",
    ),
    on_page("HT-15.e", amends="HT-15.d"),
    statistic(
        "HT-16.b",
        r"At fixed $\eta L$, with $V=I+$noise, the variance of the mean overlap over the weights falls like $1/H$.",
        Interpolation,
        noise_power,
        r"slope of ln variance in $\ln H$",
        within(-1, 0.15),
        unit="power of $H$",
        control="if heads did not count the power would be 0 by construction, whatever the draws",
        horizon="1,024 heads",
        where="our wording, after `cor:SDE` of version 1; first tagged as retold",
    ),
)
