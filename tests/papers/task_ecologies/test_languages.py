"""Synthetic languages with known laws, and models that read them."""

import dataclasses
import itertools

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import torch
from scipy.spatial.distance import jensenshannon

from derived.lab import stats
from derived.lab.rng import stream
from derived.papers.task_ecologies import languages as claims
from derived.papers.task_ecologies.data.languages import LanguageFamily, excess, language_family
from derived.papers.task_ecologies.data.ngrams import fit_ngram
from derived.papers.task_ecologies.data.tables import pair_counts, tables_apart
from derived.papers.task_ecologies.languages import Abroad, Complexity

EXPERIMENTS = (Abroad, Complexity)


def family(**facts) -> LanguageFamily:
    return language_family(generator=stream(0, "family"), **{"letters": 6, **facts})


def test_first_letters_are_the_stationary_law():
    one = family(alien=True)
    assert one.first.shape == (6, 6)
    assert torch.allclose(torch.einsum("na,nab->nb", one.first, one.transitions), one.first, atol=1e-12)
    powers = torch.linalg.matrix_power(one.transitions, 4096)
    assert torch.allclose(powers, one.first.unsqueeze(1).expand_as(powers), atol=1e-9)


def test_a_lighter_weight_is_a_nearer_relative():
    one = language_family((0.0, 0.1, 0.5, 1.0), generator=stream(3, "family"), letters=12)
    apart = (one.transitions - one.transitions[0]).abs().sum(dim=(1, 2))
    assert apart[0] == 0
    assert apart[0] < apart[1] < apart[2] < apart[3]
    assert family(alien=True).entropy_rates()[-1] < family().entropy_rates()[0]


def test_texts_follow_their_laws():
    """Counts of 40,000 transitions against the matrix in standard errors, and against a wrong matrix."""
    one = family(weights=(0.5, 0.9))
    texts = one.texts(torch.tensor([0, 1]).repeat(1000), 20, stream(0, "texts"))
    assert texts.shape == (2000, 21)
    assert (texts[:, 0] == 6).all()
    before, after = texts[::2, 1:-1].flatten(), texts[::2, 2:].flatten()
    counts = torch.bincount(6 * before + after, minlength=36).view(6, 6).double()
    total = counts.sum(dim=1, keepdim=True)
    P = one.transitions[0]
    z = (counts - total * P) / (total * P * (1 - P)).clamp(min=1e-12).sqrt()
    assert z.abs().max() < 4.5
    wrong = one.transitions[1]
    assert ((counts - total * wrong) / (total * wrong * (1 - wrong)).clamp(min=1e-12).sqrt()).abs().max() > 20
    first = torch.bincount(texts[::2, 1], minlength=6).double()
    assert ((first - 1000 * one.first[0]).abs() < 4.5 * (1000 * one.first[0]).sqrt()).all()


def test_laws_are_those_of_the_next_letter_and_the_opening_never_comes_again():
    one, texts = family(), torch.tensor([[6, 2, 0], [6, 1, 1]])
    laws = one.laws(torch.tensor([1, 3]), texts)
    assert torch.equal(laws[0, 0, :6], one.first[1])
    assert torch.equal(laws[0, 1, :6], one.transitions[1, 2])
    assert torch.equal(laws[1, 2, :6], one.transitions[3, 1])
    assert (laws[..., 6] == 0).all()


def test_the_mean_surprise_of_the_true_laws_is_the_entropy_rate():
    one = family()
    languages = torch.arange(5).repeat_interleave(400)
    texts = one.texts(languages, 31, stream(1, "texts"))
    laws = one.laws(languages, texts[:, :-1])
    surprise = -laws.gather(-1, texts[:, 1:, None]).squeeze(-1).log()[:, 1:].mean(dim=1).view(5, 400)
    error = surprise.std(dim=1) / 20
    assert ((surprise.mean(dim=1) - one.entropy_rates()).abs() < 4 * error).all()


