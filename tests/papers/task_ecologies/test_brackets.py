"""Bracketed expressions, their twins, tables of letters, and who tells balanced from unbalanced."""

import itertools

import numpy as np
import pandas as pd
import pytest
import torch

from derived.lab.experiment import run_experiment
from derived.lab.rng import stream
from derived.papers.task_ecologies import brackets
from derived.papers.task_ecologies.brackets import RecipePopulation, Rescue, Ruler, both_ways, mixture
from derived.papers.task_ecologies.data import brackets as expressions
from derived.papers.task_ecologies.data.ngrams import fit_ngram

EXPERIMENTS = (Rescue, RecipePopulation, Ruler)


@pytest.fixture(scope="module")
def text() -> str:
    return expressions.expression_text(30_000, stream(0, "expressions"))


@pytest.fixture(scope="module")
def chunks(text) -> list[str]:
    return expressions.balanced_chunks(text)


def test_balance_is_what_deleting_pairs_leaves():
    for letters in itertools.product("()a", repeat=6):
        chunk, rest = "".join(letters), "".join(letters).replace("a", "")
        while "()" in rest:
            rest = rest.replace("()", "")
        assert expressions.is_balanced(chunk) == (rest == "")


def test_the_text_is_made_by_the_grammar(text):
    assert len(text) >= 30_000
    assert expressions.is_balanced(text)
    depth = np.cumsum([(each == "(") - (each == ")") for each in text])
    assert depth.max() == 6
    words = {word for word in text.replace("(", " ").replace(")", " ").split()}
    assert 40 < len(words) <= 80
    assert all(2 <= len(word) <= 6 for word in words)
    assert "((" not in text
    assert "( " not in text
    assert " )" not in text


def test_chunks_are_balanced_and_hold_brackets(chunks):
    assert len(chunks) > 100
    assert all(len(c) == 30 and expressions.is_balanced(c) and "(" in c and ")" in c for c in chunks)


def test_a_shuffled_twin_has_the_same_letters_and_only_brackets_moved(chunks):
    for chunk in chunks[:100]:
        twin = expressions.shuffled_twin(chunk, stream(0, "twin"))
        assert not expressions.is_balanced(twin)
        assert expressions.blanked(twin) == expressions.blanked(chunk)
        assert sorted(twin) == sorted(chunk)
    assert expressions.shuffled_twin("ab cd", stream(0, "twin")) is None  # nothing to shuffle


def test_a_matched_twin_has_only_pairs_that_balanced_text_has(text, chunks):
    """The negative control: no pair of neighbours betrays it, though the depth is negative somewhere."""
    known, found = set(itertools.pairwise(text)), 0
    for chunk in chunks:
        twin = expressions.matched_twin(chunk, stream(0, "twin"))
        if twin is not None:
            found += 1
            assert not expressions.is_balanced(twin)
            assert sorted(twin) == sorted(chunk)
            assert {pair for pair in itertools.pairwise(twin) if set(pair) & set("() ")} <= known | {(")", " ")}
    assert found > 20
    assert expressions.matched_twin("(ab cd)", stream(0, "twin")) is None  # no word outside all brackets
    betrayed = sum(
        not set(itertools.pairwise(expressions.shuffled_twin(c, stream(0, "t")))) <= known for c in chunks[:100]
    )
    assert betrayed > 50  # what the published control lets a table of pairs see


def slow_table(texts, order: int, V: int, opening: int, strength: float) -> dict:
    """Counts by window in dictionaries, shorter windows as prior."""
    rows = [[opening] * (order - 2) + list(map(int, row)) for row in texts]
    skipped = max(order - 2, 0) + 1

    def law(window: tuple) -> np.ndarray:
        shorter = law(window[1:]) if window else np.full(V, 1 / V)
        n = len(window)
        counts = np.zeros(V)
        for row in rows:
            for t in range(skipped, len(row)):
                if tuple(row[t - n : t]) == window:
                    counts[row[t]] += 1
        return (counts + strength * shorter) / (counts.sum() + strength)

    return {window: law(window) for window in itertools.product(range(V), repeat=order - 1)}


def test_a_table_with_a_state_is_a_table_for_each_of_its_values():
    """Counted by hand: after an opened bracket, and before one."""
    texts = expressions.expression_ids(["ab(ab)", "(ab) a"])
    facts = {"opening": expressions.OPENING, "strength": 0.5}
    V, table = expressions.VOCABULARY, fit_ngram(texts, 2, 30, **facts, state=expressions.opened)
    for bit in (0, 1):
        pairs = [
            (int(row[t - 1]), int(row[t]))
            for row in texts
            for t in range(1, len(row))
            if (26 in row[:t].tolist()) == bit
        ]
        singles = [after for _, after in pairs]
        law = np.array([(singles.count(v) + 0.5 / V) / (len(singles) + 0.5) for v in range(V)])
        after_a = [after for before, after in pairs if before == 0]
        expected = [(after_a.count(v) + 0.5 * law[v]) / (len(after_a) + 0.5) for v in range(V)]
        assert table.laws.view(-1, V, V)[bit, 0].numpy() == pytest.approx(expected, abs=1e-12)
    unopened = expressions.expression_ids(["ab) a"])
    plain = fit_ngram(texts, 2, V, **facts)
    assert table.losses(unopened)[0, 2] > plain.losses(unopened)[0, 2] + 1  # a ")" before any "("


