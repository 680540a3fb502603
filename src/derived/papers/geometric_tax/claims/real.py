"""GT-10, GT-12 on real weights and real data. Criteria and expected verdicts were written before the run; a pilot on
genes of mice, and on another piece of human DNA, had been seen."""

from itertools import permutations

import numpy as np
import pandas as pd

from derived.lab import stats
from derived.lab.claims import at_least, at_most, statistic
from derived.lab.measure import by_draw
from derived.lab.stats import Estimate

from ..experiments.real import AntibodyWalks, HumanStrands
from .measures import SAME, ordering, ratio

WINDOWS = {"heavy": 0, "light": 1, "heavy, untrained": 2, "light, untrained": 3}  # from the shortest on


def spread(rows: pd.DataFrame, windows: str) -> pd.Series:
    """ln of the largest over the smallest step of the encoders, gene by gene: all at the longest window ("one"), each
    at its own ("published"), or two at the longest and two at the next ("near")."""
    lengths = sorted(rows["L"].unique())
    place = {"one": lambda own: -1, "published": lambda own: own, "near": lambda own: -1 - own % 2}[windows]
    own = rows["encoder"].map(lambda name: lengths[place(WINDOWS[name])])
    steps = np.log(by_draw(rows["cosine"], rows, ["L", "encoder", "gene"]).mean())
    wanted = pd.MultiIndex.from_frame(rows.assign(L=own)[["L", "encoder", "gene"]].drop_duplicates())
    by_gene = steps.loc[wanted].groupby("gene")
    return by_gene.max() - by_gene.min()


def differ(rows: pd.DataFrame, windows: str = "one") -> Estimate:
    """The factor between the encoders: geometric mean over genes."""
    return ratio(stats.mean(spread(rows, windows)))


def windows_alone(rows: pd.DataFrame, windows: str = "published") -> Estimate:
    """The factor with unequal windows over that with one window for all."""
    return ratio(stats.mean(spread(rows, windows) - spread(rows, "one")))


def dealt(rows: pd.DataFrame) -> list[float]:
    """The factor between the encoders for each way to deal the windows to them, one each."""
    steps = np.log(by_draw(rows["cosine"], rows, ["encoder", "L", "gene"]).mean()).unstack("gene")
    found = (steps.loc[[*zip(WINDOWS, way, strict=True)]] for way in permutations(sorted(rows["L"].unique())))
    return [float(np.exp((each.max() - each.min()).mean())) for each in found]


CLAIMS = (
    statistic(
        "GT-10.d",
        "With one window for all, the trained models of antibody chains and the same models before training differ by a factor of at most 10 in the cosine step of a walk of mutations through real genes of heavy chains.",
        AntibodyWalks,
        differ,
        "largest over smallest median step of four encoders, geometric mean over genes",
        at_most(10),
        plain="Where all models read one window, the roughness of mutation walks differs far less than 3,000 times.",
        where="Sapiens, heavy and light chain, one model of each, on human germline genes of the heavy chain alone; the published factor is 3,000, of other models with other windows",
        unit="times",
        made_of="real weights",
        control=lambda rows: differ(rows, "near"),  # windows of 48 and 96 residues
    ),
    statistic(
        "GT-10.e",
        "Windows in the proportions of the four published ones make the same four encoders differ at least thirty times as much as one window for all.",
        AntibodyWalks,
        windows_alone,
        "largest over smallest cosine step, published over equal windows",
        at_least(30),
        where="the criterion of GT-10.c, on real weights and real genes; the proportion is kept and the windows are shorter, the shortest of two residues, where one step is large",
        unit="times",
        made_of="real weights",
        control=lambda rows: windows_alone(rows, "near"),
    ),
    statistic(
        "GT-12.f",
        "A random readout of 3-mers, which knows of no strand, scores high on windows of human DNA and on their shuffles, and low on one chain fitted to all of them and on uniform letters.",
        HumanStrands,
        lambda rows: ordering(rows, ("human", "shuffled")),
        "similarity of RDMs, lower of the first two less higher of the last two",
        at_least(0.3),
        where="the criterion of GT-12.b; 2.2 million letters of chromosome 6, the unit is a stretch of 200 windows",
        unit="correlation",
        made_of="real data",
        control=lambda rows: ordering(rows, *SAME),
    ),
)
