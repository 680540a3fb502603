"""Real streams: how fast means of a series settle, and how fast letters tell the language of names (SA-3, SA-7).

symbol   name       meaning                                                                   axes
m        m          length of a block                                                         (M,)
e_m      -          root mean square distance of block means to the mean of the series        (M,)
-        exponent   slope of ln e_m in ln m: -1/2 for short memory, -(1 - H) for long         number
"""

from dataclasses import dataclass
from typing import ClassVar

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure
from scipy.signal import lfilter
from scipy.stats import t

from derived.lab import measure
from derived.lab.claims import at_least, statistic, within
from derived.lab.experiment import Experiment
from derived.lab.measure import farthest_from
from derived.lab.plot import BLUE, DASHED, INK, MUTED, ORANGE, THEORY, beside, largest, panel_label
from derived.lab.real.texts import given_names
from derived.lab.rng import stream
from derived.lab.stats import LEVEL, Estimate

from .data.real import el_nino, letter_chain, nile, sp500_returns, spelled, sunspots
from .model.chains import kl_rate

#: Reader, shortest and longest block: from a week to half a year of trading days, and up to a tenth of a short series.
SERIES = {
    "absolute returns": (lambda: np.abs(sp500_returns()), 5, 125),
    "returns": (sp500_returns, 5, 125),
    "sunspots": (sunspots, 1, 30),
    "Nile": (nile, 1, 10),
    "El Nino": (el_nino, 1, 73),
}


