"""Price's equation, Wright-Fisher sampling, the quasispecies, recipes, drift, and populations of trained models."""

import dataclasses
import itertools

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from derived.lab.rng import stream
from derived.papers.task_ecologies import selection as claims
from derived.papers.task_ecologies.data.languages import excess
from derived.papers.task_ecologies.fits import build
from derived.papers.task_ecologies.model import partitions, selection
from derived.papers.task_ecologies.model.gpt import GPTSize
from derived.papers.task_ecologies.selection import Drift, Population, Quasispecies, Sampling, one_step_rates

EXPERIMENTS = (Sampling, Quasispecies, Drift, Population)


@given(st.integers(0, 10_000), st.integers(1, 6))
def test_price_is_the_mean_of_the_offspring(seed, parents):
    """`te-price`: the two terms are the change of the mean, counted over a list of children."""
    g = np.random.default_rng(seed)
    number, z = g.integers(1, 5, parents), g.normal(size=parents)
    kinds = [z[i] + g.normal(size=number[i]) for i in range(parents)]
    terms = selection.price_terms(number, z, [kind.mean() - z[i] for i, kind in enumerate(kinds)])
    assert np.concatenate(kinds).mean() - z.mean() == pytest.approx(terms.selection + terms.transmission, abs=1e-12)


def test_moments_of_the_drawn_mean_are_those_of_all_draws():
    """`te-price`: expectation and variance by listing the 3^2 and 3^3 draws of two and three parents."""
    f, z, x = np.array([1.0, 2.0, 0.5]), np.array([0.3, -1.0, 2.0]), np.array([0.2, 0.3, 0.5])
    p = x * f / (x @ f)
    for K in (1, 2, 3):
        draws = list(itertools.product(range(3), repeat=K))
        weight = np.array([np.prod(p[list(d)]) for d in draws])
        change = np.array([z[list(d)].mean() for d in draws]) - x @ z
        mean, variance = selection.selection_moments(f, z, K, shares=x)
        assert mean == pytest.approx(weight @ change, abs=1e-15)
        assert variance == pytest.approx(weight @ change**2 - (weight @ change) ** 2, abs=1e-15)


def test_parents_come_in_proportion_to_share_times_fitness():
    f, x, num = np.array([1.0, 2.0, 0.5]), np.array([0.2, 0.3, 0.5]), 100_000
    found = np.bincount(selection.wright_fisher(f, num, stream(0, "parents"), shares=x), minlength=3) / num
    p = x * f / (x @ f)
    error = (p * (1 - p) / num) ** 0.5
    assert (np.abs(found - p) < 4 * error).all()
    assert (np.abs(found - x) > 20 * error).any()  # the test would notice draws without fitness
    batch = selection.wright_fisher(np.ones((4, 3)), 5, stream(0, "batch"))
    assert batch.shape == (4, 5)


def test_selection_that_hears_the_loss_lowers_it_in_expectation_whatever_the_losses():
    """Cov(e^(-sR), R) <= 0 always: an expected change below zero is no finding."""
    g = np.random.default_rng(0)
    for s in (0.1, 1.0, 30.0):
        R = g.normal(size=(200, 20))
        assert (selection.price_terms(np.exp(-s * R), R).selection < 0).all()


def test_without_mutation_shares_go_as_powers_of_fitness():
    x, f = np.array([0.5, 0.3, 0.2]), np.array([1.0, 1.1, 1.3])
    right = x * f**7
    assert selection.replicator_mutator(x, f, generations=7) == pytest.approx(right / right.sum(), abs=1e-15)
    assert selection.replicator_mutator(x, f, generations=0) == pytest.approx(x)


def random_kernel(m: int, g) -> np.ndarray:
    Q = g.random((m, m)) ** 3 + 0.01
    return Q / Q.sum(axis=1, keepdims=True)


def test_the_quasispecies_is_where_every_population_ends():
    """`te-quasispecies`: the Perron vector is the limit of the recursion from two starts."""
    g = np.random.default_rng(1)
    for m in (1, 2, 5):
        Q, f = random_kernel(m, g), g.uniform(0.5, 2, m)
        x = selection.quasispecies(f, Q)
        for start in (np.full(m, 1 / m), np.eye(m)[0]):
            assert selection.replicator_mutator(start, f, Q, generations=3000) == pytest.approx(x, abs=1e-12)
        assert selection.replicator_mutator(x, f, Q) == pytest.approx(x, abs=1e-13)


