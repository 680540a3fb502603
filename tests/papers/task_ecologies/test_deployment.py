"""Away from the training ecology: mixtures and their thresholds, the pair bound, what training leaves open."""

import numpy as np
import pytest

from derived.lab.rng import stream
from derived.papers import task_ecologies
from derived.papers.task_ecologies import deployment
from derived.papers.task_ecologies.data.ecologies import random_ecology, simplex
from derived.papers.task_ecologies.deployment import Injection, OffEcology, saving
from derived.papers.task_ecologies.model.codes import split_cost
from derived.papers.task_ecologies.model.deployment import pair_bound
from derived.papers.task_ecologies.model.partitions import set_partitions

EXPERIMENTS = (Injection, OffEcology)


def two(seed: int) -> tuple[task_ecologies.FiniteEcology, task_ecologies.FiniteEcology]:
    """A base that hardly tells the two first of three worlds apart, and a new ecology that does."""
    generator = stream(seed, "test deployment")
    base = random_ecology(3, 2, 4, generator)
    laws = base.laws.copy()
    laws[1] = 0.97 * laws[0] + 0.03 * laws[1]
    return task_ecologies.FiniteEcology(base.prior, base.contexts, laws), task_ecologies.FiniteEcology(
        base.prior, simplex((3,), generator), simplex((3, 3, 4), generator)
    )


def test_mixing_is_linear_and_merges_nothing_below_one():
    """`te-mixture`: sigma^2, gain and loss of every code are linear in alpha; classes only split, but for alpha = 1."""
    base, new = two(0)
    for alpha in (0.0, 0.25, 1.0):
        mixture = task_ecologies.mix(base, new, alpha)
        for value in (
            lambda e: e.hellinger(),
            lambda e: task_ecologies.split_gain(e, [0], [1]),
            lambda e: e.bayes_loss([0, 0, 1]),
            lambda e: e.js_excess([0, 0, 0]),
        ):
            assert np.abs(value(mixture) - (1 - alpha) * value(base) - alpha * value(new)).max() <= 1e-14
    blind = task_ecologies.FiniteEcology(base.prior, [1.0], np.full((3, 1, 4), 0.25))
    assert np.array_equal(task_ecologies.mix(base, blind, 0.999).quotient(), [0, 1, 2])
    assert np.array_equal(task_ecologies.mix(base, blind, 1.0).quotient(), [0, 0, 0])
    assert task_ecologies.is_refinement(task_ecologies.mix(blind, base, 1e-6).quotient(), blind.quotient())


@pytest.mark.parametrize("seed", range(5))
def test_thresholds_are_where_signs_change(seed):
    """`te-injection`: sigma^2 passes its level at alpha*, the split begins to pay at alpha_JS."""
    base, new = two(seed)
    low, high = (each.hellinger()[0, 1] for each in (base, new))
    epsilon = 0.6 * low + 0.4 * high
    share = task_ecologies.injection_threshold(base, new, (0, 1), epsilon)
    assert abs(share - 0.4) <= 1e-12
    assert (
        task_ecologies.mix(base, new, share - 1e-6).hellinger()[0, 1]
        < epsilon
        < task_ecologies.mix(base, new, share + 1e-6).hellinger()[0, 1]
    )
    first, last = (task_ecologies.split_gain(each, [0], [1]) for each in (base, new))
    beta = (0.3 * first + 0.7 * last) / split_cost(base, [0], [1])
    share = task_ecologies.split_injection_threshold(base, new, [0], [1], beta)
    for shift, pays in ((-1e-6, False), (1e-6, True)):
        mixture = task_ecologies.mix(base, new, share + shift)
        assert (mixture.objective([0, 1, 2], beta) < mixture.objective([0, 0, 1], beta)) == pays


def test_one_level_does_not_serve_two_pairs(rows):
    table = rows[Injection].drop_duplicates("replicate")
    assert (table["wrong"] > 1e-5).any()
    assert (table["wrong"] >= 0).all()
    base, new = Injection().ecologies(0, 0, "pair")
    assert abs(saving(base, new, table["alpha_split"].iloc[0], table["beta"].iloc[0])) <= 1e-14


@pytest.mark.parametrize("seed", range(5))
def test_a_merged_pair_pays_at_least_its_bound(seed):
    """`te-off`: for every code and every pair that it merges; the cell of a pair pays exactly that."""
    e = random_ecology(5, 2, 4, stream(seed, "off"), sparse=0.2)
    for labels in set_partitions(5):
        excess = e.js_excess(labels)
        for u in range(5):
            for w in range(u):
                if labels[u] == labels[w]:
                    assert pair_bound(e, u, w) <= excess + 1e-15
                    if np.bincount(labels).max() == 2 and labels.max() == 3:
                        assert abs(pair_bound(e, u, w) - excess) <= 1e-15


