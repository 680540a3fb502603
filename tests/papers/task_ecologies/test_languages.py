"""Synthetic languages with known distributions, and models that read them."""

import numpy as np
import pandas as pd
import pytest
import torch

from derived.lab import stats
from derived.lab.rng import stream
from derived.papers.task_ecologies import languages as claims
from derived.papers.task_ecologies.data.languages import LanguageFamily, excess, language_family
from derived.papers.task_ecologies.languages import Abroad

EXPERIMENTS = (Abroad,)


def family(**facts) -> LanguageFamily:
    return language_family(generator=stream(0, "family"), **{"letters": 6, **facts})


def test_first_letters_are_the_stationary_law():
    one = family(alien=True)
    assert one.first.shape == (6, 6)
    assert torch.allclose(torch.einsum("na,nab->nb", one.first, one.transitions), one.first, atol=1e-12)
    powers = torch.linalg.matrix_power(one.transitions, 4096)
    assert torch.allclose(powers, one.first.unsqueeze(1).expand_as(powers), atol=1e-9)


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


def test_a_missing_number_decides_nothing(rows):
    """One model's number is missing, and the others of its replicate are no mean of all."""
    for column, measure in (
        ("excess", claims.least_rise("excess")),
        ("disagreement", claims.least_rise("disagreement")),
    ):
        table = rows[Abroad]
        one = table.index == table.query("language == 0").index[0]
        with pytest.raises(ValueError, match="rows have no number"):
            measure(table.assign(**{column: table[column].mask(one)}))
