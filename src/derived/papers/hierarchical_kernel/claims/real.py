"""The ledger of real data and weights: pictures of clothes read pixel by pixel, speeches read letter by letter, and the
parts of the scores of trained encoders."""

from derived.lab.claims import RECORDED, Claim, at_least, statistic
from derived.lab.measure import Measure, lowest, mean

from ..experiments.real import Clothes, Real, ScoreParts, Speeches
from .measures import RIVALS, by_chance, least_gain, settled, tuned_gain

REAL = {"unit": "share", "judged_at": RECORDED, "made_of": "real data", "scale": {"cpu": "ours"}, "matters": 0.02}
ARMS = "one block, all arms but plain with as many numbers as HKT, each at its own learning rate"
PICTURES = "real pictures of clothes, 14 by 14 grey levels read pixel by pixel"
OF_PICTURES = f"{ARMS}; no picture is given to two networks. Not the paper's CIFAR-10, which could not be had"
LETTERS = "State of the Union speeches, 128 letters in a row, asked for their half-century"
OF_LETTERS = (
    f"{ARMS}; half of the speeches, drawn for each network, are kept to judge it, so that the interval is over networks and"
    " halves of these speeches, not over others. Not the paper's IMDB"
)


def over_plain(id: str, experiment: type[Real], task: str, where: str, paper_value: str) -> Claim:
    """That HKT gains over standard attention."""
    return statistic(
        id,
        f"HKT is more accurate than standard attention on {task}.",
        experiment,
        settled(tuned_gain("plain")),
        "paired difference of test accuracy at the end of training",
        at_least(0),
        where=where,
        paper_value=paper_value,
        control=settled(by_chance("plain")),
        **REAL,
    )


def over_rivals(id: str, experiment: type[Real], task: str, where: str) -> Claim:
    """That HKT gains over more weights, over a plain convolution, and over summaries that are not learned."""
    return statistic(
        id,
        "HKT is more accurate than attention of three times the width of its queries and keys, than attention whose"
        f" queries and keys read a plain convolution, and than HKT with frozen averaging, on {task}.",
        experiment,
        settled(least_gain(RIVALS)),
        "paired differences of test accuracy at the end of training, jointly",
        at_least(0),
        where=where,
        control=settled(least_gain(RIVALS[1:], "wide")),  # as many numbers, no summaries
        **REAL,
    )


def mutual(heads: str) -> Measure:
    """The symmetric share of the scores, sequence by sequence, in the model where it is least."""
    return mean("symmetric", f"heads == '{heads}'", unit=["replicate"], by=["model"], decides=lowest)


ON_REAL = (
    over_plain("HKT-E2.f", Clothes, PICTURES, OF_PICTURES, "1.44 points on CIFAR-10"),
    over_rivals("HKT-E2.g", Clothes, PICTURES, OF_PICTURES),
    over_plain("HKT-E3.f", Speeches, LETTERS, OF_LETTERS, "7.47 points on IMDB"),
    over_rivals("HKT-E3.g", Speeches, LETTERS, OF_LETTERS),
)

ENCODERS = (
    statistic(
        "HKT-5.h",
        "In three trained encoders without a mask, two of antibodies and one of reactions, the symmetric part holds at least"
        " three fifths of the squared norm of the scores between different tokens, in the mean over heads; chance gives one"
        " half.",
        ScoreParts,
        mutual("trained"),
        "symmetric share of the squared norm, mean over heads, layers and sequences, of the model where it is least",
        at_least(0.6),
        unit="share",
        where="scores centred over queries and keys, since softmax drops what all keys share; human genes of antibodies, and"
        " the reactions of the model's own package; a pilot on genes of mice had been seen. That encoders become symmetric"
        " was found before, in weights (Saponati et al. 2025)",
        made_of="real weights",
        scale={"ci": "ours"},
        control=mutual("drawn"),  # heads drawn anew read the same tokens
    ),
)
