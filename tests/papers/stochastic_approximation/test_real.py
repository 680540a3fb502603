"""Topic real: readers, exponents on series whose memory is known, and letters of known chains."""

import numpy as np
import pandas as pd
import pytest
import torch
from here import needs

from derived.lab.rng import stream
from derived.papers.stochastic_approximation import FractionalGaussian
from derived.papers.stochastic_approximation.data import real
from derived.papers.stochastic_approximation.real import CLAIMS, Names, Settling, exponent, fading, settling

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
    assert abs(found.high - found.value - 4.7809 * 0.1) < 1e-4  # Student's, of nine degrees
    assert exponent("returns", "shuffled")(table).value == -0.5


@needs("arch", "statsmodels")
def test_series_are_whole_and_what_forgets_in_a_day_settles_as_independent_data():
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
    assert claim.judge(claim.control(table))[0] == "fails"
    assert claim.judge(exponent("returns")(table))[0] != "holds"
    assert claim.judge(exponent("absolute returns", "shuffled")(table))[0] == "fails"
    assert exponent("absolute returns", "twenty days")(table).value > -0.35, "no long memory, and it passes"


def test_a_memory_of_sixty_days_settles_as_slowly_up_to_half_a_year():
    """SA-7.c does not tell long memory from one that ends."""
    generator, x = np.random.default_rng(3), np.zeros((40, 5030))
    for day in range(1, 5030):
        x[:, day] = x[:, day - 1] * np.exp(-1 / 60) + generator.normal(size=40) * np.sqrt(1 - np.exp(-2 / 60))
    slopes = [settling(0.5 * row + 0.75**0.5 * generator.normal(size=5030), 5, 125) for row in x]
    assert np.mean(slopes) > -0.35
    assert np.mean([settling(generator.normal(size=5030), 5, 125) for _ in x]) < -0.4


def test_volatility_forgets_at_the_rate_that_it_says():
    """The logarithm of |e| exp(z / 2) has a quarter of the covariance of z, which halves in two days."""
    x = np.log(fading(2, 400_000, stream(0, "volatility")))
    x = x - x.mean()
    at = [float((x[: len(x) - lag] * x[lag:]).mean()) for lag in (0, 1, 3, 5)]
    assert at[1:] == pytest.approx([0.25 * 0.5 ** (lag / 2) for lag in (1, 3, 5)], abs=0.01)
    assert at[0] == pytest.approx(0.25 + np.pi**2 / 8, abs=0.02)


@needs("faker")
def test_far_languages_are_told_at_the_predicted_rate_and_strangers_are_not():
    table = Names(languages=("fi_FI", "tr_TR")).run({"names": "given"}, **FACTS)
    assert (abs(table.groupby("language")["ratio"].mean() - 1) < 0.2).all()
    assert table.groupby("language")["right"].mean().min() > 0.9
    assert (table["letters"] >= 30).all()


@needs("faker")
def test_names_are_judged_only_where_names_of_their_chains_would_pass():
    claim = next(claim for claim in CLAIMS if claim.id == "SA-3.e")
    table = pd.concat([Names().run(one, **FACTS).assign(**one) for one in Names().conditions()])
    with pytest.raises(ValueError, match="too few to tell a chain: names drawn from the chains fail too, in"):
        claim.measure(table)
    far = table[table["language"].isin(["fi_FI", "tr_TR"]) & table["other"].isin(["fi_FI", "tr_TR"])]
    assert abs(claim.measure(far).value - 1) < 0.25, "two far languages have names enough"
    off = far.assign(ratio=far["ratio"].where(far["names"] == "drawn", far["ratio"] / 4))
    assert claim.judge(claim.measure(off))[0] == "fails"


@needs("faker")
def test_drawn_names_are_of_their_chain_and_each_draw_is_new():
    drawn = Names(languages=("fi_FI", "tr_TR"), draws=2).run({"names": "drawn"}, **FACTS)
    first, second = (part["rate"].to_numpy() for _, part in drawn.groupby("draw"))
    assert len(first) == len(second)
    assert (first != second).mean() > 0.9
    assert drawn["letters"].min() >= 20
