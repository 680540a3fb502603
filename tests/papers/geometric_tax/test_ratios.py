"""Numbers with a ratio inside: quantisers, critics in and out of sample, windows, and counts of words."""

import itertools
import math
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from here import needs
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cosine

from derived.lab.experiment import run_experiment
from derived.lab.nets import Draws
from derived.lab.real import models
from derived.lab.rng import stream
from derived.papers.geometric_tax import (
    kmer_counts,
    mine,
    procrustes_distortion,
    ratios,
    rdm_similarity,
    reverse_complement,
)
from derived.papers.geometric_tax.model.information import Critic, donsker_varadhan, standardise
from derived.papers.geometric_tax.ratios import AntibodyWalks, EqualBins, Mine, channel_information

EXPERIMENTS = (Mine, EqualBins)
CLAIMS = {claim.id: claim for claim in ratios.CLAIMS}
examples = settings(derandomize=True, max_examples=40, deadline=None, database=None)


def test_the_least_error_of_equal_bins_is_a_power_and_no_curve_in_one_over_a_logarithm(rows):
    table = rows[EqualBins]
    assert (table["error"] * 12 * table["K"] ** 2 - 1).abs().max() <= 1e-3
    assert (table["gap"].iloc[:2] <= 1e-15).all()
    claim = CLAIMS["GT-6.a"]
    assert claim.judge(claim.measure(table))[0] == "fails"
    fitting = table.assign(error=0.02 / np.log(table["K"]), gap=0.0)
    assert claim.judge(claim.measure(fitting))[0] == "undecided"


# A critic -------------------------------------------------------------------------------------------------------------


@examples
@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 9))
def test_a_critic_falls_short_by_a_divergence(i, j, seed):
    """`gt-insample`, its first display: exactly KL(P || G), for tables of any shape; the best critic has no gap."""
    g = stream(seed, "table", i, j)
    p = torch.rand(i, j, generator=g, dtype=torch.float64) + 1e-3
    p = p / p.sum()
    q = p.sum(dim=1, keepdim=True) * p.sum(dim=0, keepdim=True)
    phi = torch.randn(i, j, generator=g, dtype=torch.float64)
    value = (p * phi).sum() - (q * phi.exp()).sum().log()
    tilted = q * phi.exp() / (q * phi.exp()).sum()
    short = (p * (p / q).log()).sum() - value
    assert abs(short - (p * (p / tilted).log()).sum()) <= 1e-12
    assert short >= -1e-12


def test_the_estimator_is_the_formula_for_samples():
    joint, product = torch.tensor([0.5, 1.5]).double(), torch.tensor([[0.0, 2.0, 3.0]]).double()
    slow = 1.0 - math.log((1 + math.e**2 + math.e**3) / 3)
    assert abs(donsker_varadhan(joint.expand(1, 2), product).item() - slow) <= 1e-12
    large = torch.full((2,), 900.0, dtype=torch.float64)  # its exponential overflows
    assert abs(donsker_varadhan(large, large)) <= 1e-12


@pytest.mark.parametrize("N", [2, 7, 400])
def test_a_free_critic_on_its_own_pairs(N):
    """`gt-insample`: ln N if the own pairs are among the N^2, and no end if they are not."""
    for height in (50.0, 700.0):
        own = torch.full((N,), height, dtype=torch.float64)
        table = height * torch.eye(N, dtype=torch.float64)
        among = donsker_varadhan(own, table.flatten())
        assert abs(among - math.log(N)) <= 1e-9
        shuffled = donsker_varadhan(own, torch.zeros(N, dtype=torch.float64))
        assert abs(shuffled - height) <= 1e-9
    random = torch.randn(N, N, generator=stream(0, "critic", N), dtype=torch.float64)
    assert donsker_varadhan(random.diagonal(), random.flatten()) <= math.log(N) + 1e-12


def test_known_informations():
    A = torch.tensor([[[2.0, 0.0]]])  # one coordinate through a channel of gain 2: rho^2 = 4 / (4 + 9)
    assert abs(channel_information(A, 3.0).item() + 0.5 * math.log(1 - 4 / 13)) <= 1e-12


