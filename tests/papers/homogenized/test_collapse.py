"""The collapse: rows, measures and figures."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
import torch

from derived.lab.experiment import run_condition
from derived.lab.rng import stream
from derived.papers.homogenized import collapse
from derived.papers.homogenized.collapse import CLAIMS, Cold, FinalRate, Freezing, Hot, off_diagonal, start
from derived.papers.homogenized.model.gram import simulate_gram
from derived.papers.homogenized.model.heads import matched_law

MEASURES = {claim.id: claim.measure for claim in CLAIMS}
EXPERIMENTS = (Hot, Cold, Freezing, FinalRate)


CHAIN = {"layer", "tau", "replicate"}


COLUMNS = {
    Hot: CHAIN | {"d", "m", "u"},
    Cold: CHAIN | {"d", "gamma", "spread", "gamma_theory"},
    Freezing: {"n", "logit_std", "ode", "ode_d", "hot", "chain", "replicate"},
    FinalRate: CHAIN | {"d", "n", "logit_std", "log_missing"},
}


def test_rows_have_the_promised_columns_and_no_failure(rows, complete):
    complete(rows, COLUMNS)


@pytest.mark.parametrize("experiment", [Hot, Cold, Freezing, FinalRate], ids=lambda one: one.__name__)
def test_chains_have_the_temperature_of_their_rows(experiment, has_its_temperature):
    has_its_temperature(collapse, experiment)


def test_rows_follow_the_seed():
    small = Hot.at("tiny")
    first, again, other = (run_condition(small, small.conditions()[0], seed, "cpu") for seed in (0, 0, 1))
    pd.testing.assert_frame_equal(first, again)
    assert not np.allclose(first["m"], other["m"])


def test_cold_tokens_show_their_spread_by_width():
    table = pd.DataFrame(
        {"d": np.repeat([64, 256], 8), "tau": np.tile([2.0, 4.0], 8), "gamma": np.linspace(0.1, 0.4, 16)}
    )
    table = table.assign(spread=8 / table["d"], gamma_theory=0.2, recorded=False, tier="ci")
    assert "0.125, 0.031" in collapse.simplex(table).get_label()


def test_levels_say_in_words_what_they_show():
    levels = pd.DataFrame({"n": 100, "logit_std": [0.5, 3.0, 6.0], "f": [0.02, 0.4, 0.6]})
    assert "At 1: 0.40 for n = 100" in collapse.levels(levels).get_label()  # the critical deviation is 3.03


def test_figures_say_in_words_what_they_show(rows, follows):
    follows(collapse.logistic, rows[Hot], "m", "u")
    follows(collapse.freezing, rows[Freezing], "ode")
    follows(collapse.final_rate, rows[FinalRate], "log_missing")


def test_a_time_that_is_missing_leaves_its_claim_undecided():
    n, logit_std = (each.ravel() for each in np.meshgrid([8, 32], [0.0, 1.0, 2.0]))
    table = pd.DataFrame({"n": n, "logit_std": logit_std, "ode": np.log(n + 1.0) + logit_std, "hot": np.log(n + 1.0)})
    colder, longer = MEASURES["HT-9.c"], MEASURES["HT-9.e"]
    assert (colder(table).value, longer(table).value) == (pytest.approx(1.0), pytest.approx(np.log(33 / 9)))
    table.loc[2, "ode"] = np.nan
    for each in (colder, longer):
        with pytest.raises(ValueError, match=r"1 of . rows have no number"):
            each(table)


def test_the_time_of_a_chain_is_that_of_its_layers():
    """Freezing keeps only means; they are those of a chain whose Gram matrices are all kept."""
    size, n, s = dataclasses.replace(Freezing.at("tiny"), cells=((8, 8.0),)), 8, 8.0
    table = size.run({"n": n, "logit_std": s}, seed=0, device=torch.device("cpu"), dtype=torch.float64)
    G = start(n, 0.0, size.replicates, "cpu", torch.float64)
    layers, g = list(range(round(1.4 * table["ode"].iloc[0] / size.h) + 1)), stream(0, "freezing", n, str(s))
    chain = simulate_gram(G, layers[-1], size.h**0.5, 1, matched_law(size.d, s), 1.0, generator=g, record=layers)
    means = off_diagonal(chain.gram).mean(dim=-1).T
    crossed = (means >= 0.5).int().argmax(dim=1).numpy()
    assert (table["chain"] / size.h - crossed).between(-1, 0).all()
