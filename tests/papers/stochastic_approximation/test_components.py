"""Topic components: the loop and its steps, chains and their classes, environments, and bad input."""

import math

import networkx
import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from derived.lab.rng import stream
from derived.papers.stochastic_approximation import StepSize, environment, polyak_ruppert, robbins_monro
from derived.papers.stochastic_approximation.claims import CLAIMS
from derived.papers.stochastic_approximation.components import (
    CHAIN,
    Absorbed,
    EarlyData,
    LogOdds,
    Mixtures,
    Worlds,
    frequencies,
    to_data,
)
from derived.papers.stochastic_approximation.data import chains, environments
from derived.papers.stochastic_approximation.model.chains import (
    absorption_probabilities,
    closed_classes,
    harmonic_dimension,
    invariant_laws,
    kl_rate,
)
from derived.papers.stochastic_approximation.model.core import record_times
from derived.papers.stochastic_approximation.model.linear import linear_iterates
from derived.papers.stochastic_approximation.model.theory import mean_field_root

EXPERIMENTS = (Absorbed, Mixtures, Worlds, EarlyData, LogOdds)
PARAMETERS = {
    "mixture": {"means": (0.0, 1.0), "noise": (1.0, 1.0), "weights": (0.5, 0.5)},
    "markov_mixture": {"chains": (((0.5, 0.5), (0.2, 0.8)),), "weights": (1.0,)},
    "absorbing_chain": {
        "P": ((0.0, 0.5, 0.5), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)),
        "start": 0,
        "values": (0.0, 1.0, 2.0),
    },
    "infinite_order": {"c": 0.2, "theta": (0.3, 0.1)},
    "polya_urn": {"ones": 1.0, "zeros": 2.0},
    "renewal": {"beta": 1.5},
    "fractional": {"H": 0.7},
    "telegraph": {"epsilon": 0.1},
    "doubling_blocks": {},
    "alternating": {},
}
EPSILON = 2.0**-52
examples = settings(derandomize=True, max_examples=30, deadline=None, database=None)


def normals(*shape: int, name: str = "data") -> torch.Tensor:
    return torch.randn(*shape, generator=stream(0, name), dtype=torch.float64)


# The loop -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("replicas", [1, 3])
def test_steps_of_one_over_n_make_the_running_mean(replicas):
    y = normals(700, replicas)
    found = robbins_monro(to_data, y, StepSize.power(), normals(replicas, name="x0"), record=range(1, 701))
    mean = y.cumsum(dim=0) / torch.arange(1, 701).unsqueeze(-1)
    assert found.times == tuple(range(1, 701))
    assert (found.x - mean).abs().max() <= 700 * EPSILON * y.abs().max()


@pytest.mark.parametrize("shape", [(1,), (4,), (4, 2)])
def test_the_loop_is_the_formula_one_number_at_a_time(shape):
    """Slow twin: Python floats."""
    y, x0, step = normals(40, *shape), normals(*shape, name="x0"), StepSize(0.7, 0.6, 2.0)
    found = robbins_monro(lambda x, y: torch.tanh(y - 2 * x), y, step, x0).x[-1].flatten()
    for place, start in enumerate(x0.flatten().tolist()):
        x = start
        for n, value in enumerate(y.flatten(1)[:, place].tolist(), start=1):
            x += 0.7 * (n + 2) ** -0.6 * math.tanh(value - 2 * x)
        assert abs(found[place] - x) <= 40 * 4 * EPSILON


def test_averages_are_means_of_the_iterates():
    y, x0 = normals(50, 3), torch.zeros(3, dtype=torch.float64)
    step = StepSize.power(alpha=0.7)
    path = robbins_monro(to_data, y, step, x0, record=range(1, 51)).x
    found = polyak_ruppert(to_data, y, step, x0, record=(10, 50)).x
    for each, n in zip(found, (10, 50), strict=True):
        assert (each - path[:n].mean(dim=0)).abs().max() <= 1e-13


def test_steps_of_their_own_for_each_replica():
    y, x0 = normals(30, 2), torch.zeros(2, 2, dtype=torch.float64)
    sizes = [StepSize.power(alpha=alpha) for alpha in (0.6, 1.0)]
    both = robbins_monro(to_data, y, torch.stack([s.values(30) for s in sizes], dim=1).unsqueeze(-1), x0).x[-1]
    for found, step in zip(both, sizes, strict=True):
        assert torch.equal(found, robbins_monro(to_data, y, step, x0[0]).x[-1])