def test_a_critic_in_a_batch_is_the_critic_alone():
    x, y = torch.randn(3, 10, 4, generator=stream(0, "x")), torch.randn(3, 10, 2, generator=stream(0, "y"))
    many = Critic(6, hidden=(5, 4), dropout=0.0, draws=Draws(num_networks=3, layer="critic"))
    scores = many(x, y)
    for r in range(3):
        h = torch.cat([x[r], y[r]], dim=-1)
        h = torch.relu(h @ many.W1[r].T + many.b1[r])
        h = torch.relu(h @ many.W2[r].T + many.b2[r])
        assert ((h @ many.W3[r].T + many.b3[r]).squeeze(dim=-1) - scores[r]).abs().max() <= 1e-6
    drop = Critic(6, hidden=(5, 4), dropout=0.5, draws=Draws(num_networks=3, layer="critic"))
    assert torch.equal(drop(x, y), many(x, y))
    assert not torch.equal(drop(x, y, stream(0, "drop")), many(x, y))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_columns_are_standardised_with_gradients_that_are_numbers(dtype):
    """A constant column becomes zero, and takes no gradient."""
    assert not standardise(torch.full((1, 7, 1), 0.1, dtype=dtype)).any()  # of which a mean is rounded
    x = torch.tensor([[[1.0, 5.0], [3.0, 5.0]]], dtype=dtype, requires_grad=True)
    found = standardise(x)
    assert found.tolist() == [[[-1.0, 0.0], [1.0, 0.0]]]
    (slope,) = torch.autograd.grad((found**3 + found).sum(), x)
    assert slope.isfinite().all()
    assert slope[..., 1].abs().max() == 0


def test_held_out_pairs_are_no_training_pairs():
    """A critic that could memorise everything: in-sample it soars on independent data, held out it does not."""
    x, y = (torch.randn(2, 128, 8, generator=stream(0, name)) for name in "xy")
    found = mine(x, y, epochs=150, batch=32, rate=5e-3, hidden=(64, 32), dropout=0.0)
    assert found.in_sample.min() > 1.0
    assert found.held_out.max() < 0.05
    same = mine(x, x + 0.1 * y, epochs=60, batch=32, rate=5e-3, hidden=(64, 32), dropout=0.0)
    assert same.held_out.min() > 0.5  # the control can pass
    assert found.course.shape == (2, 150 * 2)


@pytest.mark.parametrize(
    ("shapes", "facts", "words"),
    [
        (((1, 20, 2), (1, 19, 2)), {}, r"Y has the shape \(1, 19, 2\) beside X \(1, 20, 2\)"),
        (((1, 12, 2), (1, 12, 2)), {}, "at least eight"),
        (((1, 40, 2), (1, 40, 2)), {"holdout": 1.0}, "holdout = 1"),
        (((1, 40, 2), (1, 40, 2)), {"epochs": 0}, "epochs = 0"),
    ],
)
def test_mine_refuses(shapes, facts, words):
    with pytest.raises(ValueError, match=words):
        mine(*(torch.zeros(shape) for shape in shapes), **facts)


def test_rows_of_critics_are_whole(rows):
    table = rows[Mine]
    assert set(table["case"]) == {"isotropic", "curve", "dependent"}
    assert (table.loc[table["case"] == "dependent", "truth"] > 1).all()
    assert np.isfinite(table[["in_sample", "held_out"]]).all(axis=None)


# Windows --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("L", [16, 400])
def test_a_letter_in_a_long_window(L):
    """`gt-dilution`: SciPy's cosine distance of the means of L states, one of them drawn again, and the formula."""
    for replicate in range(20):
        g = stream(0, "window", L, replicate)
        states = 1 + torch.randn(L, 6, generator=g, dtype=torch.float64)
        other = states.clone()
        other[3] = 1 + torch.randn(6, generator=g, dtype=torch.float64)
        mu, delta = states.mean(dim=0), other[3] - states[3]
        q = (delta.norm() / mu.norm()).item()
        if q <= L / 4:
            across = delta - (delta @ mu) / (mu @ mu) * mu
            law = (across @ across / (2 * mu @ mu) / L**2).item()
            assert abs(cosine(mu.numpy(), other.mean(dim=0).numpy()) / law - 1) <= 5 * q / L + 1e-9
            assert (other.mean(dim=0) - mu).norm().item() == pytest.approx(delta.norm().item() / L)


@needs("sapiens", "anarci")
def test_walks_change_one_residue_a_step_and_replicates_differ():
    size = AntibodyWalks.at("tiny")
    path = size.walk("EVQL", torch.Generator().manual_seed(0))
    assert [sum(a != b for a, b in zip(*pair, strict=True)) for pair in pairwise(path)] == [1, 1]
    table = run_experiment(size, seed=0, device="cpu")
    assert table.groupby(["encoder", "L"])["cosine"].nunique().eq(size.genes).all()


