"""Claims on the kernel of the noise as a function of the Gram matrix and of clouds.

Evidence, criterion and expected verdicts were written before the run, except where a claim says otherwise.
"""

import numpy as np
import pandas as pd

from derived.lab.stats import Estimate

from ..experiments.kernel import KernelDistance, Lipschitz
from .forms import CI, INF, retold, row
from .measures import gap


def quotient_slope(rows: pd.DataFrame) -> Estimate:
    """The slope in ln n of ln of the largest quotient, over all temperatures and pairs of prompts of n tokens."""
    largest = np.log(rows.groupby("n")["quotient"].max())
    power = np.polyfit(np.log(largest.index.to_numpy(dtype=float)), largest.to_numpy(), 1)[0]
    return Estimate(float(power), len(rows))


def largest_quotient(rows: pd.DataFrame) -> Estimate:
    """The largest Lipschitz quotient at beta = 0: no constant that vanishes there can bound it."""
    return Estimate(float(rows["quotient"].max()), len(rows))


CLAIMS = (
    row(
        "HT-8.c",
        r"$\lvert s_{ij}(R)-s_{ij}(R')\rvert\le(1+9\tau_\ell^2)\max_{kl}\lvert R_{kl}-R'_{kl}\rvert$ "
        r"for every number $n\le d$ of tokens.",
        "largest quotient of pairs of prompts, random or simplices, plus five standard errors, over the constant: at "
        "most 1",
        Lipschitz,
        gap,
        (-INF, 1.0),
        kind="bound",
        proof="ht-lipschitz",
        where="simplices and the hottest case added after rows of random prompts existed",
        amends="HT-8.d",
    ),
    row(
        "HT-8.d",
        r"The Lipschitz constant of $s$ in the Gram matrix is $O(1+\tau_\ell^2n)$.",
        r"power of $n$ with which the largest quotient of sampled pairs of prompts grows",
        Lipschitz,
        quotient_slope,
        (-INF, INF),
        kind="measured",
        expected={},
        **retold("`lem:Gram_stability`", r"$O(1+\tau_\ell^2n)$"),
    ),
    row(
        "HT-20.a",
        r"The kernel has a Lipschitz constant $O(\beta^2e^{4\beta\lVert\bar A\rVert}e^{\beta^2d\sigma_A^2})$, which "
        r"vanishes at $\beta=0$.",
        r"refuted by two clouds with a quotient above 0 at $\beta=0$",
        KernelDistance,
        largest_quotient,
        (-INF, 0.0),
        kind="counterexample",
        expected={"ci": "fails"},
        **retold("`prop:satisfying_MF`"),
    ),
    row(
        "HT-20.b",
        r"At $\beta=0$ the kernel is Lipschitz with a constant that does not vanish: $\mathbb E\lVert G_{\mu_X}(x)-G_{\mu_Y}"
        r"(y)\rVert^2\le2\big(\lVert x-y\rVert^2+\frac1n\sum_k\lVert x_k-y_k\rVert^2\big)$.",
        "worst ratio over clouds, scattered or moved as a whole, near and far, at most 1",
        KernelDistance,
        gap,
        (-INF, 1.0),
        kind="bound",
        proof="ht-fields",
        expected=CI,
        amends="HT-20.a",
        where=r"amended at $\beta=0$ alone; for $\beta>0$ there is the proof and no row",
    ),
)