def test_first_order_has_an_error_of_second_order():
    """`te-quasispecies`: halving epsilon quarters the distance from the Perron vector."""
    f = np.array([1.0, 0.7, 0.9, 0.4])
    L = random_kernel(4, np.random.default_rng(2))
    L = L - np.diag(L.sum(axis=1))
    gaps = [
        np.abs(selection.quasispecies(f, np.eye(4) + e * L) - selection.first_order_quasispecies(f, L, e)).max()
        for e in (2e-3, 1e-3)
    ]
    assert gaps[0] / gaps[1] == pytest.approx(4, rel=0.05)
    wrong = selection.first_order_quasispecies(f, L.T - np.diag(L.T.sum(axis=1)), 1e-3)
    assert np.abs(selection.quasispecies(f, np.eye(4) + 1e-3 * L) - wrong).max() > 50 * gaps[1]


def test_equal_fitness_leaves_the_shares_to_mutation():
    """`te-blind`: the quotient and a finer code of no excess are equally fit; other rates give other shares."""
    f = np.array([1.0, 1.0, 0.6])  # quotient, finer code, constant code
    shares = []
    for back in (1.0, 3.0):
        L = np.array([[-2.0, 1.0, 1.0], [back, -back - 1, 1.0], [1.0, 1.0, -2.0]])
        shares.append(selection.quasispecies(f, np.eye(3) + 1e-6 * L))
    assert shares[0][:2] == pytest.approx([0.5, 0.5], abs=1e-3)
    assert shares[1][:2] == pytest.approx([0.75, 0.25], abs=1e-3)
    dearer = selection.quasispecies(np.array([1.0, 0.99, 0.6]), np.eye(3) + 1e-6 * L)  # with a cost of its own it goes
    assert dearer[1] < 1e-3


def test_recipes_whose_share_is_independent_of_the_background_never_lose_it():
    """`te-recipe`: Cov(f, alpha) >= 0 if the excess falls with alpha in each background and both are independent."""
    g = np.random.default_rng(3)
    negative = 0
    for _ in range(500):
        lost = np.sort(g.random((3, 4)), axis=1)[:, ::-1] + 2 * g.random((3, 1))
        alpha = np.broadcast_to(np.sort(g.random(4)), (3, 4)).ravel()
        x = np.outer(g.dirichlet(np.ones(3)), g.dirichlet(np.ones(4))).ravel()
        assert selection.price_terms(np.exp(-lost).ravel(), alpha, shares=x).selection > -1e-15
        confounded = g.dirichlet(np.full(12, 0.3))
        negative += selection.price_terms(np.exp(-lost).ravel(), alpha, shares=confounded).selection < -1e-3
    assert negative > 20


def test_the_counterexample_meets_the_printed_premise():
    """`te-recipe`: within each background the excess falls with the share, yet the mean share falls by 0.175."""
    one = selection.recipe_counterexample()
    for background in (0, 1):
        part = one.background == background
        assert (np.diff(one.alpha[part]) > 0).all()
        assert (np.diff(one.excess[part]) < 0).all()
    terms = selection.price_terms(np.exp(-one.excess), one.alpha, shares=one.shares)
    assert terms.selection == pytest.approx(-0.175, abs=5e-4)
    f = np.exp(-one.excess)
    covariance = one.shares @ (f * one.alpha) - (one.shares @ f) * (one.shares @ one.alpha)
    assert covariance == pytest.approx(-0.047, abs=5e-4)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: selection.price_terms([1.0, 0.0], [0, 1]), r"fitness\[1\] = 0"),
        (lambda: selection.price_terms([1.0, 1.0], [0, 1], shares=[0.5, 0.6]), "sum to 1.1"),
        (lambda: selection.price_terms([1.0, 1.0], [0, 1], shares=[1.5, -0.5]), r"shares\[1\] = -0.5"),
        (lambda: selection.wright_fisher([1.0], 0, stream(0, "a")), "draws = 0"),
        (lambda: selection.quasispecies([1.0, 2.0], [[0.5, 0.4], [0.5, 0.5]]), "row 0 of the kernel sums to 0.9"),
        (lambda: selection.quasispecies([1.0, 2.0], [[0.5, 0.5]]), r"give \(2, 2\)"),
        (lambda: selection.quasispecies([1.0, 2.0], np.eye(2)), "not every type is reached"),
        (lambda: selection.quasispecies([1.0, 2.0], [[0.0, 1.0], [1.0, 0.0]]), "not every type is reached"),  # period 2
        (
            lambda: selection.first_order_quasispecies([1.0, 1.0], np.zeros((2, 2)), 0.1),
            "2 types have the largest fitness",
        ),
        (lambda: selection.first_order_quasispecies([1.0, 2.0], np.zeros((2, 2)), 0.0), "epsilon = 0"),
        (lambda: selection.replicator_mutator([1.0], [1.0], generations=-1), "generations = -1"),
    ],
)
def test_wrong_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_rates_lead_to_codes_one_split_or_merge_away():
    codes = [tuple(map(int, code)) for code in partitions.set_partitions(3)]
    rates = one_step_rates(partitions.set_partitions(3))
    near = {(codes[i], codes[j]) for i, j in zip(*np.nonzero(rates > 0), strict=True)}
    halves = [(0, 0, 1), (0, 1, 0), (0, 1, 1)]
    assert near == {pair for h in halves for end in [(0, 0, 0), (0, 1, 2)] for pair in [(h, end), (end, h)]}
    assert np.abs(rates.sum(axis=1)).max() == 0