def test_a_ruler_reads_the_texts_of_the_networks(rows):
    """At the size of ``Rescue`` its triples are the table of ``Rescue`` where all text has brackets."""
    same = Rescue(replicates=1, corpus=40_000, judged=12, steps=10, alphas=(0.0, 0.5, 1.0), rates=(0.01,))
    table = run_experiment(same, seed=3, device="cpu")
    table = table.query("reader == 'trigram' and alpha == 1").set_index("twin")[["gap", "right"]]
    ruler = run_experiment(Ruler(replicates=1, corpus=40_000, judged=12, steps=10), seed=3, device="cpu")
    found = ruler.query("reader == 'trigram'").set_index("twin")[["gap", "right"]]
    pd.testing.assert_frame_equal(found, table, atol=1e-12)
    assert ruler["gap"].nunique() == 10


def test_pairs_that_are_told_apart():
    """One right, one wrong, one tie but for rounding: right in half of the pairs."""
    balanced, unbalanced = torch.tensor([1.0, 2.0, 3.0]).double(), torch.tensor([2.0, 1.5, 3.0 + 1e-13]).double()
    told = brackets.told_apart(balanced, unbalanced)
    assert (float(told["gap"]), float(told["right"])) == (pytest.approx(0.5 / 3), 0.5)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_tables_are_counts(order):
    texts = torch.randint(3, (4, 8), generator=stream(0, "texts"))
    texts[:, 0] = 3
    table, slow = fit_ngram(texts, order, 4, opening=3, strength=0.5), slow_table(texts, order, 4, 3, 0.5)
    for place, window in enumerate(itertools.product(range(4), repeat=order - 1)):
        assert table.laws[place].numpy() == pytest.approx(slow[window], abs=1e-12), window
    losses = table.losses(texts[:1])
    row = [3] * (order - 2) + texts[0].tolist()
    start = len(row) - 7
    by_hand = [-np.log(slow[tuple(row[t - order + 1 : t])][row[t]]) for t in range(start, len(row))]
    assert losses[0].numpy() == pytest.approx(by_hand, abs=1e-12)


def test_mixtures_blank_what_they_should(chunks):
    code = both_ways(chunks)
    for alpha, share in ((0.0, 0.0), (1.0, 1.0)):
        texts = mixture(code, alpha, 20, stream(0, "mixture"))
        assert ((texts == 26).any(dim=1).double().mean().item()) == share
    many = mixture(code, 0.25, 2000, stream(0, "mixture"))
    assert (many == 26).any(dim=1).double().mean().item() == pytest.approx(0.25, abs=0.04)


def test_tables_tell_the_published_twins_apart_and_not_the_matched_ones(rows):
    found = rows[Rescue].query("alpha == 1").groupby(["reader", "twin"])["gap"].mean()
    assert found["bigram", "shuffled"] > 0.3
    assert abs(found["bigram", "matched"]) < 0.1
    assert abs(found["unigram", "shuffled"]) < 1e-9
    assert set(rows[Rescue]["reader"]) == {"network", "unigram", "bigram", "trigram"}
    blind = rows[Rescue].query("alpha == 0 and reader in ['bigram', 'trigram'] and twin == 'shuffled'")
    assert blind["gap"].abs().max() < 1e-9  # a bracket never read is a bracket like any other


def made(gaps: dict) -> pd.DataFrame:
    """reader, twin, alpha, rate -> (gap, valid), four replicates; right is a tenth of the gap."""
    return pd.DataFrame(
        [
            {"reader": a, "twin": t, "alpha": x, "rate": rate, "replicate": r, "gap": g + 0.1 * r, "valid": v}
            | {"right": 0.1 * g + 0.01 * r, "before": v + 0.005, "late": v}
            for (a, t, x, rate), (g, v) in gaps.items()
            for r in range(4)
        ]
    )


def test_validation_chooses_the_rate_and_replicates_are_paired():
    rows = made(
        {
            ("network", "shuffled", 0.0, 0.1): (0.0, 1.0),
            ("network", "shuffled", 0.25, 0.1): (0.2, 1.0),
            ("network", "shuffled", 0.25, 0.2): (9.0, 2.0),
            ("network", "shuffled", 1.0, 0.1): (9.0, 2.0),
            ("network", "shuffled", 1.0, 0.2): (1.0, 1.0),
            ("trigram", "shuffled", 0.25, 0.1): (0.7, 1.0),
            ("trigram", "shuffled", 1.0, 0.1): (1.0, 1.0),
            ("network", "matched", 1.0, 0.1): (0.5, 1.0),
            ("trigram", "matched", 1.0, 0.1): (0.2, 1.0),
        }
    )
    matched = rows["twin"] == "matched"
    rows.loc[matched, "right"] += 1  # far from a half, so that the difference decides: paired, without spread
    assert brackets.more_often_than_the_table("network")(rows).low == pytest.approx(0.03)
    rows.loc[matched, "right"] -= 0.6  # still .03 above the table, but right in less than half of the pairs
    assert brackets.more_often_than_the_table("network")(rows).value == pytest.approx(-0.035)


