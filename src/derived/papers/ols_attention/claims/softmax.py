"""The ledger of the softmax layer: what it does as beta goes to 0 (OLS-13)."""

from derived.lab import measure
from derived.lab.claims import statistic, within

from ..experiments.softmax import Dial

CLAIMS = (
    statistic(
        "OLS-13",
        r"As $\beta\to0$ the read-out $\bar y+\frac1\beta(\text{softmax}-\bar y)$ tends to least squares with "
        r"intercept, with an error of order $\beta$.",
        Dial,
        measure.power("error", "beta"),
        r"slope of $\ln$ error against $\ln\beta$",
        within(1, 0.05),
        control=measure.power("without_intercept", "beta"),
        horizon=r"$\beta=10^{-4}$",
        unit="power of β",
    ),
)