def test_identities_and_limits_hold_in_the_rows(rows):
    assert rows[Sampling].groupby("fitness")["z"].std().to_numpy() == pytest.approx([1, 1], abs=0.03)
    shares = rows[Quasispecies].groupby(["case", "instance", "epsilon"])["share"].sum()
    assert shares.to_numpy() == pytest.approx(np.ones(len(shares)))
    planted = rows[Quasispecies].query("case == 'planted'")
    assert (planted.groupby(["instance", "epsilon"])["excess"].agg(lambda e: (e == 0).sum()) == 2).all()  # 2 free codes


def test_fitness_hears_the_loss_in_one_condition_and_nothing_in_the_other(monkeypatch):
    """What decides who becomes a parent, beside the losses: e^-loss, or numbers that know nothing of it."""
    heard = []

    def noted(fitness, loss, models):
        heard.append(np.corrcoef(np.log(fitness).ravel(), loss.ravel())[0, 1])
        return selection.selection_moments(fitness, loss, models)

    monkeypatch.setattr(claims, "selection_moments", noted)
    for fitness in ("loss", "noise"):
        Sampling.at("tiny").run({"fitness": fitness}, seed=0, device="cpu", dtype=torch.float64)
    assert heard[0] == pytest.approx(-1)
    assert abs(heard[1]) < 4 / (Sampling.at("tiny").replicates * Sampling.models) ** 0.5


def test_a_population_reads_texts_of_any_length():
    long = dataclasses.replace(Population.at("tiny"), length=40, generations=1, models=2, replicates=1)
    table = long.run({"strength": 1.0, "arm": "selected"}, seed=0, device="cpu", dtype=torch.float32)
    assert table["risk"].notna().all()


def test_drift_alone_has_no_direction(rows):
    neutral = rows[Drift].query("arm == 'neutral'").groupby("published")["final"]
    error = neutral.std() / neutral.size() ** 0.5
    assert ((neutral.mean() - 0.5).abs() < 4 * error).all()
    assert (rows[Drift].query("arm == 'selected'").groupby("published")["final"].mean() > 0.65).all()


def test_the_risk_changes_by_its_three_parts_and_arms_share_their_founders(rows):
    found = rows[Population].set_index(["strength", "arm", "replicate", "generation"]).sort_index()
    parts = found[["selection", "development", "mutation"]].sum(axis="columns")
    after = (found["risk"] + parts).groupby(level=[0, 1, 2]).shift()
    later = found.index.get_level_values("generation") > 0
    assert after[later].to_numpy() == pytest.approx(found["risk"][later].to_numpy(), abs=1e-9)
    first = found["risk"].xs(0, level="generation").unstack(["strength", "arm"])
    assert (first.nunique(axis="columns") == 1).all()
    assert (found.xs("selected", level="arm")["expected"] < 0).all()  # Chebyshev, whatever happens
    assert (found.xs("shuffled", level="arm")["expected"] > 0).any()