def test_excess_is_the_divergence_from_the_true_laws():
    one, texts = family(), torch.tensor([[6, 2, 0, 5]])
    laws = one.laws(torch.tensor([2]), texts)
    assert excess(laws.clamp(min=1e-300).log(), laws).item() == pytest.approx(0, abs=1e-12)
    uniform = excess(torch.zeros(1, 4, 7, dtype=torch.float64), laws).item()
    entropies = -torch.xlogy(laws, laws).sum(dim=-1).mean().item()
    assert uniform == pytest.approx(np.log(7) - entropies)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: LanguageFamily(torch.ones(1, 2) / 2, torch.ones(1, 2, 2)), "transitions: a law sums to 2"),
        (lambda: LanguageFamily(torch.tensor([[1.5, -0.5]]), torch.ones(1, 2, 2) / 2), "first: a law sums to 1"),
        (lambda: LanguageFamily(torch.ones(1, 2) / 2, torch.ones(2, 2, 2) / 2), r"give \(n, A\) and \(n, A, A\)"),
        (lambda: family(weights=(0.5, 1.5)), r"weights\[1\] = 1.5"),
        (lambda: family(letters=1), "letters = 1"),
        (lambda: family().texts(torch.zeros(1, dtype=torch.long), 0, stream(0, "t")), "length = 0"),
    ],
)
def test_wrong_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_pairs_are_counted_as_if_the_texts_were_written():
    """Every pair is counted; means and variances of 400 counts against those of texts, in standard errors."""
    one, texts = family(letters=4), torch.tensor([3.0, 0.0, 2.0, 0.0, 0.0])
    found = pair_counts(one, texts.expand(400, -1), 6, stream(0, "pairs"))
    assert found.shape == (400, 5, 4)
    assert (found.sum(dim=(1, 2)) == 5 * 6).all()
    assert (found[:, 4].sum(dim=-1) == 5).all()  # texts are opened once
    languages = torch.tensor([0, 0, 0, 2, 2]).repeat(400)
    written = one.texts(languages, 6, stream(0, "written"))
    pairs = torch.nn.functional.one_hot(4 * written[:, :-1] + written[:, 1:], 20).sum(dim=1).view(400, 5, 20)
    pairs = pairs.sum(dim=1).view(400, 5, 4).double()
    error = ((found.var(dim=0) + pairs.var(dim=0)) / 400).sqrt().clamp(min=1e-9)
    assert ((found.mean(dim=0) - pairs.mean(dim=0)) / error).abs().max() < 4.5
    wrong = pair_counts(one, texts.roll(1).expand(400, -1), 6, stream(0, "pairs"))
    assert ((wrong.mean(dim=0) - pairs.mean(dim=0)) / error).abs().max() > 10
    assert (found.var(dim=0) / pairs.var(dim=0).clamp(min=1e-9)).log()[pairs.var(dim=0) > 0.2].abs().max() < 0.5


def test_tables_differ_as_those_that_read_written_texts_and_less_the_more_they_read():
    one, sizes = family(letters=4, alien=True), {"tables": 2, "read": 3, "length": 8}
    some = [tables_apart(one, stream(r, "tables"), texts=200, **sizes) for r in range(30)]
    many = [tables_apart(one, stream(r, "tables"), texts=20_000, **sizes) for r in range(30)]
    few, less = torch.stack(some).mean(dim=0), torch.stack(many).mean(dim=0)
    assert few.shape == (6,)
    assert (less < few / 20).all()
    written = []
    for r in range(30):
        draw = stream(r, "written")
        languages = torch.randint(3, (2, 200), generator=draw)
        laws = torch.stack([fit_ngram(each, 2, 5, opening=4).laws for each in one.texts(languages, 8, draw)])
        middle = laws.mean(dim=0)
        apart = (torch.xlogy(laws, laws) - torch.xlogy(laws, middle)).sum(dim=-1).mean(dim=0)
        places = one.texts(torch.arange(6).repeat_interleave(400), 8, draw)[:, :-1]
        written.append(apart[places].mean(dim=-1).view(6, 400).mean(dim=-1))
    assert (torch.stack(written).mean(dim=0) / few - 1).abs().max() < 0.25


