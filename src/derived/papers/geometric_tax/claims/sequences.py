"""GT-10, GT-12: DNA, pooled. Criteria and expected verdicts were written before the run."""

import numpy as np
import pandas as pd

from derived.lab import measure, stats
from derived.lab.claims import RECORDED, at_least, on_page, statistic, unseen
from derived.lab.stats import Estimate

from ..experiments.sequences import Diets, Strands, Trained, Walks
from .measures import SAME, ordering, ratio


def windows_alone(rows: pd.DataFrame) -> Estimate:
    """Largest over smallest step of four encoders, with the published windows over the same with one window."""
    steps = measure.by_draw(rows["cosine"], rows, ["setting", "replicate"])
    wide = np.log(steps.max() / steps.min()).unstack("setting")
    return ratio(stats.mean(wide["published"] - wide["same"]))


def other_walks(rows: pd.DataFrame) -> Estimate:
    """The same of one window for all, on every other walk over the walks between."""
    alike = rows[rows["setting"] == "same"]
    number = alike["replicate"].rank(method="dense").astype(int) - 1
    paired = alike.assign(setting=number % 2, replicate=number // 2)[number <= number.max() - (1 - number.max() % 2)]
    return windows_alone(paired.replace({"setting": {0: "published", 1: "same"}}))


VARIED = ("varied", "shuffled")


def order_of_each(rows: pd.DataFrame, stage: str) -> np.ndarray:
    """How far each network of a stage keeps the order of the arms (network,): what ``ordering`` is the mean of."""
    arms = measure.chosen(rows, f"stage == '{stage}'").pivot(index="replicate", columns="arm", values="similarity")
    return np.minimum(*arms[[*VARIED]].to_numpy().T) - np.maximum(arms["matched"], arms["uniform"]).to_numpy()


def widened(rows: pd.DataFrame) -> Estimate:
    """How much wider the order of the arms is in networks after training than before."""
    return stats.mean(order_of_each(rows, "trained") - order_of_each(rows, "untrained"))


def untrained_alone(rows: pd.DataFrame) -> Estimate:
    """The same without training in between: one half of the untrained networks less the other."""
    order = order_of_each(rows, "untrained")
    half = len(order) // 2
    return stats.mean(order[:half] - order[half : 2 * half])


def by_composition(rows: pd.DataFrame) -> Estimate:
    """How much wider the order of the arms is in networks that read DNA of varying composition than in the same ones
    that read DNA of one composition."""
    varied, one = (order_of_each(measure.chosen(rows, f"reads == '{diet}'"), "trained") for diet in ("varied", "one"))
    return stats.mean(varied - one)


def by_one_composition(rows: pd.DataFrame) -> Estimate:
    """How much DNA of one composition widens it."""
    return widened(measure.chosen(rows, "reads == 'one'"))


TRAINED = {"judged_at": RECORDED}
OURS = "small transformers trained on the chapter's generated DNA; a pilot at another seed had been seen"

CLAIMS = (
    unseen(
        "GT-10.a",
        "Under discrete tokenisation three architectures differ by a factor of 3,000 in the roughness of a mutation walk.",
        "no package ships the four models of the paper; GT-10.b and GT-10.c say what their windows alone make, GT-10.d what trained models of antibodies do",
        source="digest",
        where="abstract; that it is the mutation walks is said by a digest",
        paper_value="3,000",
        plain="Under discrete tokenisation architectures differ by a factor of 3,000.",
        unit="times",
    ),
    on_page("GT-10.b"),
    statistic(
        "GT-10.c",
        "Windows in the proportions of the four published ones make untrained encoders differ at least thirty times as much as one window for all.",
        Walks,
        windows_alone,
        "largest over smallest cosine step, published over equal windows",
        at_least(30),
        unit="times",
        control=other_walks,
    ),
    unseen(
        "GT-12.a",
        "The robustness of Evo 2 under reverse complement comes from the composition of sequences, not from a learned symmetry.",
        "no package ships the weights of Evo 2; GT-12.b and GT-12.c say what composition alone does to the same score, GT-12.d what small trained models do",
        source="paper",
        where="abstract",
        paper_value="direction",
        plain="A genome model that seems to know the two strands is reading composition.",
        unit="similarity",
    ),
    statistic(
        "GT-12.b",
        "A random readout of 3-mers, which knows of no strand, scores high on DNA of varying composition and on its shuffle, and low on one chain fitted to all of it and on uniform letters.",
        Strands,
        lambda rows: ordering(measure.chosen(rows, "readout == 'random'"), VARIED),
        "similarity of RDMs, lower of the first two less higher of the last two",
        at_least(0.3),
        unit="correlation",
        control=lambda rows: ordering(measure.chosen(rows, "readout == 'random'"), *SAME),
    ),
    on_page("GT-12.c"),
    statistic(
        "GT-12.d",
        "Training on DNA of varying composition widens the order of the arms of GT-12.b in small transformers.",
        Trained,
        widened,
        "lower of the first two similarities less higher of the last two, trained less untrained",
        at_least(0),
        unit="correlation",
        where=OURS + "; GT-12.g has what training on DNA of one composition does",
        scale={"gpu": "ours"},
        **TRAINED,
        control=untrained_alone,
    ),
    statistic(
        "GT-12.g",
        "Training on DNA of varying composition leaves a wider order of the arms of GT-12.b in small transformers than training on DNA of one composition.",
        Diets,
        by_composition,
        "lower of the first two similarities less higher of the last two, trained on the one less trained on the other, network by network",
        at_least(0),
        unit="correlation",
        where="the networks of GT-12.d with other draws; one composition is a random chain of letters for each network; one learning rate for both, and no plateau is asked",
        **TRAINED,
        control=by_one_composition,
    ),
)
