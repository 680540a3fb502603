"""SK-13 and SK-14: the derivative of a plan. Criteria and expected verdicts were written before the run, unless a claim says otherwise."""

from derived.lab import measure
from derived.lab.claims import at_most, computed, exactly, identity, refuted

from ..experiments.gradients import Backward, Truncated

CLAIMS = (
    identity(
        "SK-13.a",
        r"The implicit derivative of the plan, one linear system whatever the number of iterations, is the derivative by autograd through $801$ half-steps and by differences in $S$, $a$ and $b$.",
        Backward,
        measure.most_of(
            measure.worst("unrolled_gap", "unrolled_bound"), measure.worst("difference_gap", "difference_bound")
        ),
        r"largest relative gap to autograd over $10^{-8}$, and to central differences over $10^{-7}$",
        source="prior",
        where="Luise et al. 2018, Eisenberger et al. 2022",
    ),
    identity(
        "SK-13.b",
        r"The Jacobian $\partial P/\partial S$ is symmetric and positive semi-definite, of rank $(n-1)(m-1)$.",
        Backward,
        measure.most_of(
            measure.worst("asymmetry"),
            measure.worst("-smallest"),
            measure.worst("abs(rank - predicted_rank)", "0.5"),
        ),
        r"asymmetry and negative eigenvalues over $10^{-12}$, and error of the rank over a half",
    ),
    computed(
        "SK-13.c",
        r"What is kept for the implicit backward pass does not depend on the number of iterations.",
        Backward,
        measure.farthest("implicit_100 / implicit_10", 1.0),
        "bytes kept at 100 iterations over those at 10",
        exactly(1),
        unit="times",
    ),
    refuted(
        "SK-14",
        r"Detaching the column potential at every column step leaves the gradient as it was, to within $2\,\%$.",
        Truncated,
        measure.largest("own_error", "method == 'detached' and num_half_steps == 3"),
        "one plan of three half-steps whose gradient is off, relative to its length, by",
        at_most(0.02),
        unit="of the gradient",
        where="the public text classifier does so",
    ),
)
