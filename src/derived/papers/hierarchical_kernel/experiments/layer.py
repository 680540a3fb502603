"""What the layer costs in multiply-adds."""

from dataclasses import dataclass
from typing import ClassVar

import pandas as pd

from derived.lab.experiment import Experiment

from ..model.theory import attention_flops


@dataclass(frozen=True, kw_only=True)
class MultiplyAdds(Experiment):
    """HKT-1: multiply-adds of a whole layer with one head over those of standard attention.

    Rows: T, d, levels; ratios of score entries, of scores and AV together, of the layer, of the layer run fused.
    """

    sizes: tuple[tuple[int, int], ...] = ((512, 64), (512, 128), (1024, 64), (1024, 128), (2048, 128), (8192, 128))
    most_levels: int = 5

    deterministic: ClassVar = {"entries": 1e-12, "scores_and_values": 1e-12, "layer": 1e-12}

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        sizes = [(T, d, levels) for T, d in self.sizes for levels in range(1, self.most_levels + 1)]
        return pd.DataFrame(
            [{"T": T, "d": d, "levels": levels, **self._ratios(T, d, levels)} for T, d, levels in sizes]
        )

    def _ratios(self, T: int, d: int, levels: int) -> dict[str, float]:
        """Counts of a layer with these levels over those of the layer with one."""
        ours, one = attention_flops(T, d, d, levels), attention_flops(T, d, d, 1)
        return {
            "entries": ours.scores / one.scores,
            "layer": ours.total / one.total,
            "scores_and_values": (ours.scores + ours.averaging) / (one.scores + one.averaging),
            "layer_fused": attention_flops(T, d, d, levels, impl="fused").total / one.total,
        }