def test_the_cosine_step_of_states_at_right_angles_is_one(monkeypatch):
    """A reader in which each residue has its own direction: the window of one residue turns by a right angle at
    every step, that of four by less. A gene that is shorter than a window is not read."""

    def read(tokens):
        return SimpleNamespace(last_hidden_state=torch.nn.functional.one_hot(tokens, 128).float())

    def tokens(text):
        return torch.tensor([[0, *map(ord, text), 0]])

    body = SimpleNamespace(base_model=read)
    body.to = lambda device: body
    monkeypatch.setattr(models, "load", lambda name: SimpleNamespace(model=body, tokens=tokens))
    monkeypatch.setattr(ratios, "antibody_genes", lambda *_: {"short": "EVQ", "long": "EVQLVE", "four": "QLES"})
    size = AntibodyWalks(genes=3, steps=5, windows=(1, 4))
    table = size.run({"encoder": "heavy"}, seed=0, device="cpu", dtype=torch.float32)
    assert {*table["gene"]} == {"long", "four"}
    assert table.query("L == 1")["cosine"].tolist() == pytest.approx([1, 1])
    assert table.query("L == 4")["cosine"].between(0.01, 0.6).all()
    assert table.index.tolist() == [0, 1, 2, 3]


def walks(power):
    """Steps that fall with a power of the window, the same in all encoders."""
    keys = [
        (name, L, gene) for name in ("heavy", "light", "heavy, untrained") for L in (2, 6, 48, 96) for gene in "abcd"
    ]
    table = pd.DataFrame(keys, columns=["encoder", "L", "gene"])
    return table.assign(cosine=table["L"] ** -float(power), recorded=True, tier="cpu")


def test_a_long_window_is_that_of_the_law_and_two_residues_do_not_count():
    table = walks(2)
    odd = table.assign(cosine=table["cosine"].mask(table["L"] == 2, 1e9))
    assert ratios.long_window(odd).value == pytest.approx(16**2)
    slow = table.assign(cosine=table["cosine"].where(table["encoder"] != "light", table["L"] ** -1.0))
    assert ratios.long_window(slow).value == pytest.approx(16)
    claim = CLAIMS["GT-10.e"]
    assert claim.judge(claim.control(table))[0] in ("fails", "undecided")
    assert claim.control(table).value == pytest.approx(1)
    assert ratios.differ(table) == pytest.approx(1)


# Counts of words ------------------------------------------------------------------------------------------------------


def opposite(k):
    """For each word of k letters the place of its reverse complement, by spelling."""
    words = ["".join(word) for word in itertools.product("ACGT", repeat=k)]
    return torch.tensor([words.index(word[::-1].translate(str.maketrans("ACGT", "TGCA"))) for word in words])


@pytest.mark.parametrize(("k", "L"), [(1, 30), (2, 31), (3, 200)])
def test_the_other_strand_permutes_the_counts(k, L):
    """`gt-rc`: word by word in plain Python, on both strands; the cloud goes into itself by a permutation."""
    g = torch.randint(4, (30, L), generator=stream(0, "letters", k), dtype=torch.uint8)
    here, there, P = kmer_counts(g, k), kmer_counts(reverse_complement(g), k), opposite(k)
    text = "".join("ACGT"[letter] for letter in g[0].tolist())
    other = text[::-1].translate(str.maketrans("ACGT", "TGCA"))
    for word, at in (("".join("ACGT"[w // 4**j % 4] for j in reversed(range(k))), w) for w in range(4**k)):
        for strand, counts in ((text, here), (other, there)):
            assert counts[0, at] == sum(strand.startswith(word, place) for place in range(L - k + 1))
    assert torch.equal(there, here[:, P])
    assert torch.equal(P[P], torch.arange(4**k))
    assert procrustes_distortion(here, there) < 1e-7
    assert rdm_similarity(here + 1, there + 1).item() == pytest.approx(1, abs=1e-9)
    assert procrustes_distortion(here, kmer_counts(g.flip(0), k)) > 0.1


def test_letters_that_are_not_known_do_not_count_and_short_sequences_are_refused():
    g = torch.tensor([[0, 1, 4, 1, 0]], dtype=torch.uint8)
    assert kmer_counts(g, 2).sum() == 2
    assert reverse_complement(g).tolist() == [[3, 2, 4, 2, 3]]
    with pytest.raises(ValueError, match="sequences of 5 letters; give at least k = 6"):
        kmer_counts(g, 6)
