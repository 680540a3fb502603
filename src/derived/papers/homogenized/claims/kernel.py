"""Claims on the kernel of the noise as a function of the Gram matrix, and of clouds.

Evidence, criterion and expected verdicts were written before the run, except where a claim says otherwise.
"""

import numpy as np
import pandas as pd

from derived.lab.claims import at_most, bound, refuted, reported
from derived.lab.measure import by_draw, largest, worst
from derived.lab.stats import Estimate

from ..experiments.kernel import KernelDistance, Lipschitz


def quotient_power(rows: pd.DataFrame) -> Estimate:
    """The slope in ln n of ln of the largest quotient, over all temperatures and pairs of prompts of n tokens."""
    quotient = np.log(by_draw(rows["quotient"], rows, ["n"]).max())
    power = np.polyfit(np.log(quotient.index.to_numpy(dtype=float)), quotient.to_numpy(), 1)[0]
    return Estimate(float(power), len(rows))


CLAIMS = (
    bound(
        "HT-8.c",
        r"For every number $n\le d$ of tokens, "
        r"$\lvert s_{ij}(R)-s_{ij}(R')\rvert\le(1+9\lambda^2)\max_{kl}\lvert R_{kl}-R'_{kl}\rvert$.",
        Lipschitz,
        worst(),
        "ht-lipschitz",
        "largest quotient of pairs of prompts, random or simplices, plus five standard errors, over the constant",
        amends="HT-8.d",
    ),
    reported(
        "HT-8.d",
        r"The Lipschitz constant of $s$ in the Gram matrix is $O(1+\lambda^2n)$.",
        Lipschitz,
        quotient_power,
        "power of $n$",
        judged_at=("ci", "cpu"),
        criterion=r"power of $n$ with which the largest quotient of sampled pairs of prompts grows",
        source="digest",
        where="version 1, `lem:Gram_stability`",
        paper_value=r"$O(1+\lambda^2n)$",
    ),
    refuted(
        "HT-20.a",
        r"The kernel has a Lipschitz constant $O(\beta^2e^{4\beta\lVert\bar A\rVert}e^{\beta^2d\sigma_A^2})$, which "
        r"vanishes at $\beta=0$.",
        KernelDistance,
        largest("quotient"),
        r"two clouds whose quotient at $\beta=0$ is",
        at_most(0),
        unit="quotient of distances",
        source="digest",
        where="version 1, `prop:satisfying_MF`; refuted before us by the formalisation",
    ),
    bound(
        "HT-20.b",
        r"At $\beta=0$ the kernel is Lipschitz with a constant that does not vanish: "
        r"$\mathbb E\lVert G_{\mu_X}(x)-G_{\mu_Y}(y)\rVert^2\le2\big(\lVert x-y\rVert^2+\frac1n\sum_k\lVert x_k-y_k\rVert^2\big)$.",
        KernelDistance,
        worst(),
        "ht-fields",
        "worst ratio over clouds, scattered or moved as a whole, near and far",
        amends="HT-20.a",
        where=r"amended at $\beta=0$ alone, for $\beta>0$ there is the proof and no row",
    ),
)
