"""SA-10: trained transformers. Criteria and expected verdicts were written before the run, unless a claim says otherwise.

A training cut short at tier ci compares code and judges nothing.
"""

from derived.lab import measure
from derived.lab.claims import RECORDED, Change, at_least, at_most, holds, statistic
from derived.lab.measure import highest

from ..experiments.streams import Bernoulli, Markov

CPU = {"judged_at": RECORDED, "expected": holds("cpu"), "unit": "nats"}
ALONE = (
    Change(
        "2026-11-22",
        "The words of the statement changed after rows existed.",
        "It spoke of the network of another row and could not be read alone.",
    ),
)
LONGER = (
    Change(
        "2026-11-23",
        "A network was trained for 1000 steps whatever its context, so that at a context of 8 it read a quarter of the tokens of one at 32; now every network reads 1,024,000 tokens, as the longest did.",
        "Training was too short at the shortest context, and the verdict undecided. A pilot of four networks of another seed, its rows thrown away, fixed the size; it had shown excesses of 0.002 to 0.004 before this was written. The criterion is as it was.",
    ),
)

CLAIMS = (
    statistic(
        "SA-10.a",
        r"Trained on many streams of two coins, a one-layer transformer predicts as the exact Bayes mixture does.",
        Bernoulli,
        measure.mean("excess", "chosen and arm == 'many'"),
        "excess log loss over the Bayes mixture on fresh streams, mean of eight models",
        at_most(0.012),
        **CPU,
        plain="Trained on many streams, a small transformer is nearly the best predictor there is for the mixture.",
    ),
    statistic(
        "SA-10.b",
        r"Trained on one stream of one coin, a one-layer transformer predicts as that coin does.",
        Bernoulli,
        measure.mean("own", "chosen and arm == 'one'"),
        "excess log loss over the coin's entropy on texts of that coin, mean of eight models",
        at_most(0.012),
        **CPU,
        changed=ALONE,
    ),
    statistic(
        "SA-10.c",
        r"Trained on one stream of one coin, a one-layer transformer has not learnt the other coin.",
        Bernoulli,
        measure.mean("other", "chosen and arm == 'one'"),
        "excess log loss over the Bayes mixture on texts of the other coin, mean of eight models",
        at_least(0.4),
        **CPU,
        changed=ALONE,
    ),
    statistic(
        "SA-10.d",
        r"On three chains of one marginal, two layers trained on many streams predict as the Bayes mixture does, at each of several context lengths.",
        Markov,
        measure.mean("excess", "chosen", unit=["model"], by=["context"], decides=highest),
        "excess log loss over the Bayes mixture, mean of the models, the worst context length",
        at_most(0.012),
        **CPU,
        changed=LONGER,
    ),
)
