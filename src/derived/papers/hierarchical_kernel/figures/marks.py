"""What the figures and tables share: kinds of attention and of summaries by name and colour, and rows as a matrix.

mark                   meaning
line in INK            theory; dashed: a reference
filled, open marker    recorded, live; bars are 99.9 % intervals over replicates
sequential colours     a swept parameter, or a level
"""

import numpy as np
import pandas as pd

from derived.lab.plot import BLUE, GREEN, INK, MUTED, ORANGE, RED, SKY

NAMES = {"plain": "plain", "wide": "wide", "conv-qk": "conv-QK", "hkt": "HKT", "hkt-average": "frozen averages"}
POOLINGS = {"convolution": "causal convolution", "average": "causal averages"}  # the summaries of a level
POOLINGS |= {"block": "block means", "delayed": "completed blocks"}
KIND_COLOURS = {"plain": INK, "wide": MUTED, "conv-qk": ORANGE, "hkt": BLUE, "hkt-average": SKY, "hkt-block": RED}
TUNED_NAMES = {"plain": NAMES["plain"], "equal": "plain, equal parameters"} | {
    kind: NAMES[kind] for kind in ("conv-qk", "hkt", "hkt-average")
}  # the arms of the tuned comparison
TUNED_COLOURS = KIND_COLOURS | {"equal": GREEN}


def as_matrix(rows: pd.DataFrame, value: str, index: str = "i", columns: str = "j") -> np.ndarray:
    """A column of the rows as a matrix over two others."""
    return rows.pivot(index=index, columns=columns, values=value).to_numpy()
