"""TE-3, 4, 5 and 15: codes under a price. Criteria and expected verdicts were written before the run."""

from derived.lab import measure
from derived.lab.claims import at_most, computed, exactly, identity, refuted, reported

from ..experiments.codes import Equidistant, GlobalPath, LeastCode, Recursion, SplitMerge

CLAIMS = (
    computed(
        "TE-3",
        r"Among codes without excess the quotient alone has the least entropy; the least excess of codes with $H(p)\le I$ is zero exactly from that entropy on.",
        LeastCode,
        measure.largest("mismatches"),
        "violations over all partitions, most in one ecology",
        exactly(0),
        source="paper",
        where="Theorem 50, Corollary 52",
        paper_value="0 failures",
        unit="violations",
    ),
    identity(
        "TE-4.a",
        r"Splitting a cell $S$ into $A$ and $B$ lowers $J_\beta$ by $\pi_S$ times the gain less $\beta h(\lambda)$; the gain is the mean over contexts of ${\rm JS}_\lambda(\bar P_A,\bar P_B)$.",
        SplitMerge,
        measure.worst(),
        "largest gap over its derived rounding bound, every split and merge of every partition",
        source="paper",
        where="Theorem 55",
        paper_value="gap 7.1e-16",
        plain="A distinction is kept if and only if its predictive gain exceeds its price.",
    ),
    identity(
        "TE-4.b",
        r"A partition is a local optimum exactly if no gain inside a cell exceeds $\beta h$ and none between cells falls below; the quotient is one up to $\beta_{\min}=\min{\rm JS}/h$.",
        SplitMerge,
        measure.most_of(measure.worst("miss", "reach"), measure.worst("mismatches", "0.5")),
        r"distance of $\beta_{\min}$ from the price found by values of $J_\beta$ alone over its derived bound, and no partition misjudged",
        source="paper",
        where="Proposition 57, Corollary 58",
    ),
    computed(
        "TE-5.a",
        r"For $n$ equally likely worlds that are nearly alike and equally far from one another the best code jumps from the quotient to one cell, at a price that is $\frac{2\ln2\,(n-1)}{n\ln n}$ of $\beta_{\min}$ in the limit of equal laws.",
        Equidistant,
        measure.largest("abs(ratio / predicted - 1) + (cells - 1.0)", "epsilon == epsilon.min()"),
        "largest relative distance of the ratio, at the smallest difference of the laws, with one cell after the jump",
        at_most(2e-3),
        unit="relative distance",
    ),
    refuted(
        "TE-5.b",
        r"Up to $\beta_{\min}$ the quotient is the best of all partitions.",
        Equidistant,
        measure.largest("lost"),
        r"a $J_\beta$ of the quotient above the least one, half way between $\beta_{\rm glob}$ and $\beta_{\min}$, in nats,",
        at_most(1e-9),
        unit="nats",
    ),
    reported(
        "TE-5.c",
        "The cheapest single merge foretells the next step of the best partition, on languages with family relations.",
        GlobalPath,
        measure.mean("matched + 0.0", "kind == 'family'", unit=["replicate"]),
        "share of steps",
        source="paper",
        where="Figure 6, right",
        paper_value="12 of 13 steps",
        judged_at=("ci", "cpu"),
    ),
    identity(
        "TE-15",
        r"The recursion over subsets, in $3^n$ steps, finds the least $J_\beta$ of all partitions; the path in $\beta$ that it gives is the lower hull of the points $(H,L^*)$.",
        Recursion,
        measure.worst(),
        "largest gap from the list of all partitions over its derived rounding bound",
    ),
)
