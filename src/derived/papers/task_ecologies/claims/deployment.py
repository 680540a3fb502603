"""TE-7 and 8: away from the training ecology. Criteria and expected verdicts were written before the run."""

from derived.lab import measure
from derived.lab.claims import at_least, at_most, bound, computed, exactly, identity, refuted

from ..experiments.deployment import AtOne, Injection, OffEcology, TwinDecoders
from .measures import told

CLAIMS = (
    refuted(
        "TE-7.a",
        r"For every $\alpha\in(0,1]$, mixing a share $\alpha$ of new contexts in merges no two worlds that were separated.",
        AtOne,
        measure.largest("merged", "alpha > 0"),
        "a number of separated pairs that the mixture merges",
        exactly(0),
        source="paper",
        where="Proposition 15",
        unit="pairs",
    ),
    computed(
        "TE-7.b",
        r"For every $\alpha<1$, mixing merges no two separated worlds: $\sigma^2$ of the mixture is at least $(1-\alpha)\sigma^2$.",
        AtOne,
        measure.smallest("least - 2.0 * merged", "alpha < 1"),
        r"least ratio of $\sigma^2$ of the mixture to $(1-\alpha)\sigma^2$, less twice the pairs merged",
        at_least(1 - 1e-9),
        unit="ratio",
        amends="TE-7.a",
    ),
    refuted(
        "TE-7.c",
        r"Once $\alpha>\alpha^*$, the share at which $\sigma^2$ of a pair passes the level $\ell$, simplicity pressure no longer favours merging it.",
        Injection,
        measure.largest("wrong"),
        r"a $J_\beta$ of the split code above that of the merged one at some $\alpha>\alpha^*$, in nats,",
        at_most(1e-9),
        source="paper",
        where="comment after Theorem 55; $\\ell$ is such that the sentence is right of another pair at this price",
        unit="nats",
    ),
    identity(
        "TE-7.d",
        r"$\sigma^2$ and the gain $G$ are linear in $\alpha$: each crosses its level, $\ell$ and $\beta h(\lambda)$, at one share, $\alpha^*$ and $\alpha_{\rm JS}$; merging pays before $\alpha_{\rm JS}$ and not after.",
        Injection,
        measure.most_of(
            measure.worst(),
            measure.worst("crossing"),
            measure.worst(told("(before >= 0) | (after <= 0)", "before", "after"), "0.5"),
        ),
        r"largest gap over its derived rounding bound, and the sign of the saving on both sides of $\alpha_{\rm JS}$",
        where=r"Proposition 47; $\alpha_{\rm JS}$ is ours",
        amends="TE-7.c",
    ),
    bound(
        "TE-8.a",
        r"The simplest code of one ecology pays on another, for any pair of worlds that it merges, at least the weight of the pair times the mean over contexts of the ${\rm JS}_\lambda$ of its laws; the cell of a pair pays exactly that.",
        OffEcology,
        measure.most_of(
            measure.largest("ratio", "size > 2"),
            measure.largest("ratio - 1e-9"),
            measure.largest("abs(own - 1) * 1e9", "size == 2"),
        ),
        "te-off",
        source="paper",
        where="Proposition 77",
        plain="A code that is perfect in training pays where a merged pair matters: at least so much, by a formula.",
    ),
    identity(
        "TE-8.b",
        r"Two decoders of one optimal code have equal training loss and disagree where training never goes.",
        TwinDecoders,
        measure.most_of(
            measure.worst(),
            measure.worst(told("disagreement < 1e-3", "disagreement"), "0.5"),
            measure.worst(told("control < 1e-3", "control"), "0.5"),
        ),
        "difference of training losses over its rounding bound, with a difference above $10^{-3}$ nats elsewhere, and in training where a decoder is changed there",
        source="paper",
        where="Proposition 78",
    ),
    refuted(
        "TE-8.c",
        "A code without token excess preserves all and only the equivalence classes of the token ecology.",
        TwinDecoders,
        measure.largest(lambda rows: rows["extra"] * told("identity < 1e-12", "identity")(rows)),
        "a number of equivalent pairs that a code without excess keeps apart",
        exactly(0),
        source="paper",
        where="Proposition 46 (a)",
        unit="pairs",
    ),
    computed(
        "TE-8.d",
        r"A code without excess preserves all of them; only them if it is also the simplest: at a price $\beta>0$ the quotient has a smaller $J_\beta$ than every other code without excess.",
        TwinDecoders,
        measure.smallest("priced"),
        r"least $J_\beta$ of another code without excess less that of the quotient, at half of $\beta_{\min}$ and at twice as much as it",
        at_least(1e-9),
        unit="nats",
        amends="TE-8.c",
    ),
)
