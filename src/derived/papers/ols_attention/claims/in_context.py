"""The ledger of random tasks with labels in the tokens: the best fixed layer, fitted and trained (OLS-11, OLS-12).

risk          expected squared error at the query
optimal_risk  that of the best fixed layer Gamma*, exactly
"""

import pandas as pd

from derived.lab import measure
from derived.lab.claims import Claim, at_least, at_most, statistic, within
from derived.lab.measure import Measure, farthest_from
from derived.lab.stats import Estimate

from ..experiments.in_context import BalancedStart, LearnedInContext, RandomTasks

ARRIVED = 0.03  # of a risk to the optimal one, relative
OWN = 0.2  # of the layer's own loss to the optimal risk; five standard deviations of a mean over the last steps
THEORY = {"source": "prior", "where": "Ahn et al. 2023; Zhang, Frei and Bartlett 2024"}


def of_both_spectra(value: str) -> Measure:
    """The mean at the spectrum where it lies farther from 1; the interval of each is taken by itself."""
    spectra = [measure.mean(value, f"spectrum == '{name}'") for name in ("identity", "geometric")]

    def one(rows: pd.DataFrame) -> Estimate:
        return farthest_from(1.0)([spectrum(rows) for spectrum in spectra])

    return one


def trained(
    id: str, spectrum: str, start: str, law: str, experiment: type[LearnedInContext] = LearnedInContext, **facts: str
) -> Claim:
    """What training on random tasks of one spectrum, from one kind of start, comes to."""
    return statistic(
        id,
        rf"Trained on random tasks ({law}, {start} start), one linear-attention layer comes to the risk of the best fixed "
        r"layer $\Gamma^\star$, not to that of least squares.",
        experiment,
        measure.share(
            f"abs(risk / optimal_risk - 1) < {ARRIVED} and abs(loss / optimal_risk - 1) < {OWN}",
            f"spectrum == '{spectrum}' and start == '{start}'",
        ),
        rf"share of replicates whose $\Gamma$ has a risk within ${100 * ARRIVED:g}$ % of that of $\Gamma^\star$, and whose "
        rf"whole layer a loss within ${100 * OWN:g}$ % of it over the last steps (least squares: 0)",
        at_least(0.9),
        control=r"a layer of zeros has the risk $\operatorname{tr}\Lambda$, more than twice the optimal one: a share of 0",
        unit="share of replicates",
        judged_at=("cpu",),
        **facts,
    )


CLAIMS = (
    statistic(
        "OLS-11.c",
        r"With labels without noise in the tokens the best fixed layer on random Gaussian tasks is "
        r"$\Gamma^\star=[(1+\frac1N)\Lambda+\frac{\operatorname{tr}\Lambda}NI]^{-1}$.",
        RandomTasks,
        measure.mean("distance", by=["spectrum"], decides=measure.highest),
        r"$\|\hat\Gamma-\Gamma^\star\|_F/\|\Gamma^\star\|_F$ of the layer fitted to 16,384 tasks, at both spectra jointly",
        at_most(0.1),
        control=measure.mean(
            "endless", by=["spectrum"], decides=measure.highest
        ),  # the best layer of an endless context
        unit="of Γ*",
        **THEORY,
    ),
    statistic(
        "OLS-11.d",
        r"The risk of the layer $\Gamma^\star$ itself on random Gaussian tasks without noise is "
        r"$\operatorname{tr}\Lambda-\operatorname{tr}(\Lambda\Gamma^\star\Lambda)>0$, while least squares has risk 0 there "
        r"for $N\ge p$.",
        RandomTasks,
        of_both_spectra("risk / optimal_risk"),
        "measured over exact at both spectra",
        within(1, 0.05),
        control=of_both_spectra("risk_of_zero / optimal_risk"),
        unit="of the exact risk",
        **THEORY,
    ),
    trained(
        *("OLS-12.a", "identity", "random", r"$\Lambda=I$"),
        source="prior",
        where="von Oswald et al. 2023; Ahn et al. 2023",
    ),
    trained(
        *("OLS-12.b", "geometric", "random", r"$\Lambda$ geometric"),
        where="the same without its condition",
    ),
    trained(
        *("OLS-12.c", "geometric", "balanced", r"$\Lambda$ geometric", BalancedStart),
        source="prior",
        where="Zhang, Frei and Bartlett 2024, for gradient flow; their start",
        amends="OLS-12.b",
    ),
)
