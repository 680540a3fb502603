"""IPT-16: what the clip that is printed with the paper's Table 1 leaves of a write.

Criteria and expected verdicts were written before the run, unless a claim says otherwise. The size of the weights, 0.02, is our assumption.
"""

from derived.lab import measure
from derived.lab.claims import at_least, at_most, bound, fails, holds, refuted, statistic

from ..experiments.precision import Clip

BOTH = holds("ci", "cpu")
PRINTED, BF16 = "tau == 1e-5", "tau == 1e-5 and dtype == 'bfloat16'"
MATRIX = r"a matrix of $2560\times9728$ weights of size $0.02$"

CLAIMS = (
    statistic(
        "IPT-16.a",
        rf"One write of Frobenius norm $10^{{-5}}$ to {MATRIX} in bf16 changes at most one weight in ten thousand.",
        Clip,
        measure.mean("changed", BF16),
        "mean share of weights that change",
        at_most(1e-4),
        unit="of the weights",
        where="the clip: the paper's setting for Table 1",
        expected=BOTH,
    ),
    bound(
        "IPT-16.b",
        rf"Thirty-two writes of Frobenius norm $10^{{-5}}$ to {MATRIX} move no output by $2^{{-9}}$ of its size, the last bit of bf16, in exact arithmetic either.",
        Clip,
        measure.largest("moved", PRINTED),
        "ipt-clip",
        "largest change of an output over its size, all writes alike and the input their key",
        at_most(2**-9, "2^{-9}"),
        unit="of the output",
        expected=BOTH,
    ),
    refuted(
        "IPT-16.c",
        rf"With writes clipped at $10^{{-5}}$, {MATRIX} in bf16 is another one after thirty-two writes: at least one weight in a hundred has changed.",
        Clip,
        measure.largest("after", BF16),
        "a share of changed weights",
        at_least(0.01),
        unit="of the weights",
        expected=fails("ci", "cpu"),
    ),
)