def test_models_live_with_the_languages_of_their_replicate_and_end_on_texts_that_set_no_fitness(rows):
    """One model at a time, on texts of its own five languages, by their laws."""
    size, cpu = Population.at("tiny"), torch.device("cpu")
    family = size.families(3)
    assert len(family.first) == 5 * size.replicates
    assert not torch.equal(family.first[:5], family.first[5:10])
    drawn, laws = [], []
    for name in ("held out", "final"):
        languages = torch.arange(5 * size.replicates).view(-1, 5).repeat_interleave(size.held_out, dim=1)
        drawn.append(family.texts(languages, size.length, stream(3, "population", name))[..., :-1])
        laws.append(family.laws(languages, drawn[-1]))
    assert not torch.equal(*drawn)
    gpt = GPTSize(vocabulary=family.vocabulary, block=size.length)
    model = build(gpt, size.replicates * size.models, 3, cpu, torch.float64, "population")
    for texts, law, name in zip(drawn, laws, ("held out", "final"), strict=True):
        found = size.judge(family, 3, name, cpu, torch.float64)(model)
        for r, i in np.ndindex(size.replicates, size.models):
            one = model(texts[r])[r * size.models + i]
            assert found[r, i] == pytest.approx(excess(one, law[r]).mean().item(), abs=1e-12)
    table = rows[Population]
    ended = table["generation"] == table["generation"].max()
    assert (table["final"].notna() == ended).all()
    after = table.eval("risk + selection + development + mutation")[ended]
    assert (abs(table["final"][ended] - after) > 1e-6).all()


def test_models_read_the_languages_of_their_replicate(monkeypatch):
    read = []
    monkeypatch.setattr(Population, "train", lambda self, model, family, languages, *_: read.append(languages))
    size = Population.at("tiny")
    size.run(size.conditions()[0], seed=0, device=torch.device("cpu"), dtype=torch.float32)
    for languages in read:  # (steps, models)
        assert (languages // 5 == torch.arange(size.replicates).repeat_interleave(size.models)).all()
    assert len(read) == 1 + size.generations


def population(selected: float, shuffled: float) -> pd.DataFrame:
    cells = itertools.product((1.0, 10.0), (("selected", selected), ("shuffled", shuffled)), range(5), range(2))
    found = [
        {"strength": s, "arm": arm, "replicate": r, "generation": g, "final": by * (g + 1) + 0.01 * r * (s == 1)}
        for s, (arm, by), r, g in cells
    ]
    return pd.DataFrame(found)


def test_populations_are_compared_replicate_by_replicate():
    found = claims.final_difference(population(-0.3, 0.1), 1.0)
    assert (found.value, found.n) == (pytest.approx(0.8), 5)  # the last life counts
    assert found.low == pytest.approx(0.8)  # what replicates share cancels


def test_figures_say_in_words_what_they_show(rows, tells):
    tells(claims.coverage(rows[Sampling]), "fitness by noise", "within 1.96")
    tells(claims.quasispecies(rows[Quasispecies]), "identity map")
    tells(claims.drift(rows[Drift]), "exp 6 neutral mean 0.", "exp 7 selected")
    tells(claims.changes(rows[Population]), "dealt out at random", "strength 10, shuffled, perturbation")
    assert torch.is_grad_enabled()


def test_bars_of_a_run_are_means_over_replicates_of_sums_over_its_generations():
    """Two generations; replicate 1 loses three times as much as replicate 0."""
    cells = itertools.product(("selected", "shuffled"), (0, 1), (1, 2))
    rows = pd.DataFrame(cells, columns=["arm", "replicate", "generation"]).assign(strength=1.0, recorded=False)
    size = (1 + 2 * rows["replicate"]) * np.where(rows["arm"] == "selected", 1.0, 0.5)
    rows = rows.assign(tier="ci", selection=-0.1 * size, development=-0.2 * size, mutation=0.0)
    figure = claims.changes(rows)
    assert [round(bar.get_width(), 9) for bar in figure.axes[0].patches] == [0.4, 0.8, 0, 0.2, 0.4, 0]
    assert figure.axes[0].texts[-1].get_text() == "Selected or not, the risk falls by 0.600 to 1.200 nats"
    plt.close(figure)
