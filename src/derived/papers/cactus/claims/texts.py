"""CAC-11: whole texts; criteria and expected verdicts were written before the run."""

import pandas as pd

from derived.lab import measure, stats
from derived.lab.claims import at_least, bound, identity, reported, statistic
from derived.lab.stats import Estimate

from ..experiments.texts import Blocks, MarkovPairs
from .measures import ratio

ROUNDING = "largest gap over $8V^4$ units in the last place"
LEVIATHAN = {"source": "prior", "where": "Leviathan et al. 2023"}


def rise(rows: pd.DataFrame) -> Estimate:
    """The KL per token at the largest vocabulary less that at 64 tokens, plain laws."""
    wide = measure.chosen(rows, "laws == 'plain'").pivot(index="replicate", columns="V", values="kl")
    return stats.mean(wide[wide.columns.max()] - wide[64])


def left_by_truncation(rows: pd.DataFrame) -> Estimate:
    """The KL per token with truncated laws over that with plain ones, at the largest vocabulary, total over total."""
    wide = measure.chosen(rows, "V == V.max()").pivot(index="replicate", columns="laws", values="kl")
    return ratio(wide["truncated"], wide["plain"])


CLAIMS = (
    identity(
        "CAC-11.a",
        r"Blocks of exact speculative sampling write texts with exactly the verifier's law.",
        Blocks,
        measure.worst(where="check == 'law'"),
        ROUNDING + ", over all texts of 4 tokens",
        **LEVIATHAN,
    ),
    identity(
        "CAC-11.b",
        r"With independent acceptances of probability $\alpha$ a block of $m$ drafts keeps ${\rm AL}_m=\alpha(1-\alpha^m)/(1-\alpha)$ of them on average.",
        Blocks,
        measure.worst(where="check == 'accepted'"),
        ROUNDING + ", to the enumeration",
        **LEVIATHAN,
    ),
    bound(
        "CAC-11.c",
        r"The KL of a text is at most the expected sum of the KL of what is emitted at its drafted positions.",
        Blocks,
        measure.worst(where="check == 'text'"),
        "cac-text",
        "largest excess over $8V^4$ units in the last place",
    ),
    statistic(
        "CAC-11.d",
        r"On chains whose next token has Zipf's law, in an order that depends on the class of the last token, a text written at $\delta=0.01$ without truncation is farther from the verifier's text, in KL per token, with the largest vocabulary than with 64 tokens.",
        MarkovPairs,
        rise,
        "KL per token at the largest vocabulary less that at 64 tokens, mean over pairs of chains",
        at_least(0),
        unit="nats per token",
        where="criterion before any run",
    ),
    reported(
        "CAC-11.e",
        r"On chains whose next token has Zipf's law, in an order that depends on the class of the last token, at $\delta=0.01$ and the largest vocabulary, truncated laws (temperature 0.6, top-p 0.95) pay this share of the KL per token that plain laws pay.",
        MarkovPairs,
        left_by_truncation,
        "of the KL without truncation",
        judged_at=("ci", "cpu"),
    ),
)
