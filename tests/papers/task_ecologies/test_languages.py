"""Synthetic languages with known distributions, and models that read them."""

from itertools import permutations

import numpy as np
import pandas as pd
import pytest
import torch

from derived.lab import stats
from derived.lab.experiment import run_experiment
from derived.lab.rng import stream
from derived.papers.task_ecologies import languages as claims
from derived.papers.task_ecologies.data.languages import LanguageFamily, excess, language_family
from derived.papers.task_ecologies.data.ngrams import fit_ngram
from derived.papers.task_ecologies.languages import Abroad, AbroadOrderTwo

EXPERIMENTS = (Abroad, AbroadOrderTwo)


def family(**facts) -> LanguageFamily:
    return language_family(generator=stream(0, "family"), **{"letters": 6, **facts})


def test_first_letters_are_the_stationary_law():
    one = family(alien=True)
    assert one.first.shape == (6, 6)
    assert torch.allclose(torch.einsum("na,nab->nb", one.first, one.transitions), one.first, atol=1e-12)
    powers = torch.linalg.matrix_power(one.transitions, 4096)
    assert torch.allclose(powers, one.first.unsqueeze(1).expand_as(powers), atol=1e-9)


def test_pairs_are_stationary_and_follow_one_another():
    """Pairs after 4,096 letters, by the chain on pairs written out in loops, are those at the start."""
    one = family(letters=3, concentration=1.0, alien=True, order=2)
    assert (one.order, one.first.shape, one.transitions.shape) == (2, (6, 3, 3), (6, 3, 3, 3))
    for first, transitions in zip(one.first, one.transitions, strict=True):
        chain = np.zeros((9, 9))
        for a, b, c in np.ndindex(3, 3, 3):
            chain[3 * a + b, 3 * b + c] = transitions[a, b, c]
        assert np.linalg.matrix_power(chain, 4096)[0] == pytest.approx(first.numpy().ravel(), abs=1e-9)
    order = [order for order in permutations(range(3)) if _exchanged(one.transitions, order)]
    assert len(order) == 1  # the alien language: the first one sharpened, its letters exchanged in all three places


def _exchanged(transitions: torch.Tensor, order: tuple[int, ...]) -> bool:
    sharp = transitions[0].square() / transitions[0].square().sum(dim=-1, keepdim=True)
    at = list(order)
    return torch.allclose(transitions[-1], sharp[at][:, at][:, :, at], rtol=0, atol=1e-12)


def test_texts_of_order_two_follow_the_last_two_letters():
    """Counts of triples in standard errors; and the probability of a short text, by its pair and its triples."""
    one = family(letters=4, concentration=0.5, order=2)
    texts = one.texts(torch.zeros(4000, dtype=torch.long), 20, stream(0, "texts"))
    assert texts.shape == (4000, 21)
    a, b, c = texts[:, 1:-2].flatten(), texts[:, 2:-1].flatten(), texts[:, 3:].flatten()
    counts = torch.bincount(16 * a + 4 * b + c, minlength=64).view(4, 4, 4).double()
    total, P = counts.sum(dim=-1, keepdim=True), one.transitions[0]
    assert ((counts - total * P) / (total * P * (1 - P)).clamp(min=1e-12).sqrt()).abs().max() < 4.5
    by_last = counts.sum(dim=0) / counts.sum(dim=(0, 2))[:, None]  # what a source of order one would do in any pair
    assert ((counts - total * by_last) / (total * by_last * (1 - by_last)).sqrt()).abs().max() > 20
    pairs = torch.bincount(4 * texts[:, 1] + texts[:, 2], minlength=16).view(4, 4).double()
    assert ((pairs - 4000 * one.first[0]).abs() < 4.5 * (4000 * one.first[0]).sqrt() + 1e-9).all()
    laws = one.laws(torch.tensor([2]), torch.tensor([[4, 3, 1, 0]]))[0]
    assert (laws[:, 4] == 0).all()
    assert laws[0, 3] * laws[1, 1] == pytest.approx(one.first[2, 3, 1].item(), abs=1e-12)
    assert torch.equal(laws[2:, :4], torch.stack([one.transitions[2, 3, 1], one.transitions[2, 1, 0]]))


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

    table = held.judge(sure, 0, held.family(0, 0), 0)
    for column in ("disagreement", "averaged"):
        found = table.groupby("model")[column].unique()
        assert np.stack(found) == pytest.approx(np.log([[2**0.5], [2**0.5], [2]]), abs=1e-6)


