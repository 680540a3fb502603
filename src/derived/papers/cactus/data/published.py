"""What the paper's main table says, as two notes retell a part of it, and what its counts say of one draft.

name     meaning                                                    unit
score    share of right answers                                     percent
kept     mean number of drafted tokens kept per block of m          count
m        tokens that the draft writes per block: 20                 count
"""

import math

import pandas as pd
from scipy.optimize import brentq

from derived.lab.checks import check_count

from ..model.theory import expected_accepted

ITEMS = {"GPQA": 198, "GSM8K": 1300}  # questions, of GSM8K about so many
# method: GSM8K score and kept, GPQA score and kept; Qwen3, verifier 14B and draft 0.6B [digest]
QUOTED = {
    "verifier alone": (91.71, math.nan, 40.07, math.nan),
    "exact sampling": (91.89, 5.11, 40.91, 3.84),
    "typical acceptance": (92.87, 6.78, 40.40, 6.41),
    "Cactus, 0.75": (92.15, 7.15, 45.46, 6.46),
    "Cactus, 1": (92.87, 7.00, 45.46, 6.74),
}


def quoted() -> pd.DataFrame:
    """Scores and drafts kept, one row a method.

    >>> quoted().loc["Cactus, 1", "GPQA kept"]
    np.float64(6.74)
    """
    columns = ["GSM8K score", "GSM8K kept", "GPQA score", "GPQA kept"]
    return pd.DataFrame.from_dict(QUOTED, orient="index", columns=columns).rename_axis("method")


def share_kept(kept: float, m: int = 20) -> float:
    """The acceptance per drafted token at which a block of m keeps so many on average, were drafts independent.

    ValueError unless 0 < kept < m.

    >>> round(share_kept(0.75, m=2), 6)  # a + a^2 at a = 1/2
    0.5
    """
    check_count("m", m)
    if not 0 < kept < m:
        raise ValueError(f"kept = {kept} of m = {m} drafts; give a number between them and zero")
    return brentq(lambda a: expected_accepted(a, m).item() - kept, 0.0, 1.0, xtol=1e-12)