def test_how_far_tables_are_apart_is_counted_by_hand():
    """Three tables of one draw, pair by pair and place by place; one letter is followed by one alone."""
    law = torch.tensor([[[0.7, 0.3, 0.0], [1.0, 0.0, 0.0], [0.2, 0.3, 0.5]]] * 2, dtype=torch.float64)
    first = torch.tensor([[10 / 13, 3 / 13, 0.0]] * 2, dtype=torch.float64)  # as it is in the long run
    one, length = LanguageFamily(first, law), 5
    found = tables_apart(one, stream(0, "by hand"), tables=3, read=2, texts=20, length=length)
    draw = stream(0, "by hand")
    number = torch.nn.functional.one_hot(torch.randint(2, (3, 20), generator=draw), 2).sum(dim=1).double()
    counts = pair_counts(one, number, length, draw)
    assert counts[:, 1, 0].min() > 0
    assert counts[:, 1, 1:].max() == 0
    shares = [(N + N.sum(dim=0) / N.sum()) / (N.sum(dim=1, keepdim=True) + 1) for N in counts]
    apart = [
        np.mean([float(jensenshannon(a[place], b[place]) ** 2) for a, b in itertools.combinations(shares, 2)])
        for place in range(4)
    ]
    by_hand = (apart[3] + (length - 1) * (first[0].numpy() @ apart[:3])) / length
    assert found.tolist() == pytest.approx([by_hand] * 2)


def test_rows_of_models_abroad(rows):
    found = rows[Abroad]
    assert len(found) == 3 * 2 * 7
    assert (found["loss"] - found["floor"] - found["excess"]).abs().max() < 1e-9
    assert (found["excess"] > 0).all()
    assert (found["disagreement"] > 0).all()
    for column in ("disagreement", "averaged"):
        pair = found.groupby(["replicate", "language"])[column]
        assert (pair.max() - pair.min()).max() < 1e-9  # of two models, both disagree with the other by the same
        assert (found[column] > 0).all()
    assert not np.allclose(found["averaged"], found["disagreement"], rtol=0.02)


def test_the_language_that_is_read_again_has_the_same_law():
    one = Abroad.at("ci").family(0, 1)
    assert torch.equal(one.transitions[0], one.transitions[6])
    assert not torch.equal(one.transitions[0], one.transitions[3])


def test_the_cells_of_five_languages_are_a_mean_over_families():
    table = pd.DataFrame({"languages": [5, 5, 5, 2], "replicate": [0, 1, 2, 0], "k": [1, 1, 4, 2]})
    claim = next(each for each in claims.CLAIMS if each.id == "TE-E2")
    assert claim.measure(table) == stats.mean([1, 1, 4])


def test_each_family_is_judged_by_its_own_models_on_its_own_texts(monkeypatch):
    """Where the models of the second family answer nothing, its rows alone change."""
    held = Complexity.at("tiny")
    whole = held.run({}, seed=0, device="cpu", dtype=torch.float32)
    train = Complexity.train

    def silenced(*arguments):
        model = train(*arguments)
        with torch.no_grad():
            model.weights["output"][len(held.counts) :] = 0.0
        return model

    monkeypatch.setattr(Complexity, "train", silenced)
    other = held.run({}, seed=0, device="cpu", dtype=torch.float32)
    first = whole["replicate"] == 0
    pd.testing.assert_frame_equal(whole[first], other[first])
    assert other["loss"][~first].to_numpy() == pytest.approx(np.log(held.letters + 1))


def test_a_perfect_model_has_the_cells_of_the_laws():
    held = dataclasses.replace(Complexity.at("ci"), held_out=400)
    family = held.family(0, 0)
    languages, texts = held.held_out_texts(family, 0, "cells", 0)
    laws = family.laws(languages, texts)
    logits = laws.clamp(min=1e-300).log().expand(len(held.counts), *laws.shape)
    table = held.judge(logits, languages, texts, family, 0, 0)
    last = table.iloc[-1]
    assert held.cells_of_laws(0, 0, last["threshold"]) == last["k"] > 1


