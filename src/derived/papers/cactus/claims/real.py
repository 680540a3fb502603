"""CAC-8, 12 and 13 on a verifier that somebody trained; the unit is the text. Criteria were written before the record."""

from derived.lab import measure
from derived.lab.claims import RECORDED, Claim, at_least, identity, reported, statistic

from ..experiments.real import Novels

GEMMA = {
    "made_of": "real weights",
    "where": "Gemma 3 270M reads *Persuasion*; a table of counts from other novels drafts",
}


def closer(id: str, delta: float) -> Claim:
    """Lenience at Cactus' mean acceptance is closer to the verifier than Cactus; interpolation must not be."""

    def less_than_cactus(rule: str) -> measure.Measure:
        both = f"delta == {delta} and (rule == 'cactus' or rule == '{rule}')"
        return measure.mean("kl * ((rule == 'cactus') * 2 - 1) * 2", both, unit=["text"])

    return statistic(
        id,
        rf"When Gemma 3 270M reads *Persuasion*, drafted from counts of five other novels of its author, lenience at the mean "
        rf"acceptance of Cactus with $\delta={delta:g}$ emits a distribution nearer to Gemma's, in KL per token, than Cactus does.",
        Novels,
        less_than_cactus("lenience"),
        "KL of Cactus less that of lenience, mean over texts",
        at_least(0.001),
        null=less_than_cactus("interp"),
        unit="nats per token",
        judged_at=RECORDED,
        **GEMMA | {"where": GEMMA["where"] + "; pages of one book count, and knobs are matched on these pages"},
    )


CLAIMS = (
    identity(
        "CAC-8.c",
        "On a trained verifier, too, each drafted position pays for the acceptance that it gains beyond exact sampling with "
        "exactly as much total variation.",
        Novels,
        measure.worst("gap", "bound", "rule != 'exact'"),
        **GEMMA,
    ),
    reported(
        "CAC-12.k",
        r"On a trained verifier with a draft of word counts Cactus keeps this share of the drafts at $\delta=1$.",
        Novels,
        measure.mean("acceptance", "rule == 'cactus' and delta == 1", unit=["text"]),
        "share of drafts",
        **GEMMA,
    ),
    closer("CAC-13.h", 0.01),
    closer("CAC-13.i", 1.0),
)
