"""What the figures of the derivation say: axes, direct labels, and numbers in the alt text that are the rows'."""

import pytest

from derived.papers.geometric_tax.experiments.codebooks import Clouds, Regressogram
from derived.papers.geometric_tax.experiments.labels import FisherRao
from derived.papers.geometric_tax.experiments.procrustes import Pooled
from derived.papers.geometric_tax.figures import codebooks, labels, procrustes

EXPERIMENTS = (Pooled, FisherRao, Clouds, Regressogram)
SMALL = {
    Pooled: {"n": 60, "L": 32, "replicates": 4},
    FisherRao: {"codes": (2, 8, 32), "sigmas": (0.01, 0.1), "chain_to": 0},
    Clouds: {"n": 512, "replicates": 4, "codes": (4, 8, 16)},
    Regressogram: {"samples": (100, 400), "size": 10, "groups": 4},
}


def test_pooled_names_each_code_and_its_last_value(rows, tells):
    table = rows[Pooled]
    figure = procrustes.pooled(table)
    last = table[(table["code"] == "random") & (table["r"] == table["r"].max())]["D"].mean()
    tells(figure, "slope one half", f"no order {last:.3f}")
    assert {text.get_text() for text in figure.axes[0].texts} >= {"no order", "neighbours alike", "a line"}


def test_the_staircase_says_how_long_it_is(rows, tells):
    table = rows[FisherRao]
    length = table[(table["K"] == 32) & (table["sigma"] == 0.1)]["length"].item()
    tells(labels.staircase(table), f"{length:.4g} at sigma 0.1")


def test_rates_compare_the_two_fits(rows, tells):
    figure = codebooks.rates(rows[Clouds])
    tells(figure, "slopes line", "off by")
    fits = {line.get_color(): line.get_ydata() for line in figure.axes[1].lines[1:]}
    assert len(fits) == 2


def test_a_power_law_is_fitted_exactly_and_the_logarithm_is_not(rows):
    table = rows[Clouds].copy()
    table["distortion"] = 3.0 * table["K"] ** -0.9
    label = codebooks.rates(table).get_label()
    assert "the power of K by 0%" in label
    assert "ln K is off by 0%" not in label


def test_risk_marks_the_best_number_of_bins(rows, tells):
    table = rows[Regressogram]
    best = table[table["N"] == 400]["K_best"].mean()
    tells(codebooks.risk(table), f"{best:.0f} for N = 400")


@pytest.mark.parametrize("recorded", [True, False])
def test_recorded_points_are_filled_and_live_ones_open(rows, recorded):
    figure = procrustes.pooled(rows[Pooled].assign(recorded=recorded, tier="cpu" if recorded else "ci"))
    faces = {line.get_markerfacecolor() for line in figure.axes[0].lines if line.get_marker() == "o"}
    assert ("none" in faces) != recorded
