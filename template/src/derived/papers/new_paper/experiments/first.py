"""What the topic measures: frozen sizes and one batched function an experiment.

gap    what was measured less what the theory says
bound  what rounding allows
"""

from dataclasses import dataclass
from typing import ClassVar

import pandas as pd

from derived.lab.experiment import Experiment

from ..model.theory import square


@dataclass(frozen=True, kw_only=True)
class First(Experiment):
    """Which table or figure of the paper; what a row holds."""

    deterministic: ClassVar = {"gap": 1e-12}

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        return pd.DataFrame({"gap": [square(1.0) - 1.0], "bound": [1.0]})