def settling(x: np.ndarray, first: int, last: int) -> float:
    """Slope of the logarithm of e_m in ln m at up to eight lengths."""
    lengths, errors = np.unique(np.geomspace(first, last, 8).astype(int)), []
    for m in lengths:
        blocks = x[: len(x) // m * m].reshape(-1, m).mean(axis=1)
        errors.append(((blocks - x.mean()) ** 2).mean() ** 0.5)
    return float(np.polyfit(np.log(lengths), np.log(errors), 1)[0])


#: Days after which the correlation of volatility has halved.
FADING = {"one day": 1, "twenty days": 20}


def fading(days: float, n: int, generator: torch.Generator) -> np.ndarray:
    """|e| exp(z / 2) for independent normal e and an AR(1) z of unit variance and this half-life: volatility that
    forgets."""
    shocks = torch.randn(2, n, generator=generator, dtype=torch.float64).numpy()
    kept = 0.5 ** (1 / days)
    shocks[0, 1:] *= (1 - kept**2) ** 0.5
    return np.abs(shocks[1]) * np.exp(lfilter([1.0], [1.0, -kept], shocks[0]) / 2)


@dataclass(frozen=True, kw_only=True)
class Settling(Experiment):
    """SA-7: exponents of the error of block means of real series. Data: "as it is" (one row), "resampled" (moving
    blocks of four times the longest m, which keep memory up to it) and "shuffled" in time (a control); for absolute
    returns also series as long whose memory is known and short, of FADING. Rows: series, data, replicate, blocks (how
    many moving blocks make a series), exponent."""

    replicas: int = 1000

    needs: ClassVar = ("arch", "statsmodels")
    tiers: ClassVar = {"ci": {"replicas": 100}, "cpu": {}}
    tiny: ClassVar = {"replicas": 5}

    def conditions(self) -> list[dict]:
        return [{"series": name} for name in SERIES]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        read, first, last = SERIES[condition["series"]]
        x, generator = read(), stream(seed, "blocks", condition["series"])
        length, count = 4 * last, -(-len(x) // (4 * last))
        found = [("as it is", 0, settling(x, first, last))]
        for replicate in range(self.replicas):
            starts = torch.randint(len(x) - length + 1, (count,), generator=generator).tolist()
            resampled = np.concatenate([x[start : start + length] for start in starts])[: len(x)]
            found.append(("resampled", replicate, settling(resampled, first, last)))
            shuffled = x[torch.randperm(len(x), generator=generator).numpy()]
            found.append(("shuffled", replicate, settling(shuffled, first, last)))
        if condition["series"] == "absolute returns":
            for name, days in FADING.items():
                known = (fading(days, len(x), generator) for _ in range(self.replicas))
                found += [(name, replicate, settling(each, first, last)) for replicate, each in enumerate(known)]
        table = pd.DataFrame(found, columns=["data", "replicate", "exponent"])
        return table.assign(blocks=len(x) // length)


@dataclass(frozen=True, kw_only=True)
class Names(Experiment):
    """SA-3: log-odds of the language of names, letter by letter. Half of a language's names make its chain; the other
    half, ten names after one another, are its streams. Names: "given", and as many "drawn" from the chains of the
    given ones, for which the theory is exact (the control). Rows: names, draw, language, other, replicate,
    rate (log-odds of the language against the other, per letter), kl (what the two chains predict), ratio, letters,
    right (the language has the largest likelihood of all); of drawn names the means over the streams of a draw."""

    languages: tuple[str, ...] = ("de_DE", "fi_FI", "it_IT", "nl_NL", "sv_SE", "tr_TR")
    length: int = 10
    draws: int = 12

    needs: ClassVar = ("faker",)
    tiers: ClassVar = {"ci": {}, "cpu": {}}
    tiny: ClassVar = {"draws": 2}

    def conditions(self) -> list[dict]:
        return [{"names": "given"}, {"names": "drawn"}]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        given = {
            language: sorted({tuple(spelled(name)) for name in given_names(language)} - {(0, 0)})
            for language in self.languages
        }
        if condition["names"] == "given":
            return self.told(given, seed).assign(draw=0)
        draws = [{name: _drawn(names, seed, name, draw) for name, names in given.items()} for draw in range(self.draws)]
        found = [self.told(names, seed).groupby(["language", "other"], as_index=False).mean() for names in draws]
        return pd.concat([means.assign(draw=draw) for draw, means in enumerate(found)])

    def told(self, known: dict[str, list[tuple[int, ...]]], seed: int) -> pd.DataFrame:
        """Log-odds of each stream's language against each other one, where these are the names of each language."""
        chains, streams = {}, {}
        for language, names in known.items():
            order = torch.randperm(len(names), generator=stream(seed, "split", language)).tolist()
            names, half = [names[place] for place in order], len(names) // 2
            chains[language] = letter_chain(names[:half])
            parts = range(half, len(names) - self.length + 1, self.length)
            streams[language] = [names[start : start + self.length] for start in parts]
        rates = {
            (one, other): kl_rate(A, B) for one, A in chains.items() for other, B in chains.items() if one != other
        }
        found = []
        for language, parts in streams.items():
            for replicate, part in enumerate(parts):
                pairs = np.concatenate([np.array([name[:-1], name[1:]]) for name in part], axis=1)
                told = {other: float(np.log(P[tuple(pairs)]).sum()) for other, P in chains.items()}
                row = {"language": language, "replicate": replicate, "letters": pairs.shape[1]}
                row["right"] = float(max(told, key=told.get) == language)
                for other in chains.keys() - {language}:
                    rate = (told[language] - told[other]) / pairs.shape[1]
                    found.append(row | {"other": other, "rate": rate, "kl": rates[language, other]})
        table = pd.DataFrame(found).sort_values(["language", "other", "replicate"], ignore_index=True)
        return table.assign(ratio=table["rate"] / table["kl"])


def _drawn(names: list[tuple[int, ...]], seed: int, language: str, draw: int) -> list[tuple[int, ...]]:
    """As many names as there are, drawn letter by letter from their chain, without an added count."""
    generator, chain = stream(seed, "drawn", language, draw), torch.from_numpy(letter_chain(names, added=0.0))
    found, last = [[0] for _ in names], torch.zeros(len(names), dtype=torch.long)
    going = torch.arange(len(names))
    while len(going):
        last[going] = torch.multinomial(chain[last[going]], 1, generator=generator).squeeze(1)
        for place in going.tolist():
            found[place].append(int(last[place]))
        going = going[last[going] > 0]
    return [tuple(name) for name in found]


# Claims: SA-3.e and SA-7.c: real streams. Criteria were written after a pilot of the same series and names at other
# settings.


def exponent(series: str, data: str = "as it is") -> measure.Measure:
    """The exponent of a series, with the spread of its resampled series as its standard error and Student's quantile for
    as many moving blocks as ``n`` counts; of other data the mean, with the spread of single series."""

    def estimate(rows: pd.DataFrame) -> Estimate:
        some = measure.chosen(rows, f"series == '{series}'")
        values = measure.by_draw(some["exponent"], some, ["data", "replicate"]).first()
        spread, blocks = values["resampled" if data == "as it is" else data].std(), int(some["blocks"].iloc[0])
        n = blocks if data == "as it is" else len(values[data])
        value, reach = float(values[data].mean()), float(t.ppf((1 + LEVEL) / 2, n - 1) * spread)
        return Estimate(value, blocks, value - reach, value + reach, float(spread))

    return estimate


FARTHEST = measure.mean("ratio", by=["language", "other"], decides=farthest_from(1))
AWAY = 0.25  # of a ratio from 1, at most


def one_rate(rows: pd.DataFrame) -> Estimate:
    """The log-odds per letter over one rate for all pairs, the mean of theirs; the farthest of the pairs."""
    some = measure.chosen(rows, "names == 'given'")
    return FARTHEST(some.assign(ratio=some["rate"] / some["kl"].mean()))


def off_of_drawn(rows: pd.DataFrame) -> pd.Series:
    """How far the ratio of the farthest pair is from 1, in each draw of names from their chains."""
    ratios = measure.chosen(rows, "names == 'drawn'").groupby(["draw", "language", "other"])["ratio"].mean()
    return (ratios - 1).abs().groupby("draw").max()


def where_a_chain_is_known(rows: pd.DataFrame) -> Estimate:
    """The log-odds over their rate, the farthest of the pairs.

    ValueError, so that the claim is undecided, where names drawn from chains, for which the theory is exact, are as far
    off in half of the draws: then the names are too few to tell a chain.
    """
    off = off_of_drawn(rows) > AWAY
    if off.mean() >= 0.5:
        raise ValueError(
            f"the names are too few to tell a chain: names drawn from the chains fail too, in {off.sum()} of {len(off)} draws"
        )
    return FARTHEST(measure.chosen(rows, "names == 'given'"))


CLAIMS = (
    statistic(
        "SA-7.c",
        r"Means of the absolute daily returns of the S&P 500 over $m$ days settle more slowly than $m^{-0.35}$ for $m$ from $5$ to $125$.",
        Settling,
        exponent("absolute returns"),
        r"slope of the root mean square error of block means (interval: moving blocks of $500$ days)",
        at_least(-0.35),
        unit="exponent",
        control=exponent("absolute returns", "one day"),
        where="the limit is chosen and not derived; independent data have $-\\frac12$; slowly fading dependence passes, too: series whose volatility halves its correlation in twenty days",
        horizon="$m=125$ of $5{,}030$ days",
        made_of="real data",
    ),
    statistic(
        "SA-3.e",
        r"Along held-out given names of six languages the log-odds of the language against another grow at the rate $\sum_i\pi_i\sum_jA_{ij}\ln(A_{ij}/B_{ij})$ per letter of the chains that the other half of the names make.",
        Names,
        where_a_chain_is_known,
        "log-odds per letter over the rate, mean over streams of ten names, the farthest of thirty pairs of languages; undecided where names drawn from the chains fail in half of twelve draws",
        within(1, AWAY),
        unit="ratio",
        control=one_rate,
        where="one split of the names into halves; the interval is over streams of the held-out half",
        made_of="real data",
    ),
)


# Figures: Real streams: rows in, a figure with its alt text as label out.
#
# mark               meaning
# filled, open       a series as it is, and shuffled in time; bars: 99.9 % by resampling
# points             two languages: rate of the log-odds that is seen, against the one that two chains predict

REACH = 3.29  # standard errors of a 99.9 % interval


def streams(settling: pd.DataFrame, names: pd.DataFrame) -> Figure:
    """Exponents of real series, and log-odds of languages; rows of ``Settling`` and ``Names``."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.6, 3.2), width_ratios=(1.2, 1))
    words = []
    for place, (name, part) in enumerate(largest(settling).groupby("series", sort=False)):
        spread = part.groupby("data")["exponent"].agg(["mean", "std"])
        for data, error, shift, color, face in (
            ("as it is", "resampled", 0.12, BLUE, BLUE),
            ("shuffled", "shuffled", -0.12, MUTED, "none"),
        ):
            reach = REACH * spread.at[error, "std"]
            mean = spread.at[data, "mean"]
            left.errorbar(mean, -place + shift, xerr=reach, fmt="o", color=color, mfc=face)
            if place == 0:
                beside(left, mean + reach, -place + shift, data, color, (4, 25 * shift), fontsize=8)
        words.append(f"{name} {spread.at['as it is', 'mean']:.2f}, shuffled {spread.at['shuffled', 'mean']:.2f}")
    left.axvline(-0.5, **THEORY)
    left.set_yticks([-place for place in range(len(words))], largest(settling)["series"].unique())
    left.set(xlabel="exponent of the error of means", ylim=(-len(words), 0.5))
    beside(left, -0.5, 0.35 - len(words), "independent data", INK, (4, 0), fontsize=8)
    panel_label(left, "Volatility settles slowly")
    given = largest(names).query("names == 'given'")
    pairs = given.groupby(["language", "other"])[["kl", "rate"]].mean()
    right.plot(pairs["kl"], pairs["rate"], "o", color=ORANGE, markersize=4)
    right.axline((0, 0), slope=1, **DASHED)
    near = pairs["rate"].idxmin()
    beside(right, *pairs.loc[near], " and ".join(code[:2] for code in near), ORANGE, (6, 0), fontsize=8)
    right.set(xlabel="predicted, nats per letter", ylabel="seen on held-out names")
    panel_label(right, "log-odds of a language")
    ratio = pairs["rate"] / pairs["kl"]
    figure.set_label(
        f"Exponents of the error of block means: {'; '.join(words)}. Independent data: -0.50. Log-odds per letter over "
        f"the predicted rate, {len(pairs)} pairs of languages: {ratio.min():.2f} to {ratio.max():.2f}."
    )
    return figure
