"""Fixed networks as codes, and trained networks with an imposed code."""

import numpy as np
import pytest
import torch

from derived.lab.nets import Draws
from derived.lab.rng import stream
from derived.papers.task_ecologies import imposed as figures
from derived.papers.task_ecologies.data.ecologies import random_ecology
from derived.papers.task_ecologies.imposed import CLAIMS, Frozen, Imposed, without_context
from derived.papers.task_ecologies.model.ecology import FiniteEcology
from derived.papers.task_ecologies.model.gpt import GPTSize, MicroGPT
from derived.papers.task_ecologies.model.partitions import set_partitions

EXPERIMENTS = (Frozen, Imposed)


def outputs(model: MicroGPT, contexts: torch.Tensor, shown: torch.Tensor) -> torch.Tensor:
    """Laws after context and observation: (models, contexts, V)."""
    ids = torch.cat([contexts, shown.expand(len(contexts), -1)], dim=1)
    return model(ids)[:, :, -1].softmax(dim=-1).detach()


@pytest.mark.parametrize("experts", [0, 3])
def test_a_fixed_network_merges_what_shows_the_same_text_whatever_the_prompt(experts):
    """`te-frozen`: dense, with experts, in context: one function of its input; adapted weights are another."""
    model = MicroGPT(GPTSize(experts=experts), Draws(num_networks=2, dtype=torch.float64))
    draw = stream(0, "prompts")
    shown = torch.randint(26, (1, 4), generator=draw)
    for prompt in (0, 1, 7, 20):
        contexts = torch.randint(26, (3, prompt), generator=draw)
        first, second = (outputs(model, contexts, shown) for _ in range(2))
        assert torch.allclose(first, second, rtol=0, atol=1e-12)
    other = (shown + 1) % 26
    assert not torch.allclose(first, outputs(model, contexts, other), rtol=0, atol=1e-3)
    with torch.no_grad():  # the weights of another task
        model.weights["output"][:, 3] += 0.1
    assert not torch.allclose(first, outputs(model, contexts, shown), rtol=0, atol=1e-3)


def test_a_random_output_layer_separates_what_the_last_state_separates():
    """`te-generic`: softmax(W h) = softmax(W h') iff W (h - h') is constant, which random W never makes."""
    draw = stream(0, "generic")
    h, other = torch.randn(2, 200, 6, generator=draw, dtype=torch.float64)
    for i in range(200):
        W = torch.randn(5, 6, generator=draw, dtype=torch.float64)
        near = h[i] + 1e-6 * other[i]
        assert not torch.equal((W @ h[i]).softmax(dim=0), (W @ near).softmax(dim=0))
        constant = torch.ones(5, 1, dtype=torch.float64) * W[0]  # the exception: equal rows
        assert torch.allclose((constant @ h[i]).softmax(dim=0), (constant @ other[i]).softmax(dim=0), atol=1e-15)


def information(ecology: FiniteEcology, code) -> float:
    """I(Y; C | X) from the joint table, by hand."""
    joint = np.zeros((max(code) + 1, *ecology.laws.shape[1:]))  # cell, context, token
    for w, x in enumerate(code):
        joint[x] += ecology.prior[w] * ecology.contexts[:, None] * ecology.laws[w]
    H = lambda table: -(table[table > 0] * np.log(table[table > 0])).sum()  # noqa: E731
    return H(joint.sum(axis=1)) - H(joint.sum(axis=(1, 2))) - H(joint) + H(joint.sum(axis=2))


def test_a_reader_that_cannot_see_the_context_pays_the_information_that_it_misses():
    """`te-gap`: L^Q = floor + excess + Gamma, here with Gamma = I(Y; C | X); it is zero for a reader who sees all."""
    for seed in range(5):
        ecology = random_ecology(4, 3, 5, stream(seed, "ecology"))
        for code in set_partitions(4):
            gap = without_context(ecology).bayes_loss(code) - ecology.bayes_loss(code)
            assert gap == pytest.approx(information(ecology, code), abs=1e-13)
            assert gap > 1e-4
            assert ecology.loss(code, ecology.decoder(code)) == pytest.approx(ecology.bayes_loss(code), abs=1e-13)


def test_the_table_of_each_arm_has_its_optimum():
    """What a network is trained on: the entropy of the token given all that it sees is ``reach``."""
    ecology, experiment = random_ecology(4, 3, 5, stream(0, "ecology")), Imposed()
    for code in [(0, 0, 1, 2), (0, 1, 0, 1)]:
        for arm, least in (("imposed", ecology.bayes_loss(code)), ("scrambled", ecology.bayes_loss((0, 0, 0, 0)))):
            table = experiment.table(ecology, code, arm)  # context, cell, token
            assert table.sum() == pytest.approx(1)
            mass = table.sum(axis=-1, keepdims=True)
            law = np.divide(table, mass, out=np.ones_like(table), where=mass > 0)
            assert -(table * np.log(law)).sum() == pytest.approx(least, abs=1e-13)
        imposed, scrambled = (experiment.table(ecology, code, arm) for arm in ("imposed", "scrambled"))
        assert imposed.sum(axis=(0, 2)) == pytest.approx(scrambled.sum(axis=(0, 2)))  # the same masses of cells


def test_rows_of_fixed_networks(rows):
    found = rows[Frozen]
    assert len(found) == 5 * 2 * 6
    distinct = found[found["observed"] == "distinct"]
    assert (distinct["l1"] > 0.01).all()
    assert (distinct["code_excess"].abs() < 1e-15).all()
    assert (distinct["own_excess"] > 0.1).all()  # no excess of the code, yet far above the floor
    same = found[(found["observed"] == "same") & (found["network"] != "adapted")]
    assert (same["l1"] < 1e-12).all()
    assert (same["code_excess"] > 0.01).all()
    assert (found[found["network"] == "adapted"]["l1"] > 1e-3).all()


def test_trained_networks_reach_what_their_reader_allows_and_no_less(rows):
    found = rows[Imposed]
    assert len(found) == 3 * 5
    assert (found["loss"] - found["reach"]).abs().max() < 2e-3
    assert (found["loss"] - found["reach"]).min() > -1e-12  # no network undercuts the least loss
    scrambled = found[found["arm"] == "scrambled"]
    assert scrambled["reach"].to_numpy() == pytest.approx(scrambled["one_cell"].to_numpy())
    assert (scrambled["loss"] - scrambled["target"]).max() > 0.01
    assert (found[found["arm"] == "blind"]["loss"] > found[found["arm"] == "blind"]["target"] + 1e-4).all()


def test_claims_are_judged_as_expected_and_can_fail(rows, expected):
    for claim in CLAIMS:
        assert claim.judge(claim.measure(rows[claim.experiment]))[0] == expected[claim.id], claim.id
    frozen, imposed = rows[Frozen].copy(), rows[Imposed].copy()
    frozen.loc[frozen["observed"] == "same", "l1"] += 1e-3  # a fixed network that separates equal texts
    imposed["loss"] += 0.01
    for claim in CLAIMS:
        if claim.id in ("TE-13.c", "TE-13.d", "TE-13.e"):
            table = frozen if claim.experiment is Frozen else imposed
            assert claim.judge(claim.measure(table))[0] == "fails", claim.id


def test_figures_say_in_words_what_they_show(rows, tells):
    tells(figures.trained_against_optimum(rows[Imposed]), "15 networks lie on the diagonal", "a random cell")
    tells(figures.separations(rows[Frozen]), "dense, same text from 0 to 0")
