"""A text pays for its world once: how much pressure to know the language is left after r letters (TE-6).

symbol              name       meaning                                                                axes
I(Y_(r+1); W | C)   pressure   what a reader who does not know the language loses at one letter        nats
C                   arm        what the reader sees: the prefix, its length alone, its last letter
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import matplotlib.pyplot as plt
import pandas as pd
import torch
from matplotlib.figure import Figure
from torch import Tensor

from derived.lab import stats
from derived.lab.claims import on_page, reported
from derived.lab.experiment import Experiment
from derived.lab.measure import chosen
from derived.lab.plot import BLUE, DASHED, INK, RED, beside, largest, panel_label
from derived.lab.rng import stream

from .data.languages import LanguageFamily, language_family

LANGUAGES = 5


@dataclass(frozen=True, kw_only=True)
class Pressure(Experiment):
    """TE-6.e: families of five languages whose distributions are known, equally likely, one drawn for each text. Arms:
    "prefix" (the reader sees all letters before), "length" (their number alone, as in the paper), "last letter", and
    the control "one language" (five copies of the first).

    The mean over texts of the divergence of the five distributions of the next letter, weighed by what the prefix says
    of the language, is unbiased for the information; the two other contexts need no texts. Rows: arm, replicate (a
    family), letter (how many stand before), pressure.
    """

    families: int = 24
    texts: int = 1000  # of each language
    letters: int = 26
    length: int = 64

    tiers: ClassVar = {"ci": {"families": 8, "texts": 120, "length": 32}, "cpu": {}}
    tiny: ClassVar = {"families": 2, "texts": 30, "length": 6}
    dtype: ClassVar = torch.float64

    def conditions(self) -> list[dict]:
        return [{"arm": arm} for arm in ("prefix", "length", "last letter", "one language")]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        arm, tables = condition["arm"], []
        for replicate in range(self.families):
            family = language_family(generator=stream(seed, "pressure", replicate), letters=self.letters)
            if arm == "one language":
                copies = torch.zeros(LANGUAGES, dtype=torch.long)
                family = LanguageFamily(family.first[copies], family.transitions[copies])
            if arm in ("length", "last letter"):
                found = without_prefix(family, self.length, arm == "last letter")
            else:
                languages = torch.arange(LANGUAGES).repeat_interleave(self.texts)
                found = along(family, family.texts(languages, self.length, stream(seed, "pressed", replicate)))
            table = {"replicate": replicate, "letter": range(self.length), "pressure": found.numpy()}
            tables.append(pd.DataFrame(table))
        return pd.concat(tables, ignore_index=True)


def divergence(weights: Tensor, laws: Tensor) -> Tensor:
    """Jensen-Shannon divergence of distributions (..., n, A) with weights (..., n), by terms that are not negative."""
    mixture = (weights.unsqueeze(-1) * laws).sum(dim=-2, keepdim=True)
    apart = (torch.xlogy(laws, laws) - torch.xlogy(laws, mixture.clamp(min=1e-300))).sum(dim=-1)
    return (weights * apart).sum(dim=-1).clamp(min=0)


def posterior(family: LanguageFamily, texts: Tensor) -> Tensor:
    """The probability of each language, all equally likely before, given the first r letters, (texts, T, n)."""
    seen = family.opened[:, texts[:, :-1], texts[:, 1:]].log().cumsum(dim=-1)  # (n, texts, T - 1)
    return torch.nn.functional.pad(seen, (1, 0)).softmax(dim=0).movedim(0, -1)


def along(family: LanguageFamily, texts: Tensor) -> Tensor:
    """The pressure at each letter of texts with their prefix in view, (T,)."""
    weights, opened = posterior(family, texts), family.opened
    each = (divergence(weights[:, r], opened[:, texts[:, r]].movedim(0, 1)).mean() for r in range(texts.shape[1] - 1))
    return torch.stack([*each])


def without_prefix(family: LanguageFamily, length: int, last: bool) -> Tensor:
    """The pressure where the reader sees how many letters there were, or the last of them, (length,)."""
    n = len(family.first)
    found = divergence(torch.full((n,), 1 / n, dtype=family.first.dtype), family.first).repeat(length)
    if last:
        joint = family.first.T / n  # (A, n): letter and language
        mass = joint.sum(dim=1)
        found[1:] = (mass * divergence(joint / mass.unsqueeze(1), family.transitions.movedim(1, 0))).sum()
    return found


# Claims: TE-6: contexts that know the world, and what a whole text can pay.

PRINTED = 30  # letters of a text in the paper


def paid(rows: pd.DataFrame, arm: str = "prefix") -> pd.Series:
    """What the first thirty letters press in all, family by family."""
    some = chosen(rows, f"arm == '{arm}' and letter < {PRINTED}")
    return some.groupby("replicate")["pressure"].sum(skipna=False)


CLAIMS = (
    on_page("TE-6.a"),
    on_page("TE-6.d"),
    reported(
        "TE-6.e",
        "In texts of thirty letters from families of five equally likely languages, a reader who sees all letters before but not the language loses so many nats a text; at most $\\ln5=1.609$ are possible.",
        Pressure,
        lambda rows: stats.mean(paid(rows)),
        "nats a text",
        control="nothing is judged; five copies of one language press nowhere, and a test asks for it",
        judged_at=("ci", "cpu"),
    ),
)


# Figures: what each letter costs and what all have cost so far: rows in, a figure with its alt text as label out.
#
# mark            meaning
# bars            a letter, with the whole prefix in view
# blue            the sum so far
# dashed          what the theorem allows in all


def pressure(rows: pd.DataFrame) -> Figure:
    """Pressure at each letter and its running sum under the entropy of the world; rows of ``Pressure``."""
    rows = largest(rows)
    wide = rows[rows["arm"] == "prefix"].pivot(index="replicate", columns="letter", values="pressure")
    at, mean, most = wide.columns + 1, wide.mean(), math.log(LANGUAGES)
    total = mean.cumsum()
    figure, ax = plt.subplots(figsize=(6.0, 2.15))
    ax.bar(at, mean, color=RED)
    ax.plot(at, total, color=BLUE, linewidth=2)
    ax.axhline(most, **DASHED)
    beside(ax, at[-1], most, f"ln 5 = {most:.2f}: to name one of five languages", INK, (0, 8), ha="right")
    beside(ax, at[11], total.iloc[11], "all letters so far", BLUE, (8, -10))
    beside(ax, at[4], mean.iloc[4], "this letter alone", RED, (6, 6))
    ax.set(xlabel="letter of the text", ylabel="nats saved by\nknowing the language", ylim=(0, 1.25 * most))
    panel_label(ax, f"However long the text, knowing its language saves at most {most:.2f} nats")
    figure.set_label(
        f"What a reader who does not know which of five languages is written loses: {mean.iloc[0]:.3f} nats at the "
        f"first letter, {mean.iloc[1]:.3f} at the second, {mean.iloc[-1]:.4f} at letter {at[-1]}; the sum is "
        f"{total.iloc[-1]:.2f} in the end, under ln 5 = {most:.2f}."
    )
    return figure