def test_cells_of_many_languages(rows):
    found = rows[Complexity]
    assert (found[found["languages"] == 1]["k"] == 1).all()
    assert (found["k"] <= found["languages"]).all()
    assert (found["separated"] <= found["pairs"]).all()
    assert (found["threshold"] > 0).all()
    assert (found["loss"] > found["floor"]).all()


def test_every_two_languages_are_a_pair_once(rows):
    pairs = rows[Complexity].groupby("languages")["pairs"].unique().map(list).to_dict()
    assert pairs == {count: [len([*itertools.combinations(range(count), 2)])] for count in Complexity.counts}


def test_a_model_is_compared_with_each_other_one():
    """Two models are sure of one letter and the third of another: log 2 away from each of the two."""
    held = Abroad(models=3, replicates=1, letters=5, length=12, held_out=4)

    def sure(texts):
        letters = torch.tensor([0, 0, 1]).view(3, 1, 1).expand(3, *texts.shape)
        return 50.0 * torch.nn.functional.one_hot(letters, 6)

    table = held.judge(sure, 0, held.family(0, 0), 0, "cpu")
    for column in ("disagreement", "averaged"):
        found = table.groupby("model")[column].unique()
        assert np.stack(found) == pytest.approx(np.log([[2**0.5], [2**0.5], [2]]), abs=1e-6)


def abroad(excess: dict) -> pd.DataFrame:
    cells = [
        {"replicate": r, "language": i, "category": name, "excess": by + 0.1 * r + 0.02 * r * (name == "alien")}
        for r in range(4)
        for i, (name, by) in enumerate(excess.items())
    ]
    return pd.DataFrame(cells)


def test_the_smaller_rise_decides_replicate_by_replicate():
    one = claims.least_rise("excess")(abroad({"trained": 0.2, "relative": 0.3, "alien": 0.9, "again": 0.2}))
    assert one.value == pytest.approx(0.1)  # trained to relative, the same in all replicates
    other = claims.least_rise("excess")(abroad({"trained": 0.2, "relative": 0.9, "alien": 0.9, "again": 0.2}))
    by_hand = stats.mean([0.0, 0.02, 0.04, 0.06], 1 - 0.001 / 2)
    assert (other.value, other.low) == (pytest.approx(by_hand.value), pytest.approx(by_hand.low))
    again = claims.beyond_the_first("again", "excess")(
        abroad({"trained": 0.2, "relative": 0.3, "alien": 0.9, "again": 0.25})
    )
    assert again.value == pytest.approx(0.05)


def test_figures_say_in_words_what_they_show(rows, tells):
    tells(claims.off_ecology(rows[Abroad]), "alien excess", "new texts disagreement")


def test_a_missing_number_decides_nothing(rows):
    """One model's number is missing, and the others of its replicate are no mean of all."""
    for column, measure in (
        ("excess", claims.least_rise("excess")),
        ("disagreement", claims.least_rise("disagreement")),
        ("excess", claims.beyond_the_first("again", "excess")),
    ):
        table = rows[Abroad]
        one = table.index == table.query("language == 0").index[0]
        with pytest.raises(ValueError, match="rows have no number"):
            measure(table.assign(**{column: table[column].mask(one)}))


def test_the_alien_language_is_told_in_units_of_home():
    rows = abroad({"trained": 0.2, "relative": 0.4, "alien": 1.6, "again": 0.2})
    rows["excess"] = rows["category"].map({"trained": 0.2, "relative": 0.4, "alien": 1.6, "again": 0.2})
    rows["excess"] *= 1 + rows["replicate"]
    rows = rows.assign(recorded=False, tier="ci")
    rows = pd.concat([rows, rows[rows["category"] == "relative"].assign(language=claims.FAR)])
    figure = claims.off_ecology(rows.assign(disagreement=0.3))
    ax = figure.axes[0]
    assert ax.texts[-1].get_text() == "Alien: 8.0 times the loss above the floor,\n1.0 times the disagreement"
    (star,) = (line for line in ax.lines if line.get_marker() == "*")
    assert list(star.get_ydata()) == [3.6]
    plt.close(figure)
