"""The window of small alpha: plain exponential growth while alpha^2 q << 1.

column       meaning
low, high    bounds on ln J^{b,0} = log_J
crossover    the first block with alpha^2 p >= 1
predicted    b_*, what the formula says of it
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd

from derived.lab.experiment import Experiment, rows

from ..model import asymptotics, kernels
from ..model.meanfield import propagate


@dataclass(frozen=True, kw_only=True)
class Window(Experiment):
    """SP-14: Derf with small alpha, many tokens, ViT-Base variances; ``log_J`` between its two bounds.

    Rows: alpha, b, q, p, log_J, low, high; ``crossover``, where alpha^2 p reaches 1, and ``predicted``.
    """

    alphas: tuple[float, ...] = (0.02, 0.05, 0.1, 0.2)
    q0: float = 1.0
    p0: float = 0.2
    points: int = 40

    tiers: ClassVar = {"ci": {"alphas": (0.05, 0.1, 0.2)}, "cpu": {}}
    tiny: ClassVar = {"alphas": (0.05,)}
    deterministic: ClassVar = {"q": 1e-8, "p": 1e-8, "log_J": 1e-7}

    def conditions(self) -> list[dict]:
        return [{"alpha": alpha} for alpha in self.alphas]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        alpha = condition["alpha"]
        a, s = asymptotics.vit_variances()
        predicted = float(asymptotics.crossover_depth(alpha, self.p0, a, s))
        depth = int(1.6 * predicted)
        kernel = kernels.ErfKernel(alpha)
        trajectory = propagate(self.q0, self.p0, kernel=kernel, a=a, s=s, n=np.inf, depth=depth)
        at = np.unique(np.geomspace(1, depth, self.points).round().astype(int))
        slope = s / 2 * 4 * alpha**2 / np.pi
        return rows(
            {"b": at},
            {
                "q": trajectory.q[at],
                "p": trajectory.p[at],
                "log_J": trajectory.log_J_forward[at],
                "low": at * np.log1p(slope / np.sqrt(1 + 4 * alpha**2 * trajectory.q[at])),
                "high": at * np.log1p(slope),
                "crossover": int(np.argmax(alpha**2 * trajectory.p >= 1)),
                "predicted": predicted,
            },
        )