@examples
@given(st.floats(0.1, 3), st.floats(0.3, 2), st.floats(0, 1), st.sampled_from([(1,), (3,), (3, 2)]))
def test_a_linear_field_needs_no_loop(lam, a, alpha, shape):
    """Weighted sums against the loop; the first factor 1 - a_1 lambda may be zero or negative. Between times there are
    fewer samples than pieces, as many, and more, which do not go into pieces evenly."""
    y, x0, step = normals(60, *shape), normals(*shape, name="x0"), StepSize(a, alpha)
    record = (1, 2, 18, 60)
    found = linear_iterates(lam, y, step, x0, record=record)
    assert torch.equal(linear_iterates(lam, y, step.values(60), x0, record=record).x, found.x)
    slow = robbins_monro(lambda x, y: y - lam * x, y, step, x0, record=record)
    assert found.times == slow.times
    assert (found.x - slow.x).abs().max() <= 1e-12 * max(1.0, slow.x.abs().max())


def test_a_linear_field_refuses_what_the_loop_refuses():
    y, x0 = normals(5, 2), torch.zeros(2, dtype=torch.float64)
    for bad in ((0,), (6,), ()):
        with pytest.raises(ValueError, match="give times from 1 to 5"):
            linear_iterates(1.0, y, StepSize.power(), x0, record=bad)
    y[3, 1] = math.nan
    with pytest.raises(ValueError, match=r"step 4, entry \[1\]"):
        linear_iterates(1.0, y, StepSize.power(), x0)


def test_the_start_and_the_data_are_left_alone():
    y, x0 = normals(5, 2), torch.zeros(2, dtype=torch.float64)
    kept = y.clone()
    robbins_monro(to_data, y, StepSize.power(), x0)
    assert torch.equal(y, kept)
    assert not x0.any()


@pytest.mark.parametrize("at", [1, 7, 256, 257, 600])
def test_a_state_that_is_not_finite_names_its_step_and_replica(at):
    y = torch.zeros(600, 3, dtype=torch.float64)
    y[at - 1, 2] = math.nan
    with pytest.raises(ValueError, match=rf"step {at}, entry \[2\] \(the data are not finite there\)"):
        robbins_monro(to_data, y, StepSize.power(), torch.zeros(3, dtype=torch.float64))


@pytest.mark.parametrize("steps", [200, 600])
def test_a_field_with_noise_of_its_own_is_told_so(steps):
    """A second walk is clean; nothing that is not finite is returned."""
    calls = iter(range(10_000))

    def field(x, y):
        return y - x if next(calls) != 100 else torch.full_like(x, math.nan)

    with pytest.raises(ValueError, match="no function of"):
        robbins_monro(field, torch.zeros(steps, 2, dtype=torch.float64), StepSize.power(), torch.zeros(2).double())


def test_a_field_of_another_shape_is_refused():
    y = torch.zeros(5, 2, dtype=torch.float64)
    with pytest.raises(ValueError, match=r"h gives shape \(\) at a state \(2,\)"):
        robbins_monro(lambda x, y: (y - x).sum(), y, StepSize.power(), torch.zeros(2, dtype=torch.float64))


def test_a_field_that_explodes_names_its_step():
    y = torch.zeros(400, 1, dtype=torch.float64)
    with pytest.raises(ValueError, match=r"step \d+, entry \[0\] \(the data are finite\)"):
        robbins_monro(lambda x, y: x**3, y, StepSize.constant(1.0), torch.full((1,), 2.0, dtype=torch.float64))
    with pytest.raises(ValueError, match="x0 is not finite"):
        robbins_monro(to_data, y, StepSize.power(), torch.full((1,), math.inf, dtype=torch.float64))


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"y": torch.zeros(0, 1)}, "y has the shape"),
        ({"step": torch.ones(3)}, "3 steps for 5 samples"),
        ({"record": (0, 2)}, "give times from 1 to 5"),
        ({"record": (6,)}, "give times from 1 to 5"),
        ({"record": ()}, "give times from 1 to 5"),
        ({"record": (1.5,)}, r"record = \(1.5,\); give a sequence of integers"),
        ({"step": -torch.ones(5)}, "negative or not finite"),
        ({"step": torch.full((5,), math.nan)}, "negative or not finite"),
        ({"x0": torch.zeros(1, dtype=torch.long)}, "x0 is not finite, or of dtype"),
    ],
)
def test_the_loop_refuses(changed, words):
    given = {"y": torch.zeros(5, 1), "step": StepSize.power(), "record": None, "x0": torch.zeros(1)} | changed
    with pytest.raises(ValueError, match=words):
        robbins_monro(to_data, given["y"], given["step"], given["x0"], record=given["record"])


