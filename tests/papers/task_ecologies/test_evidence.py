"""What evidence establishes: the finite-class bound, and printed tables against each other."""

import math

import numpy as np
import pytest

from derived.lab.rng import stream
from derived.papers.task_ecologies import set_partitions
from derived.papers.task_ecologies.data.ecologies import random_ecology
from derived.papers.task_ecologies.data.published import DISTANCES, FIVE, LANGUAGES, PAIRS, PATHS
from derived.papers.task_ecologies.evidence import CLAIMS, Certification, Published, entropy
from derived.papers.task_ecologies.model.certification import sample_losses, sample_size

EXPERIMENTS = (Certification, Published)


def test_the_sample_size_is_enough_by_the_proof():
    """`te-certify`: at the theorem's n Hoeffding's radii leave the free code ahead of every other, for any prior."""
    generator = np.random.default_rng(0)
    for _ in range(50):
        excess = np.concatenate([[0.0, 0.0], generator.uniform(0.05, 1.0, 4)])
        rho, alpha, C = generator.dirichlet(np.ones(6)), generator.uniform(0.01, 0.3), generator.uniform(1.0, 5.0)
        eps = generator.uniform(0, 0.9) * excess[2:].min()
        n = sample_size(excess, C, alpha, prior=rho, optimisation=eps)
        radius = C * np.sqrt((np.log(1 / rho) + math.log(2 / alpha)) / (2 * n))
        free = excess < 1e-12
        assert (excess - radius)[~free].min() >= radius[free].min() + eps - 1e-12
        assert 2 * np.exp(-2 * n * radius**2 / C**2).sum() <= alpha * (1 + 1e-12)  # union of two-sided tails
        uniform = sample_size(excess, C, alpha, optimisation=eps)  # Corollary 37: M codes
        gamma = excess[2:].min()
        assert abs(uniform / (2 * C**2 / (gamma - eps) ** 2 * math.log(2 * 6 / alpha)) - 1) <= 1e-12


def test_sample_losses_average_to_the_loss():
    e = random_ecology(3, 2, 3, stream(0, "losses"), sparse=0.3)
    codes = set_partitions(3)
    losses, weights = sample_losses(e, codes)
    assert abs(weights.sum() - 1) <= 1e-14
    assert np.abs(losses @ weights - [e.bayes_loss(labels) for labels in codes]).max() <= 1e-14
    assert np.isfinite(losses).all()


def test_failures_fall_long_before_the_bound(rows):
    shares = rows[Certification].groupby("n")["failed"].mean()
    assert shares.is_monotonic_decreasing
    assert shares.iloc[0] > 0.2 > 0.05 > shares.iloc[2] >= shares.iloc[-1] == 0
    assert rows[Certification]["needed"].iloc[0] > 50 * 1000
    one = rows[Certification].iloc[0]
    corollary = 2 * (one["ceiling"] / one["gamma"]) ** 2 * math.log(2 * len(set_partitions(3)) / 0.05)
    assert one["needed"] == pytest.approx(corollary)
    assert rows[Certification].query("asked")["n"].unique().tolist() == [math.ceil(corollary)]


def test_printed_numbers_are_of_seven_languages():
    for corpus, pairs in PAIRS.items():
        assert {name for pair in pairs for name in (pair.first, pair.second)} <= set(LANGUAGES)
        steps = PATHS[corpus]
        assert all(len(step.labels) == 7 for step in steps)
        assert [step.beta for step in steps] == sorted(step.beta for step in steps)
    assert all(len(each.upper) == math.comb(len(FIVE), 2) for each in DISTANCES)
    assert abs(entropy((1, 2, 3, 4, 5, 6, 7)) - math.log(7)) <= 1e-15
    assert abs(entropy((1, 2, 3, 4, 5, 6, 5)) - 1.7478680975) <= 1e-10  # printed with the path


def test_six_pairs_apart_and_two_cells(rows):
    """Equality up to a threshold is not transitive: most pairs are apart, and most languages share a cell."""
    table = rows[Published]
    case = table[table["case"] == "manifesto, 5 languages, cells"].iloc[0]
    assert (case["separated"], case["cells"]) == (6, 2)


def test_what_a_sample_size_refuses():
    for arguments, words in (
        (([0.0, 0.0], 1.0, 0.05), "codes without excess and codes with one"),
        (([0.1, 0.2], 1.0, 0.05), "codes without excess and codes with one"),
        (([0.0, 0.2], 0.0, 0.05), "ceiling = 0"),
        (([0.0, 0.2], 1.0, 1.0), "alpha = 1"),
    ):
        with pytest.raises(ValueError, match=words):
            sample_size(*arguments)
    with pytest.raises(ValueError, match=r"optimisation = 0\.3; give less than the least positive excess, 0.2"):
        sample_size([0.0, 0.2], 1.0, 0.05, optimisation=0.3)
    with pytest.raises(ValueError, match="prior"):
        sample_size([0.0, 0.2], 1.0, 0.05, prior=[1.0, 0.0])


def test_the_claims_of_the_topic(rows, expected):
    for claim in (each for each in CLAIMS if each.experiment):
        verdict, _ = claim.judge(claim.measure(rows[claim.experiment]))
        assert verdict == expected[claim.id], claim.id
    spoilt = {
        "TE-12.a": (Certification, {"failed": True}),
        "TE-14.a": (Published, {"gap": 1e-5}),
        "TE-14.b": (Published, {"gap": 1.0}),
    }
    for claim in (each for each in CLAIMS if each.id in spoilt):
        experiment, wrong = spoilt[claim.id]
        assert claim.judge(claim.measure(rows[experiment].assign(**wrong)))[0] == "fails", claim.id


def test_a_missing_number_decides_nothing(rows, lacks):
    lacks(CLAIMS, "TE-12.a", rows[Certification], "failed", "asked")
