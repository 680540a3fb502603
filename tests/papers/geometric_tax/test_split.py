"""Two heads and five kinds of training on three systems: jump and spread apart, and what is claimed of them."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
import torch

from derived.papers.geometric_tax import fits, measures, trained
from derived.papers.geometric_tax.losses import DISTANCES, LOSSES, Losses, over_hard
from derived.papers.geometric_tax.trained import Heads, Split

EXPERIMENTS = (Heads,)
FACTS = {"num": 6, "judged": 16, "length": 8, "noise": 0.0, "seed": 0, "role": "fit"}
OPTIONS = {"seed": 0, "role": "fit", "device": torch.device("cpu"), "dtype": torch.float64}
CLAIMS = {claim.id: claim for claim in trained.CLAIMS}


def arm(name, found, size=None):
    return fits.Arm(size or Heads.at("ci"), name, found.values, "attention", False, **OPTIONS)


ARMS = ("untrained", "ce", "coarser", "blurred", "scalar")


@pytest.fixture(scope="module")
def split_rows():
    """Of oscillators, which are made fast."""
    facts = {"seed": 0, "device": torch.device("cpu"), "dtype": torch.float32}
    each = [{"system": "oscillators", "arm": name} for name in ARMS]
    return pd.concat([Split.at("ci").run(one, **facts).assign(**one) for one in each], ignore_index=True)


def test_the_search_chooses_by_validation(rows):
    table = rows[Heads]
    for _, part in table.groupby(["system", "arm"]):
        tried = part[part["stage"] == "search"].groupby("rate")["valid"].mean()
        assert set(part[part["stage"] == "fit"]["rate"]) == {tried.idxmin()}


def test_every_arm_starts_from_the_same_encoder_and_is_split_alike():
    small = dataclasses.replace(Split.at("ci"), steps=1)
    start = {}
    for name in ARMS:
        run = small.run({"system": "oscillators", "arm": name}, **{k: OPTIONS[k] for k in ("seed", "device", "dtype")})
        start[name] = run[run["step"] == 0].set_index("replicate")[["distortion", "J", "V", "T"]]
    for name in ("ce", "coarser", "blurred", "scalar"):
        pd.testing.assert_frame_equal(start[name], start["untrained"])
    assert start["ce"].diff().iloc[1:].abs().min(axis=None) > 1e-4  # and each network from its own


def test_the_split_networks_train_at_the_rates_that_were_chosen_and_share_no_draw_with_others(rows, split_rows):
    table = split_rows
    for (system, name), part in table[table["arm"] != "untrained"].groupby(["system", "arm"]):
        assert {*part["rate"]} == {trained.CHOSEN[system][name]}
    assert (table["V"] <= table["T"]).all()
    ends = ["system", "arm", "replicate", "step"]
    one, other = (each.query("stage == 'fit'").set_index(ends)["valid"] for each in (rows[Heads], split_rows))
    both = pd.concat([one, other], axis=1, join="inner")
    assert len(both)
    assert (both.iloc[:, 0] != both.iloc[:, 1]).all()


def test_a_strike_moves_one_value_and_the_same_for_every_arm():
    found = fits.data("lorenz", networks=2, **FACTS)
    x, struck = fits.strikes(arm("ce", found), found, "lorenz", 5, 3)
    again, _ = fits.strikes(arm("scalar", found), found, "lorenz", 5, 3)
    assert torch.equal(x, again)
    for each in struck:
        assert ((each != x).sum(dim=-1) == 1).all()


# Measures of the claims -----------------------------------------------------------------------------------------------


def invented(**jumps):
    """Rows as ``Split`` has them, with a chosen jump for each arm on all systems; T has another unit in each."""
    made = [
        {"system": system, "arm": name, "replicate": r, "step": step, "stage": "fit", "V": 0.1 * unit, "T": unit}
        | {"J": unit * value * (1 + 0.02 * np.sin(5 * r + step)), "distortion": 0.1, "tier": "ci", "recorded": True}
        for system in trained.SYSTEMS
        for unit, (name, value) in enumerate(jumps.items(), start=1)
        for r in range(8)
        for step in (1, 9)
    ]
    return pd.DataFrame(made)


def test_as_jumpy_as_before_training_is_the_nearest_of_six_ratios():
    found = trained.as_jumpy(invented(untrained=8.0, ce=6.0, scalar=1.0))
    assert found.value == pytest.approx(1.5, rel=0.01)  # 6 / 8 over a half; 6 over 1 over two is farther
    assert found.low > 1.2
    assert trained.as_jumpy(invented(untrained=8.0, ce=6.0, scalar=2.5)).value == pytest.approx(1.2, rel=0.01)
    assert trained.as_jumpy(invented(untrained=8.0, ce=3.0, scalar=0.1)).high < 1
    claim = CLAIMS["GT-7.j"]
    assert claim.judge(claim.control(invented(untrained=8.0, ce=6.0, scalar=1.0)))[0] == "fails"
    one = invented(untrained=8.0, ce=6.0, scalar=1.0)
    low = one["J"].mask((one["system"] == "waveforms") & (one["arm"] == "ce"), 0.1)
    assert trained.as_jumpy(one.assign(J=low)).high < 0.1


def test_the_figure_names_each_jump_with_its_own_kind(tells):
    tells(trained.jumps(invented(untrained=8.0, ce=6.0, coarser=4.0, blurred=2.0, scalar=1.0)), "hard labels 6.0 (")


def test_more_than_half_of_a_difference_of_logarithms():
    takes = trained.more_than_half("blurred")
    assert takes(invented(ce=8.0, blurred=2.0, scalar=1.0)).value == pytest.approx(np.log(4) - np.log(8) / 2, abs=0.01)
    assert takes(invented(ce=8.0, blurred=6.0, scalar=1.0)).high < 0
    waves = invented(ce=8.0, blurred=2.0, scalar=1.0)
    other = waves["J"].mask((waves["system"] == "waveforms") & (waves["arm"] == "blurred"), 100.0)
    assert takes(waves.assign(J=other)).low > 0  # wave forms are not judged


def test_the_largest_jump_of_three_losses_is_set_against_hard_labels():
    rows = invented(
        **{name: 1.0 for name in LOSSES} | {"hard": 8.0, "cumulative": 2.0, "smoothed": 7.0, "blur of 1 bin": 7.0}
    )
    rows = rows[rows["system"] == "lorenz"].rename(columns={"arm": "loss"})
    assert over_hard(DISTANCES)(rows).value == pytest.approx(0.25, rel=0.01)
    assert over_hard(("smoothed",))(rows).low > 0.5
    assert {*DISTANCES} < {*LOSSES}


def test_rows_of_losses_have_a_jump_at_the_end_of_each():
    small = dataclasses.replace(Losses.at("ci"), steps=2)
    table = small.run({"loss": "cumulative"}, **{k: OPTIONS[k] for k in ("seed", "device", "dtype")})
    ends = table[table["stage"] == "fit"]
    assert (ends["J"] > 0).all()
    assert (ends["V"] <= ends["T"]).all()


def test_a_ratio_is_taken_pair_by_pair(rows):
    table = rows[Heads].copy()
    table.loc[table["arm"] == "ce", "distortion"] = 0.3
    table.loc[table["arm"] == "scalar", "distortion"] = 0.1
    found = measures.times(trained.HARD, trained.SCALAR, trained.EACH)(table)
    assert abs(found.value - 3) < 1e-12
    assert abs(found.low - 3) < 1e-9


def test_heads_are_compared_at_a_plateau(rows):
    flat = rows[Heads].assign(valid=1.0)
    falling = flat.assign(valid=-flat["step"] * (flat["system"] == "waveforms").astype(float))
    for name in ("GT-7.a", "GT-7.d"):
        assert np.isfinite(CLAIMS[name].measure(flat).value)
        with pytest.raises(ValueError, match=r"waveforms.* not come to a plateau"):
            CLAIMS[name].measure(falling)


def test_the_table_has_a_row_for_each_kind_of_training():
    table = trained.parts(invented(untrained=8.0, ce=6.0, coarser=3.0, blurred=2.0, scalar=1.0))
    assert [*table.index] == ["untrained", "hard labels", "hard labels, four bins", "blurred labels", "squared error"]
    assert table.loc["hard labels", ("oscillators", "J/T")] == pytest.approx(6, rel=0.02)
    assert table.loc["squared error", ("Lorenz paths", "V/T")] == pytest.approx(0.1)
