"""SK-6, SK-10 to SK-12: what each normaliser can and cannot express. Written before the run."""

from derived.lab import measure
from derived.lab.claims import at_most, bound, identity, refuted, statistic, within

from ..experiments.relations import Causal, Jumps, Ranks, Sinks, Stability

EXACT = at_most(1 + 1e-9, r"1+10^{-9}")


STABILITY = (
    bound(
        "SK-6.a",
        r"A change of the scores moves the plan by ${\rm TV}\le\tanh(\frac14{\rm osc}(\Delta S))\le\frac12\lVert\Delta S\rVert_\infty$, for Sinkhorn and for softmax attention alike.",
        Stability,
        measure.largest("tight", "kind != 'sharp'"),
        "sk-stability",
        accept=EXACT,
    ),
    identity(
        "SK-6.b",
        r"The bound $\tanh(\frac14{\rm osc}(\Delta S))$ is attained by a table of two by two, at every size of the change.",
        Stability,
        measure.farthest("tight", 1.0, "kind == 'sharp'"),
        r"${\rm TV}$ over the bound, the farthest from one",
        within(1, 1e-9),
    ),
)

KINDS = (
    identity(
        "SK-10.a",
        r"Normalised rows give conditional laws, $P\mathbf1=a$ whatever the columns; normalised rows and columns give a coupling, $P\mathbf1=a$ and $P^\top\mathbf1=b$, which softmax of the same scores does not.",
        Sinks,
        measure.most_of(
            measure.worst("row_gap", "1e-12"),
            measure.worst("column_gap", "1e-12"),
            measure.worst("1e-6 + 0 * row_gap", "softmax_columns"),
        ),
        r"largest error of a marginal, in sum, over $10^{-12}$, and $10^{-6}$ over what the columns of softmax miss",
        plain="The normaliser decides the kind of relation: rows alone a conditional law, rows and columns a coupling.",
        source="paper",
        where="abstract of v3",
    ),
    identity(
        "SK-10.b",
        r"The relation in which all tokens look at the first has distance ${\rm TV}=1-\frac1n$ at least from every coupling of uniform texts; softmax with the score $z$ on that token is at $(n-1)/(n-1+e^z)$, which tends to $0$.",
        Sinks,
        measure.most_of(measure.worst(), measure.worst("softmax_gap", "1e-12")),
        r"largest gap of the least distance, by a linear program, over $10^{-9}$, and of softmax over $10^{-12}$",
    ),
    bound(
        "SK-10.c",
        r"The doubly centred $\ln P$ of a head has rank at most the head's dimension $d_k$.",
        Ranks,
        measure.worst("rank", "d_k"),
        "sk-rank",
    ),
)

CAUSAL = (
    identity(
        "SK-11.a",
        r"A lower-triangular coupling of a uniform text with itself is diagonal.",
        Causal,
        measure.worst("largest"),
        r"largest mass off the diagonal, by a linear program, over $10^{-9}$",
    ),
    statistic(
        "SK-11.b",
        r"On a causally masked kernel Sinkhorn's iteration drifts to the identity: the mass off the diagonal falls like $1/T$ in the iterations $T$.",
        Causal,
        measure.power(
            *("off_diagonal", "iteration", "iteration >= iteration.max() / 10"),
            **{"unit": ["instance"], "by": ["n"], "decides": measure.farthest_from(-1)},
        ),
        r"exponent over the last decade of iterations, mean over kernels for every $n$, judged jointly",
        within(-1, 0.05),
        unit="exponent",
    ),
)

JUMPS = (
    refuted(
        "SK-12.a",
        r"Optimal transport plans are a continuous contextual system, so that the approximation theorem covers them.",
        Jumps,
        measure.largest("jump", "epsilon == 0 and shift < 0.02"),
        r"texts $0.02$ degrees apart whose optimal plans differ in ${\rm TV}$ by",
        at_most(0.5),
        unit="probability",
    ),
    bound(
        "SK-12.b",
        r"Where optimal plans jump, a continuous contextual system stays at least half of the jump away from them.",
        Jumps,
        measure.largest("half / error", "epsilon > 0 and shift < 0.02"),
        "sk-jump",
        r"half the jump over the entropic plan's error on the worse side, $0.01$ degrees from the jump, for every $\varepsilon\ge0.05$ (it may move a little in these degrees)",
        at_most(1.02),
    ),
)
