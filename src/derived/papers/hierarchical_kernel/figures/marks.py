"""What the figures share.

mark                   meaning
line in INK            theory; dashed: a reference
filled, open marker    recorded, live; bars are 99.9 % intervals over replicates
sequential colours     a swept parameter, or a level
"""

import numpy as np
import pandas as pd

from derived.lab.plot import COLOURS, INK, MUTED

BLUE, RED, GREEN, PINK, ORANGE, SKY = COLOURS
DASHED = {"color": MUTED, "linewidth": 1.0, "linestyle": "--", "zorder": 1}
NAMES = {"plain": "plain", "wide": "wide", "conv-qk": "conv-QK", "hkt": "HKT", "hkt-average": "HKT, averages"}
KIND_COLOURS = {"plain": INK, "wide": MUTED, "conv-qk": ORANGE, "hkt": BLUE, "hkt-average": SKY, "hkt-block": RED}


def as_matrix(rows: pd.DataFrame, value: str, index: str = "i", columns: str = "j") -> np.ndarray:
    return rows.pivot(index=index, columns=columns, values=value).to_numpy()
