"""Real streams: series of numbers that ship with packages, and given names as letters.

Each reader raises FileNotFoundError, with the command that fetches it, where its package is not here (``pinned.path``).
"""

import unicodedata
from collections.abc import Sequence

import numpy as np
import pandas as pd
from jaxtyping import Float

from derived.lab.real.pinned import path

LETTERS = " abcdefghijklmnopqrstuvwxyz"  # the space stands before and after a name


def sp500_returns() -> Float[np.ndarray, "N"]:
    """Daily returns of the S&P 500 from 1999 to 2018, in per cent (package ``arch``)."""
    closes = pd.read_csv(path("arch") / "arch/data/sp500/sp500.csv.gz")["Adj Close"].to_numpy(dtype=float)
    return 100 * np.diff(np.log(closes))


def sunspots() -> Float[np.ndarray, "N"]:
    """Yearly numbers of sunspots since 1700 (package ``statsmodels``)."""
    return _dataset("sunspots")["SUNACTIVITY"].to_numpy(dtype=float)


def nile() -> Float[np.ndarray, "N"]:
    """Yearly flow of the Nile at Aswan since 1871 (package ``statsmodels``)."""
    return _dataset("nile")["volume"].to_numpy(dtype=float)


def el_nino() -> Float[np.ndarray, "N"]:
    """Monthly temperatures of the sea off Peru since 1950, less the mean of their month (package ``statsmodels``)."""
    months = _dataset("elnino").drop(columns="YEAR").to_numpy(dtype=float)
    return (months - months.mean(axis=0)).ravel()


def _dataset(name: str) -> pd.DataFrame:
    return pd.read_csv(path("statsmodels") / f"statsmodels/datasets/{name}/{name}.csv")


def spelled(name: str) -> list[int]:
    """A name between spaces as places in ``LETTERS``, accents dropped.

    >>> spelled("Zoë")
    [0, 26, 15, 5, 0]
    """
    plain = unicodedata.normalize("NFKD", name.lower())
    return [0, *(LETTERS.index(letter) for letter in plain if letter in LETTERS[1:]), 0]


def letter_chain(names: Sequence[Sequence[int]], added: float = 0.5) -> Float[np.ndarray, "S S"]:
    """Shares of the next letter after each letter, with half a count added to every pair. With nothing added, a letter
    that no name has is followed by none.

    >>> float(letter_chain([spelled("ab")])[1, 2].round(4))  # 1.5 / (1 + 27 / 2)
    0.1034
    """
    counts = np.full((len(LETTERS), len(LETTERS)), added)
    for name in names:
        np.add.at(counts, (name[:-1], name[1:]), 1.0)
    after = counts.sum(axis=1, keepdims=True)
    return counts / np.where(after > 0, after, 1.0)
