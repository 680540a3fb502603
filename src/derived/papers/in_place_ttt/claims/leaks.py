"""IPT-4: what an output depends on, and where the future could leak in.

Criteria and expected verdicts were written before the run, unless a claim says otherwise.
"""

import pandas as pd

from derived.lab import measure
from derived.lab.claims import at_most, exactly, identity, refuted

from ..experiments.leaks import Leaks

ZERO = exactly(0)
DERIVATIVE = "largest derivative by a later input, over all instances"


def misplaced(rows: pd.DataFrame) -> pd.Series:
    """1 where a derivative is zero though the theorem says that it is not, or the other way round; NaN where one is."""
    wrong = ((rows["jacobian"] > 0) != (rows["expected"] > 0)).astype(float)
    return wrong.where(rows[["jacobian", "expected"]].notna().all(axis="columns"))


CLAIMS = (
    identity(
        "IPT-4.a",
        "With the taps of the target inside each chunk no output depends on a later input.",
        Leaks,
        measure.largest("jacobian", "variant == 'taps inside'"),
        DERIVATIVE,
        ZERO,
        unit="of a derivative",
        plain="Although it writes what comes next, the layer never sees the future.",
        source="paper",
        where="Section 3.4; centred taps on each chunk: released code",
        proof="ipt-causal",
    ),
    identity(
        "IPT-4.b",
        "Where taps cross the edges of chunks, one look-ahead tap leaks nothing; with two, the first token of each chunk but the first depends on its own label, and nothing else leaks.",
        Leaks,
        measure.largest(misplaced, "variant in ['one tap across', 'two taps across']"),
        "pairs of an output and a later input whose derivative is not as the theorem says",
        ZERO,
        unit="wrong pairs",
        proof="ipt-causal",
    ),
    refuted(
        "IPT-4.d",
        "To write a chunk first and to read it then, as classical test-time training does, leaks nothing.",
        Leaks,
        measure.largest("jacobian", "variant == 'update first'"),
        "a derivative by a later input",
        at_most(1e-6),
        unit="of a derivative",
    ),
)
