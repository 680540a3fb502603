"""SA-10: trained transformers. Criteria and expected verdicts were written before the run, unless a claim says otherwise.

A training cut short at tier ci compares code and judges nothing.
"""

from derived.lab import measure
from derived.lab.claims import RECORDED, at_most, statistic
from derived.lab.measure import highest

from ..experiments.streams import Bernoulli, Markov

CPU = {"judged_at": RECORDED, "unit": "nats"}

CLAIMS = (
    statistic(
        "SA-10.a",
        r"Trained on many streams of two coins, a one-layer transformer predicts as the exact Bayes mixture does.",
        Bernoulli,
        measure.mean("excess", "chosen and arm == 'many'"),
        "excess log loss over the Bayes mixture on fresh streams, mean of eight models",
        at_most(0.005),
        **CPU,
        horizon="200 steps of 32 texts",
        plain="Trained on many streams, a small transformer is nearly the best predictor there is for the mixture.",
        control=measure.mean("excess", "chosen and arm == 'one'"),
    ),
    statistic(
        "SA-10.b",
        r"Trained on one stream of one coin, a one-layer transformer predicts as that coin does.",
        Bernoulli,
        measure.mean("own", "chosen and arm == 'one'"),
        "excess log loss over the coin's entropy on texts of that coin, mean of eight models",
        at_most(0.005),
        **CPU,
        horizon="200 steps of 32 texts",
        control=measure.mean("own", "chosen and arm == 'many'"),
    ),
    statistic(
        "SA-10.d",
        r"On three chains of one marginal, two layers trained on many streams predict as the Bayes mixture does, at each of several context lengths.",
        Markov,
        measure.mean("excess", "chosen", unit=["model"], by=["context"], decides=highest),
        "excess log loss over the Bayes mixture, mean of the models, the worst context length",
        at_most(0.005),
        **CPU,
        control=measure.mean("blind", "chosen", unit=["model"], by=["context"], decides=highest),
        horizon="contexts of $8$ to $32$ tokens at tier cpu",
    ),
)
