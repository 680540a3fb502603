"""What the figures of the derivation say: axes, direct labels, and numbers in the alt text that are the rows'."""

import numpy as np
import pytest

from derived.papers.geometric_tax import codebooks, information, labels, procrustes, sequences
from derived.papers.geometric_tax.codebooks import Clouds, Regressogram
from derived.papers.geometric_tax.information import Mine
from derived.papers.geometric_tax.labels import FisherRao
from derived.papers.geometric_tax.procrustes import Pooled
from derived.papers.geometric_tax.sequences import Dilution, Strands, Walks

EXPERIMENTS = (Pooled, FisherRao, Clouds, Regressogram, Mine, Strands, Dilution, Walks)


def test_pooled_names_each_code_and_its_last_value(rows, tells):
    table = rows[Pooled]
    figure = procrustes.pooled(table)
    last = table[(table["code"] == "random") & (table["r"] == table["r"].max())]["D"].mean()
    tells(figure, "slope one half", f"no order {last:.3f}")
    assert {text.get_text() for text in figure.axes[0].texts} >= {"no order", "neighbours alike", "a line"}


def test_the_staircase_says_how_long_it_is(rows, tells):
    table = rows[FisherRao]
    length = table[(table["K"] == 40) & (table["sigma"] == 0.2)]["length"].item()
    tells(labels.staircase(table), f"{length:.4g} at sigma 0.2")


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
    best = table[table["N"] == 2000]["K_best"].mean()
    tells(codebooks.risk(table), f"{best:.0f} for N = 2000")


@pytest.mark.parametrize("recorded", [True, False])
def test_recorded_points_are_filled_and_live_ones_open(rows, recorded):
    figure = procrustes.pooled(rows[Pooled].assign(recorded=recorded, tier="cpu" if recorded else "ci"))
    faces = {line.get_markerfacecolor() for line in figure.axes[0].lines if line.get_marker() == "o"}
    assert ("none" in faces) != recorded


def test_critics_tell_truth_and_both_values(rows, tells):
    table = rows[Mine].assign(truth=0.25, in_sample=2.0, held_out=-0.5)
    tells(information.critics(table), "independent curve: truth 0.25, in sample 2.00, held out -0.50")


def test_readouts_give_all_counts_the_similarity_one(rows, tells):
    tells(sequences.readouts(rows[Strands]), "all counts 1.00, 1.00, 1.00, 1.00")


def test_dilution_says_both_factors(rows, tells):
    steps = rows[Dilution].assign(cosine=rows[Dilution]["L"] ** -2.0, euclidean=1 / rows[Dilution]["L"])
    walks = rows[Walks].copy()
    size = np.where(walks["replicate"] == 0, 100.0, 1.0)  # draws differ in their steps, and not in their factors
    walks["cosine"] = size * walks["L"] ** -2.0
    factor = (walks["L"].max() / walks["L"][walks["setting"] == "published"].min()) ** 2
    words = (
        "falls 16 times",  # from 64 letters to 1000
        "the cosine step 244 times",
        "by a factor of 1 with one window",
        f"and of {factor:,.0f} with",
    )
    figure = sequences.dilution(steps, walks)
    tells(figure, *words)
    titles = [text.get_text() for text in figure.axes[1].texts]
    assert f"unequal windows spread the steps\n{factor:.0f} times, one window 1.0 times" in titles