@pytest.mark.parametrize(
    ("step", "condition", "words"),
    [
        (StepSize.constant(0.1), "robbins-monro", r"sum a_n\^2 = infinity"),
        (StepSize.power(alpha=0.5), "robbins-monro", r"sum a_n\^2 = infinity"),
        (StepSize.power(alpha=1.1), "robbins-monro", "sum a_n is finite"),
        (StepSize.power(alpha=0.99), "window", "sup n a_n = infinity"),
        (StepSize.power(alpha=0.5), "window", r"sum a_n\^2 = infinity"),
        (StepSize.power(), "mixing", "give one of 'robbins-monro', 'window'"),
    ],
)
def test_a_step_that_misses_a_condition_is_told_which(step, condition, words):
    with pytest.raises(ValueError, match=words):
        step.require(condition)


def test_steps_that_meet_their_conditions():
    StepSize.power(alpha=0.51).require("robbins-monro")
    StepSize.power(3.0, n0=7).require("window")
    for bad in ({"a": 0.0}, {"alpha": -0.1}, {"n0": -1.0}, {"a": math.nan}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            StepSize(**bad)


@examples
@given(st.integers(1, 5000), st.integers(2, 40))
def test_record_times_keep_both_ends(steps, points):
    times = record_times(steps, points)
    assert times[0] == 1
    assert times[-1] == steps
    assert len(times) <= points + 2
    assert list(times) == sorted(set(times))


# Chains ---------------------------------------------------------------------------------------------------------------


@examples
@given(st.integers(1, 4), st.integers(0, 5), st.integers(0, 2**31))
def test_classes_are_those_of_networkx_and_names_do_not_matter(classes, transient, seed):
    g = stream(seed, "chain")
    P = chains.random_absorbing_chain(classes, transient, generator=g)
    graph = networkx.from_numpy_array(P > 0, create_using=networkx.DiGraph)
    assert closed_classes(P) == sorted(tuple(sorted(each)) for each in networkx.attracting_components(graph))
    assert harmonic_dimension(P) == classes
    if classes + transient > 1:
        order = torch.randperm(len(P), generator=g).numpy()
        q, mixed = absorption_probabilities(P), absorption_probabilities(P[np.ix_(order, order)])
        assert sorted(map(tuple, q[order].round(9).T)) == sorted(map(tuple, mixed.round(9).T))


def test_absorption_by_hand_and_by_walking():
    """The gambler's ruin: from 1 of 3, two steps up with probability (p^2) / (1 - p q)."""
    p = 0.3
    P = np.array([[1, 0, 0, 0], [1 - p, 0, p, 0], [0, 1 - p, 0, p], [0, 0, 0, 1]])
    assert abs(absorption_probabilities(P)[1, 1] - p**2 / (1 - p * (1 - p))) <= 4 * EPSILON
    drawn = environments.AbsorbingChain(tuple(map(tuple, P.tolist())), 1, (0.0, 0.0, 0.0, 1.0)).draw(
        60, 4000, stream(0, "ruin")
    )
    share, exact = float((drawn.component == 1).double().mean()), p**2 / (1 - p * (1 - p))
    error = (exact * (1 - exact) / 4000) ** 0.5
    assert abs(share - exact) <= 4 * error
    assert abs(share - p) > 4 * error


def test_invariant_laws_do_not_change():
    P = np.asarray(CHAIN)
    laws = invariant_laws(P)
    assert laws.shape == (3, 8)
    assert np.abs(laws @ P - laws).max() <= 64 * EPSILON
    assert np.abs(laws.sum(axis=1) - 1).max() <= 16 * EPSILON


@pytest.mark.parametrize(
    ("P", "words"),
    [
        (np.array([[0.5, 0.5], [0.5, 0.5]]), "irreducible"),
        (np.array([[0.5, 0.4], [0.0, 1.0]]), "row 0 of P sums to 0.9"),
        (np.array([[1.5, -0.5], [0.0, 1.0]]), "give a number from 0 to 1"),
        (np.array([[math.nan, 1.0], [0.0, 1.0]]), "give a number from 0 to 1"),
        (np.ones((2, 3)) / 3, "give a square matrix"),
    ],
)
def test_a_chain_without_classes_to_end_in_is_refused(P, words):
    with pytest.raises(ValueError, match=words):
        absorption_probabilities(P)


def test_the_rate_of_kullback_and_leibler():
    A, B, leaves = np.array([[0.8, 0.2], [0.2, 0.8]]), np.full((2, 2), 0.5), np.array([[0.5, 0.5], [0.0, 1.0]])
    assert kl_rate(A, A) == 0.0
    assert abs(kl_rate(A, B) - (0.8 * math.log(1.6) + 0.2 * math.log(0.4))) <= 4 * EPSILON
    assert kl_rate(A, np.eye(2)) == math.inf
    for bad, words in (
        ((A, np.eye(3)), "same states"),
        ((np.eye(2), A), "2 closed classes"),
        ((leaves, A), "not irreducible"),
    ):
        with pytest.raises(ValueError, match=words):
            kl_rate(*bad)


# Environments ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", environments.ENVIRONMENTS)
@pytest.mark.parametrize(("steps", "replicas"), [(20, 1), (20, 3)])
def test_an_environment_has_its_shapes_and_its_seed(name, steps, replicas):
    world = environment(name, **PARAMETERS[name])
    drawn, again = (world.draw(steps, replicas, stream(3, "same")) for _ in "12")
    assert drawn.y.shape == (steps, replicas)
    assert drawn.y.dtype == torch.float64
    assert drawn.component.shape == (replicas,)
    assert torch.equal(drawn.y, again.y)
    other = world.draw(steps, 40, stream(4, "other")).y
    assert name == "doubling_blocks" or not torch.equal(other, world.draw(steps, 40, stream(5, "other")).y)
    for bad in ((0, 1), (1, 0), (True, 1)):
        with pytest.raises(ValueError, match="give an integer >= 1"):
            world.draw(*bad, stream(0, "bad"))


@pytest.mark.parametrize(
    ("name", "changed", "words"),
    [
        ("weather", {}, "environment = 'weather'; give one of 'mixture'"),
        ("mixture", {"weights": (0.5, 0.4)}, "probabilities that sum to one"),
        ("mixture", {"noise": (1.0,)}, "noise"),
        ("mixture", {"noise": (-1.0, 1.0)}, r"noise\[0\] = -1"),
        ("markov_mixture", {"chains": (((1.0, 0.0), (0.5, 0.5)),)}, r"chains\[0\] is not irreducible"),
        ("absorbing_chain", {"start": 3}, "start 3"),
        ("infinite_order", {"c": 0.7}, "c \\+ sum < 1"),
        ("infinite_order", {"burn_in": -3}, "burn_in = -3"),
        ("mixture", {"means": (math.nan, 0.0)}, "means"),
        ("infinite_order", {"theta": (-0.1,)}, r"theta\[0\]"),
        ("polya_urn", {"ones": 0.0}, "ones = 0"),
        ("renewal", {"beta": 1.0}, "finite number > 1"),
        ("fractional", {"H": 1.0}, "H = 1"),
        ("telegraph", {"epsilon": 0.0}, "epsilon = 0"),
    ],
)
def test_an_environment_refuses(name, changed, words):
    with pytest.raises(ValueError, match=words):
        environment(name, **PARAMETERS.get(name, {}) | changed).draw(5, 1, stream(0, "bad"))


def test_a_replica_that_is_not_absorbed_has_no_component():
    slow = ((0.999999, 0.000001), (0.0, 1.0))
    with pytest.raises(ValueError, match="give more steps"):
        environments.AbsorbingChain(slow, 0, (0.0, 1.0)).draw(2, 3, stream(0, "slow"))


def test_components_come_with_their_weights_and_their_laws():
    mixture = environments.Mixture((0.0, 3.0), (1.0, 0.5), (0.3, 0.7)).draw(200, 3000, stream(0, "mixture"))
    assert abs(mixture.component.double().mean() - 0.7) <= 4 * (0.21 / 3000) ** 0.5
    for k, (mean, noise) in enumerate(((0.0, 1.0), (3.0, 0.5))):
        of_k = mixture.y[:, mixture.component == k]
        assert abs(of_k.mean() - mean) <= 4 * noise / of_k.numel() ** 0.5
        assert abs(of_k.var() / noise**2 - 1) <= 4 * (2 / of_k.numel()) ** 0.5


@pytest.mark.parametrize("chain", [((0.8, 0.2), (0.3, 0.7)), ((0.4, 0.6), (0.4, 0.6))])
def test_a_markov_stream_has_its_transitions_and_its_law_from_the_start(chain):
    """The second chain has equal rows, and is drawn without a loop over time."""
    y = environments.MarkovMixture((chain,), (1.0,)).draw(50, 4000, stream(0, "chain")).y
    law = invariant_laws(np.asarray(chain))[0]
    for place in (0, 49):
        assert abs(y[place].mean() - law[1]) <= 4 * (law[1] * law[0] / 4000) ** 0.5
    for state in range(2):
        after = y[1:][y[:-1] == state]
        expected = chain[state][1]
        assert abs(after.mean() - expected) <= 5 * (expected * (1 - expected) / len(after)) ** 0.5


def test_blocks_double_and_signs_alternate():
    y = environments.DoublingBlocks().draw(2**10 - 1, 1, stream(0, "blocks")).y[:, 0]
    expected = torch.cat([torch.full((2**k,), k % 2, dtype=torch.float64) for k in range(10)])
    assert torch.equal(y, expected)
    signs = environments.Alternating().draw(9, 50, stream(0, "signs")).y
    assert torch.equal(signs[1:], -signs[:-1])
    assert signs[0].unique().tolist() == [-1.0, 1.0]


def test_roots_in_two_dimensions_and_bad_fields():
    A, b = normals(3, 2, 2).numpy() + 3 * np.eye(2), normals(3, 2).numpy()
    weights = np.array([0.2, 0.3, 0.5])
    for root, one, side in zip(mean_field_root(A, b), A, b, strict=True):
        assert np.abs(one @ root - side).max() <= 1e-13
    mixed = mean_field_root(A, b, weights)
    assert np.abs(np.einsum("k,kij,j->i", weights, A, mixed) - weights @ b).max() <= 1e-13
    singular = (np.ones((2, 2, 2)), np.ones((2, 2)), None)
    for bad in (
        singular,
        (np.ones((2, 2, 2)), np.ones(2), None),
        ([0.0, 1.0], [1.0, 1.0], None),
        ([1.0, 2.0], [1.0], None),
    ):
        with pytest.raises(ValueError, match="give"):
            mean_field_root(*bad)
    for bad in (([1.0, 2.0], [1.0, 1.0], [0.5, 0.6]), ([1.0], [1.0], [0.5, 0.5])):
        with pytest.raises(ValueError, match="give"):
            mean_field_root(*bad)


# Rows and claims ------------------------------------------------------------------------------------------------------


def test_the_four_feeds_share_their_samples():
    small = Mixtures(replicas=30, steps=50)
    one, many, shuffled, exchanged = (small.samples(feed, 0) for feed in ("one", "many", "shuffled", "exchanged"))
    for k in (0, 1):
        assert torch.equal(one[k].sort(dim=0).values, shuffled[k].sort(dim=0).values)
        assert torch.equal(one[k].sort(dim=1).values, exchanged[k].sort(dim=1).values)
    assert not torch.equal(one[1], shuffled[1])
    assert (one[0] == one[0][0]).all()
    assert not (exchanged[0] == exchanged[0][0]).all()
    b = torch.tensor(small.b, dtype=torch.float64)
    noise = one[1] - b[(one[0] == 0.5).long()]
    assert (many[1] - b[(many[0] == 0.5).long()] - noise).abs().max() <= 1e-14


def test_limits_lie_at_the_roots(rows):
    last = rows[Mixtures][rows[Mixtures]["n"] == 400]
    kept = rows[Mixtures].query("n < 400").groupby(["feed", "n"])["replicate"].agg(list)
    assert kept.map(lambda each: each == [*range(5)]).all()
    assert last.groupby("feed")["replicate"].agg(list).map(lambda each: each == [*range(60)]).all()
    for feed, root in (("one", "root"), ("shuffled", "root"), ("many", "annealed"), ("exchanged", "annealed")):
        table = last[last["feed"] == feed]
        assert (table["x"] - table[root]).abs().mean() < 0.15
        assert (table["x"] - table[{"root": "annealed", "annealed": "root"}[root]]).abs().mean() > 0.8


def test_early_data_tell_the_late_limit_and_an_ergodic_stream_forgets_them(rows):
    """With chains drawn anew at rate epsilon the chain after a gap g is the one before with probability
    (1 + (1 - epsilon)^g) / 2; the switches within the windows only take from it."""
    share = rows[EarlyData].groupby(["feed", "gap"])["agrees"].mean()
    assert (share["one"] > 0.98).all()
    assert (abs(share["many"] - 0.5) < 0.1).all()
    for gap in (200, 2000, 20_000):
        kept = (1 + 0.999**gap) / 2
        assert kept - 0.2 < share["switching", gap] < kept + 0.1
    assert share["switching", 200] > share["switching", 20_000] + 0.15


def test_neighbours_are_those_of_the_chain_that_is_heard():
    """Slow twin of the chains: walk over the steps; and the share of equal neighbours of each."""
    kept, last = EarlyData().neighbours(torch.tensor([0, 1]).repeat(500), 400, 0.0, stream(0, "kept"))
    assert abs(kept[:, 0::2].mean() - 0.8) <= 4 * (0.16 / 2e5) ** 0.5
    assert abs(kept[:, 1::2].mean() - 0.5) <= 4 * (0.25 / 2e5) ** 0.5
    assert torch.equal(last, torch.tensor([0, 1]).repeat(500))
    _, last = EarlyData().neighbours(torch.zeros(2000, dtype=torch.long), 300, 0.01, stream(0, "switch"))
    switched = (1 - 0.99**300) / 2
    assert abs(last.double().mean() - switched) <= 4 * (switched / 2000) ** 0.5
    _, last = EarlyData().neighbours(torch.zeros(2000, dtype=torch.long), 1, 1.0, stream(0, "first"))
    assert abs(last.double().mean() - 0.5) <= 4 * (0.25 / 2000) ** 0.5  # the very first step may be drawn


def test_log_odds_grow_at_the_rate_of_the_chain_that_speaks():
    """The two rates differ by a seventh: exchanged, they are refused."""
    facts = {"seed": 0, "device": torch.device("cpu"), "dtype": torch.float64}
    table = LogOdds(replicas=800, steps=400).run({}, **facts)
    for _, case in table.groupby("component"):
        error = case["ratio"].std() / len(case) ** 0.5
        assert abs(case["ratio"].mean() - 1) <= 4 * error
        other = (set(table["kl"]) - set(case["kl"])).pop()
        assert abs((case["rate"] / other).mean() - 1) > 4 * error


def test_the_measure_of_shares_on_a_table_with_a_known_answer():
    table = pd.DataFrame({"component": [0] * 30 + [1] * 70, "predicted": [0.4] * 30 + [0.6] * 70})
    assert abs(abs(frequencies(table).value) - 0.1) <= 1e-12
    assert frequencies(table).low < frequencies(table).value < frequencies(table).high


def test_a_replica_without_class_or_probability_is_not_passed_over():
    table = pd.DataFrame({"component": [0.0] * 30 + [1.0] * 70, "predicted": [0.3] * 30 + [0.7] * 70})
    for column in table:
        for row in (0, 50, 99):
            with pytest.raises(ValueError, match="1 of 100 rows"):
                frequencies(table.assign(**{column: table[column].drop(row)}))


def test_at_most_45_claims_and_each_id_of_the_dossier():
    assert len(CLAIMS) <= 45
    assert {claim.id.split(".")[0] for claim in CLAIMS} == {f"SA-{k}" for k in range(1, 14)}
    assert len([claim for claim in CLAIMS if claim.plain]) <= 8


def test_a_missing_number_decides_nothing(rows, undecided_without):
    read = undecided_without(rows)
    assert all(read.values()), read