def test_two_tables_disagree_by_their_exact_divergence():
    """Tables counted on the texts of two models, against loops over texts, places and letters."""
    held = AbroadOrderTwo(replicates=1, letters=3, length=5, held_out=9, prefixes=(1,))
    one = held.family(0, 0)
    assert one.order == 2
    languages = torch.tensor([0, 1, 2, 3, 4, 5, 0]).repeat_interleave(9)
    read = one.texts(torch.zeros(6, 2, dtype=torch.long), 5, stream(0, "read"))
    table = held.judge(held.counted(read), 0, one, 0)
    texts = one.texts(languages, 5, stream(0, "held out", "abroad", 0))[:, :-1].view(7, 9, 5)
    readers = [fit_ngram(read[:, k], 3, 4, opening=3) for k in range(2)]
    for language in range(7):
        total = 0.0
        for text in texts[language]:
            for t in range(5):
                before, last = (int(text[t - 1]) if t else 3), int(text[t])
                p, q = (reader.laws[4 * before + last].tolist() for reader in readers)
                total += sum(0.5 * u * np.log(2 * u / (p[v] + q[v])) for law in (p, q) for v, u in enumerate(law)) / 45
        found = table[table["language"] == language]["disagreement"]
        assert found.to_numpy() == pytest.approx([total, total], abs=1e-12)


def test_rows_of_order_two(rows):
    """Each reader once for each family, model and language; families differ; nothing is missing."""
    found = rows[AbroadOrderTwo]
    assert not found.isna().to_numpy().any()
    index = ["reader", "replicate", "model", "language"]
    assert len(found.drop_duplicates(index)) == len(found) == 2 * 3 * 2 * 7
    assert (found[["excess", "disagreement"]] > 0).all().all()
    assert found.groupby(index[:2])["disagreement"].mean().nunique() == 6
    floors = found.groupby(["replicate", "language"])["floor"]
    assert (floors.max() - floors.min()).max() < 1e-12  # networks and tables read the same texts abroad


def test_families_of_order_two_do_not_depend_on_how_many_run_together():
    """All families are there once, whatever the last condition holds."""
    small = {"replicates": 3, "steps": 2, "letters": 3, "length": 9, "held_out": 2, "concentration": 1.0}
    tables = [run_experiment(AbroadOrderTwo(**small, together=n), seed=0, device="cpu") for n in (2, 3)]
    key = ["reader", "replicate", "model", "language"]
    first, second = (table.set_index(key).sort_index() for table in tables)
    assert first.index.equals(second.index)
    assert first["floor"].to_numpy() == pytest.approx(second["floor"].to_numpy(), abs=1e-12)


def test_each_family_has_the_models_that_read_it():
    """Two families write one letter each; their models read this letter and come to expect it."""
    only = [torch.eye(3, dtype=torch.float64)[k].expand(3, 3) for k in (1, 2)]
    families = [LanguageFamily(first, first.unsqueeze(1).expand(3, 3, 3)) for first in only]
    held = AbroadOrderTwo(steps=40, letters=3, length=6)
    says, texts = held.train(families, 0, torch.device("cpu"), torch.float32, "one letter")
    for place, letter in enumerate((1, 2)):
        assert (texts[:, place, :, 1:] == letter).all()
        said = says[place](texts[0, place, :, :-1])
        assert said.shape == (2, 2, 6, 4)
        assert (said.argmax(dim=-1) == letter).all()


class OneFamily(AbroadOrderTwo):
    """The same languages and held-out texts in all replicates."""

    def family(self, seed: int, replicate: int) -> LanguageFamily:
        return super().family(seed, 0)

    def judge(self, say, replicate: int, family: LanguageFamily, seed: int) -> pd.DataFrame:
        return super().judge(say, 0, family, seed).assign(replicate=replicate)


def test_each_condition_has_initial_weights_and_texts_of_its_own():
    held = OneFamily(replicates=2, together=1, steps=2, letters=3, length=9, held_out=2)
    found = run_experiment(held, seed=0, device="cpu").groupby(["reader", "replicate"])["disagreement"].mean()
    assert found.nunique() == 4


@pytest.mark.parametrize(
    ("near", "alien", "verdict"), [(0.02, 0.03, "holds"), (0.0, 0.03, "undecided"), (-0.02, 0.03, "fails")]
)
def test_disagreement_abroad_is_judged_by_its_smaller_step(near, alien, verdict):
    """Tables and the far relative do not decide; fresh texts of home are the control, and do not hold."""
    draw = np.random.default_rng(0)
    level = {0: 0.1, 1: 0.1, 2: 0.1, 3: 0.1 + near, 4: 9.0, 5: 0.1 + near + alien, 6: 0.1}
    cells = [
        {
            "reader": reader,
            "replicate": r,
            "language": i,
            "category": name,
            "disagreement": level[i] + 0.001 * draw.normal(),
        }
        for reader in ("network", "table")
        for r in range(32)
        for i, name in enumerate([*claims.CATEGORIES, "again"])
    ]
    table = pd.DataFrame(cells)
    table.loc[table["reader"] == "table", "disagreement"] = 0.1 + 0.001 * draw.normal(size=7 * 32)
    claim = next(each for each in claims.CLAIMS if each.id == "TE-E1.b")
    found = claim.measure(table)
    assert (claim.judge(found)[0], found.n) == (verdict, 32)
    assert claim.judge(claim.control(table))[0] == claim.judge(claim.comparison[1](table))[0] == "undecided"
    steps = table[table["reader"] == "network"].pivot_table(
        index="replicate", columns="language", values="disagreement"
    )
    assert found.low == pytest.approx(stats.mean(steps[3] - steps[[0, 1, 2]].mean(axis=1), 1 - 0.001 / 4).low)


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
