"""Topic real: readers, exponents on series whose memory is known, and letters of known chains."""

import numpy as np
import pandas as pd
import pytest
import torch
from here import needs

from derived.lab.rng import stream
from derived.papers.stochastic_approximation import FractionalGaussian
from derived.papers.stochastic_approximation.claims.real import CLAIMS, exponent
from derived.papers.stochastic_approximation.data import real
from derived.papers.stochastic_approximation.experiments.real import Names, Settling, settling

FACTS = {"seed": 0, "device": torch.device("cpu"), "dtype": torch.float64}


@pytest.mark.parametrize("H", [0.5, 0.8])
def test_the_exponent_is_that_of_noise_of_known_memory(H):
    y = FractionalGaussian(H).draw(5000, 40, stream(0, "noise")).y.numpy()
    found = np.array([settling(y[:, r], 5, 125) for r in range(40)])
    assert abs(found.mean() + 1 - H) < 0.06  # block means lose what the mean of the series takes
    assert abs(found.mean() + 1 - (1.3 - H)) > 0.06


def test_letters_and_their_chain():
    assert real.spelled("Ångström") == [0, *(real.LETTERS.index(c) for c in "angstrom"), 0]
    chain = real.letter_chain([real.spelled("aba"), real.spelled("ab")])
    assert np.abs(chain.sum(axis=1) - 1).max() <= 1e-15
    assert chain[1, 2] == 2.5 / (3 + 27 / 2)
    assert chain[5, 5] == 1 / 27


def test_an_interval_comes_from_the_resampled_series():
    table = pd.DataFrame({"data": ["as it is", *["resampled"] * 3, *["shuffled"] * 2], "replicate": [0, 0, 1, 2, 0, 1]})
    table = table.assign(series="returns", blocks=10, exponent=[-0.1, -0.2, -0.1, 0.0, -0.6, -0.4])
    found = exponent("returns")(table)
    assert (found.value, found.n, round(found.error, 12)) == (-0.1, 10, 0.1)
    assert abs(found.high - found.value - 3.2905 * 0.1) < 1e-4
    assert exponent("returns", "shuffled")(table).value == -0.5


@needs("arch", "statsmodels")
def test_series_are_whole_and_a_shuffle_takes_their_memory():
    assert [len(read()) for read in (real.sp500_returns, real.sunspots, real.nile, real.el_nino)] == [
        5030,
        309,
        100,
        732,
    ]
    assert abs(real.el_nino().reshape(-1, 12).mean(axis=0)).max() < 1e-9
    table = pd.concat([Settling(replicas=40).run(one, **FACTS).assign(**one) for one in Settling().conditions()])
    claim = next(claim for claim in CLAIMS if claim.id == "SA-7.c")
    assert claim.judge(claim.measure(table))[0] == "holds"
    assert claim.judge(claim.null(table))[0] == "fails"
    assert claim.judge(exponent("returns")(table))[0] == "fails"


@needs("faker")
def test_far_languages_are_told_at_the_predicted_rate_and_strangers_are_not():
    table = Names(languages=("fi_FI", "tr_TR")).run({}, **FACTS)
    assert (abs(table.groupby("language")["ratio"].mean() - 1) < 0.2).all()
    assert table.groupby("language")["right"].mean().min() > 0.9
    assert (table["letters"] >= 30).all()


@needs("faker")
def test_the_verdict_on_names_does_not_hang_on_their_split():
    claim = next(claim for claim in CLAIMS if claim.id == "SA-3.e")
    found = []
    for seed in (1, 2, 3):
        table = Names().run({}, **FACTS | {"seed": seed})
        assert claim.judge(claim.measure(table))[0] == "fails"
        found.append(claim.measure(table).value)
    assert len({*found}) == 3  # the splits differ