def test_a_perfect_code_fails_elsewhere(rows):
    table = rows[OffEcology]
    assert table["training"].abs().max() <= 1e-15
    assert (table["pair"] > 0).all()
    assert (table["cell"] <= table["excess"] + 1e-15).all()
    assert np.abs(table.loc[table["size"] == 2, "own"] - 1).max() <= 1e-9


def test_decoders_agree_in_training_and_nowhere_else():
    """`te-twins`, `te-only`: decoders that differ where training never goes; what a finer free code costs."""
    e = random_ecology(5, 2, 4, stream(0, "twins"), classes=(0, 0, 1, 2, 2))
    first, second = (task_ecologies.FiniteEcology(e.prior, law, e.laws) for law in ([1.0, 0.0], [0.0, 1.0]))
    code = e.quotient()
    one = e.decoder(code)
    other = one.copy()
    other[:, 1] = simplex((3, 4), stream(1, "twins"))
    assert abs(first.loss(code, one) - first.loss(code, other)) <= 1e-14
    assert abs(first.loss(code, one) - first.bayes_loss(code)) <= 1e-14
    assert second.loss(code, other) - second.loss(code, one) > 1e-3
    beta = task_ecologies.local_threshold(e) / 2
    more = e.complexity(np.arange(5)) - e.complexity(code)
    assert abs(e.objective(np.arange(5), beta) - e.objective(code, beta) - beta * more) <= 1e-14


def test_rows_say_so_where_a_form_is_wrong(rows, monkeypatch):
    """Twice the bound of a pair is no bound, and the share at which sigma^2 crosses is not where the split pays;
    replicates are other draws."""
    assert (rows[OffEcology]["ratio"] <= 1 + 1e-9).all()
    assert rows[OffEcology].groupby("replicate")["excess"].first().is_unique
    assert rows[Injection].query("alpha == 0")["sigma2"].is_unique
    for found, straight in (("sigma2", "linear2"), ("gain", "linear")):
        assert (rows[Injection][found] - rows[Injection][straight]).abs().max() <= rows[Injection]["bound"].max()
    assert (rows[Injection]["gap"] <= rows[Injection]["bound"]).all()
    for _, pair in rows[Injection].groupby("replicate"):  # what a split saves rises with the share as its gain does
        (first, *_, last), (start, *_, end) = pair["gain"], pair["alpha"]
        rise = 1e-3 * (last - first) / (end - start)
        assert [*pair["before"], *pair["after"]] == pytest.approx([-rise] * len(pair) + [rise] * len(pair))
    monkeypatch.setattr(deployment, "pair_bound", lambda *pair: 2 * pair_bound(*pair))
    assert (OffEcology.at("tiny").run({}, seed=0, device="cpu", dtype=None)["ratio"] > 1 + 1e-9).any()
    monkeypatch.setattr(deployment, "split_injection_threshold", lambda *arguments: 0.3)
    table = Injection.at("tiny").run({}, seed=0, device="cpu", dtype=None)
    assert (table["crossing"] > table["bound"]).all()
    assert (table["after"] < 0).all()


def test_what_thresholds_refuse():
    base, new = two(0)
    with pytest.raises(ValueError, match=r"sigma\^2 of the pair goes from .* no share crosses it upwards"):
        task_ecologies.injection_threshold(base, new, (0, 1), 0.99)
    with pytest.raises(ValueError, match="no share crosses it upwards"):
        task_ecologies.injection_threshold(new, base, (0, 1), 0.01)
    with pytest.raises(ValueError, match="gain of the split"):
        task_ecologies.split_injection_threshold(base, new, [0], [1], 50.0)
    with pytest.raises(ValueError, match="epsilon = 0"):
        task_ecologies.injection_threshold(base, new, (0, 1), 0.0)
    with pytest.raises(ValueError, match=r"alpha = 1.5"):
        task_ecologies.mix(base, new, 1.5)
    other = random_ecology(3, 2, 4, stream(9, "other"))
    with pytest.raises(ValueError, match="other worlds or another vocabulary"):
        task_ecologies.mix(base, other, 0.5)
    with pytest.raises(ValueError, match="know the world"):
        task_ecologies.mix(random_ecology(3, 2, 4, stream(9, "other"), informed=True), other, 0.5)
