"""CAC-11: whole texts; criteria and expected verdicts were written before the run."""

import pandas as pd

from derived.lab import measure, stats
from derived.lab.claims import at_least, on_page, statistic
from derived.lab.stats import Estimate

from ..experiments.texts import MarkovPairs


def rise(rows: pd.DataFrame) -> Estimate:
    """The KL per token at the largest vocabulary less that at 64 tokens, plain laws."""
    wide = measure.chosen(rows, "laws == 'plain'").pivot(index="replicate", columns="V", values="kl")
    return stats.mean(wide[wide.columns.max()] - wide[64])


def halves(rows: pd.DataFrame) -> Estimate:
    """The KL per token at 64 tokens in one half of the chains less that in the other: what chance alone gives."""
    spent = measure.chosen(rows, "laws == 'plain' and V == 64").sort_values("replicate")["kl"].to_numpy()
    return stats.mean(spent[::2] - spent[1::2])


CLAIMS = (
    on_page("CAC-11.c"),
    statistic(
        "CAC-11.d",
        r"On chains whose next token has Zipf's law, in an order that depends on the class of the last token, a text written at $\delta=0.01$ without truncation is farther from the verifier's text, in KL per token, with the largest vocabulary than with 64 tokens.",
        MarkovPairs,
        rise,
        "KL per token at the largest vocabulary less that at 64 tokens, mean over pairs of chains",
        at_least(0),
        control=halves,
        unit="nats per token",
        where="criterion before any run",
        horizon="texts on 1,024 tokens; the page goes on to 131,072 at one position, where the rise has ended",
    ),
)