def test_networks_that_still_learn_are_not_judged():
    rows = made(
        {
            ("network", "shuffled", 1.0, 0.1): (1.0, 1.0),
            ("network", "shuffled", 1.0, 0.2): (1.0, 2.0),
            ("trigram", "shuffled", 1.0, 0.1): (1.0, 1.0),
        }
    )
    assert brackets.judged(rows, "network", "shuffled", 1.0).mean() == pytest.approx(1.15)
    rows.loc[rows["rate"] == 0.2, "before"] += 1  # a rate that is not chosen
    rows.loc[rows["reader"] == "trigram", ["before", "late"]] = np.nan  # tables are counted
    assert brackets.judged(rows, "network", "shuffled", 1.0).mean() == pytest.approx(1.15)
    rows.loc[(rows["reader"] == "network") & (rows["rate"] == 0.1), "before"] += 0.006
    with pytest.raises(ValueError, match=r"not at a plateau: .* took 0\.011"):
        brackets.judged(rows, "network", "shuffled", 1.0)
    rows["before"] = np.nan
    with pytest.raises(ValueError, match="not at a plateau"):
        brackets.judged(rows, "network", "shuffled", 1.0)


# Recipes --------------------------------------------------------------------------------------------------------------


def test_founders_texts_and_first_weights_are_shared_by_the_arms(rows):
    """In the first generation nothing but who becomes a parent differs."""
    first = rows[RecipePopulation].query("generation == 0").pivot(index=["reader", "replicate"], columns="arm")
    for column in ("alpha", "gap"):
        assert (first[column]["selected"] == first[column]["shuffled"]).all()
    assert (first["alpha"]["selected"].unstack("reader").nunique(axis=1) == 1).all()
    assert not (first["drawn"]["selected"] == first["drawn"]["shuffled"]).all()


def fitness_is_alpha(monkeypatch, sign: float) -> pd.DataFrame:
    """Populations whose gap is a steep function of the share of brackets that was read."""

    def gap(self, texts, *_):
        return np.array(
            [sign * 40 * (each == expressions.SYMBOLS.index("(")).any(dim=1).double().mean().item() for each in texts]
        )

    monkeypatch.setattr(RecipePopulation, "tables", gap)
    size = {
        "replicates": 8,
        "members": 8,
        "generations": 6,
        "steps": 200,
        "corpus": 60_000,
        "judged": 12,
        "sigma": 0.05,
    }
    population = RecipePopulation(**size)
    found = []
    for arm in ("selected", "shuffled"):
        condition = {"reader": "trigram", "arm": arm}
        table = population.run(condition, seed=0, device=torch.device("cpu"), dtype=torch.float64)
        found.append(table.assign(**condition))
    return pd.concat(found, ignore_index=True)


def test_selection_moves_the_share_that_pays_and_the_control_drifts(monkeypatch):
    """Fitness that all but chooses the largest share raises the mean to it, its inverse lowers it; at random the same
    fitness moves it neither way more than drift does."""
    up, down = (fitness_is_alpha(monkeypatch, sign) for sign in (1.0, -1.0))
    for table, sign in ((up, 1), (down, -1)):
        assert sign * brackets.more_brackets("trigram")(table).value > 0.2
        moved = table.query("arm == 'selected'").eval("drawn - alpha").groupby(table["generation"]).mean()
        assert sign * moved.iloc[0] > 0.2
    control = pd.concat([each.query("arm == 'shuffled'") for each in (up, down)]).eval("drawn - alpha")
    assert abs(control.mean()) < 4 * control.sem()


def test_the_last_generation_is_judged_replicate_by_replicate():
    table = pd.DataFrame({"reader": "network", "replicate": [0, 1] * 4, "generation": [0, 0, 0, 0, 1, 1, 1, 1]})
    table = table.assign(
        arm=["selected", "selected", "shuffled", "shuffled"] * 2, alpha=[0.0] * 4 + [0.7, 0.9, 0.5, 0.6]
    )
    assert brackets.more_brackets("network")(table).value == pytest.approx(0.25)


def test_two_looks_have_a_wider_interval(rows):
    """The value is the same, and the level that of half the chance."""
    one, two = (brackets.more_brackets("network", looks)(rows[RecipePopulation]) for looks in (1, 2))
    assert one.value == two.value
    assert two.low < one.low
    claim = next(each for each in brackets.CLAIMS if each.id == "TE-E4.e")
    assert claim.measure(rows[RecipePopulation]) == two


def test_pairs_are_shares_by_reader_at_the_best_rate(rows):
    found = brackets.pairs_found(rows[Rescue], rows[Ruler], "matched")
    assert [*found] == [*brackets.READERS.values()]
    own = rows[Rescue].query("reader == 'trigram' and twin == 'matched' and alpha == 1").set_index("replicate")["right"]
    assert found["triples"].to_list() == own.to_list()
