"""SK-1, SK-2, SK-4, SK-19: what softmax and Sinkhorn solve, what a half-step gains, what the temperature does.

Criteria and expected verdicts were written before the run, unless a claim says otherwise.
"""

from derived.lab import measure
from derived.lab.claims import at_most, bound, identity, refuted

from ..experiments.plans import Increments, Plans, RowPrograms, Temperature

PROBLEMS = (
    identity(
        "SK-1",
        r"Sinkhorn's iteration ends in the solution of the entropic transport problem, $\arg\max_{P\in\Pi(a,b)}\langle P,S\rangle-\sum P\ln P$.",
        Plans,
        measure.worst(),
        r"largest gap of an entry to damped Newton on the dual, over $10^{-12}$",
        plain="Normalising rows and columns gives the coupling that solves entropic optimal transport.",
        source="paper",
        where="abstract and introduction",
    ),
    identity(
        "SK-2.a",
        r"Softmax attention solves the same problem with the constraint $P\mathbf1=a$ alone, and is the first half-step of Sinkhorn.",
        RowPrograms,
        measure.most_of(measure.worst(), measure.worst("half_gap", "half_bound")),
        r"largest gap to SLSQP over $10^{-5}$, and of the half-step over 16 units in the last place of one",
        plain="Normalising rows alone is softmax: the same problem with half of its constraints.",
        source="paper",
        where="abstract (a natural connection); the exact statement is earlier",
    ),
    identity(
        "SK-2.b",
        r"The plan does not change when row and column offsets are added to the scores, so $\langle q,k\rangle$ and $-\frac12\lVert q-k\rVert^2$ give the same plan.",
        Plans,
        measure.worst("offset_gap", "offset_bound"),
        r"largest change of an entry over $10^{-12}$",
        source="prior",
        where="folklore of entropic transport",
    ),
    refuted(
        "SK-2.c",
        r"Three half-steps are doubly stochastic in practice: the columns miss their marginal by at most $0.01$ in sum.",
        RowPrograms,
        measure.largest("error_3"),
        r"one table of scores of deviation $1.5$ whose error of the columns is",
        at_most(0.01),
        unit="mass",
    ),
)

DUAL = (
    identity(
        "SK-4.a",
        r"Every half-step raises the dual by the Kullback–Leibler divergence of the marginal that it mends, and all of them together by ${\rm KL}(P\|P^{(0)})$, with $P$ the limit.",
        Increments,
        measure.most_of(measure.worst(), measure.worst("sum_gap", "sum_bound")),
        r"largest gap of an increment over $10^{-12}$, and of the sum over $10^{-9}$",
        source="prior",
        where="Altschuler, Weed and Rigollet 2017",
    ),
    bound(
        "SK-4.b",
        r"After $K$ half-steps some marginal error so far is at most $\sqrt{2\,{\rm KL}(P\|P^{(0)})/K}$, whatever the scores.",
        Increments,
        measure.worst("least", "error_bound"),
        "sk-increments",
        source="prior",
        where="Altschuler, Weed and Rigollet 2017",
    ),
)

COLD = (
    bound(
        "SK-19.a",
        r"With uniform weights the cost of the entropic plan exceeds that of the best assignment by at least $0$ and at most $\varepsilon\ln n$.",
        Temperature,
        measure.most_of(measure.worst("gap - slack"), measure.worst("-gap", "slack")),
        "sk-temperature",
        r"largest excess over $\varepsilon\ln n$, and shortfall over what the columns' own error allows",
        source="prior",
        where="Peyré and Cuturi 2019",
    ),
    identity(
        "SK-19.b",
        r"In the log domain, raising all costs by $1$ leaves the plan as it was down to $\varepsilon=10^{-3}$, where every entry of the kernel underflows.",
        Temperature,
        measure.worst("offset_gap", "offset_bound", "underflow == 1"),
        "largest change of an entry over its rounding bound, where the whole kernel is zero",
    ),
)
