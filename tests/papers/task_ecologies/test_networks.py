"""Fixed networks as codes, trained networks with an imposed code, and what hidden states keep."""

import numpy as np
import pandas as pd
import pytest
import torch

from derived.lab.nets import Draws
from derived.lab.rng import stream
from derived.papers.task_ecologies.data.ecologies import random_ecology
from derived.papers.task_ecologies.model.ecology import FiniteEcology
from derived.papers.task_ecologies.model.gpt import GPTSize, MicroGPT
from derived.papers.task_ecologies.model.partitions import set_partitions
from derived.papers.task_ecologies.networks import CLAIMS, CLASSES, Imposed, Quotient, alike, without_context

EXPERIMENTS = (Imposed, Quotient)


def outputs(model: MicroGPT, contexts: torch.Tensor, shown: torch.Tensor) -> torch.Tensor:
    """Distributions after context and observation: (models, contexts, V)."""
    ids = torch.cat([contexts, shown.expand(len(contexts), -1)], dim=1)
    return model(ids)[:, :, -1].softmax(dim=-1).detach()


def test_a_fixed_network_merges_what_shows_the_same_text_whatever_the_prompt():
    """`te-network`: one function of its input in any context; adapted weights are another."""
    model = MicroGPT(GPTSize(), Draws(num_networks=2, dtype=torch.float64))
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
    """`te-network`: softmax(W h) = softmax(W h') iff W (h - h') is constant, which random W never makes."""
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
    """`te-network`: the gap of a blind reader is I(Y; C | X); that of one who sees all is zero."""
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


def test_trained_networks_reach_what_their_reader_allows_and_no_less(rows):
    found = rows[Imposed]
    assert len(found) == 3 * 5
    assert (found["loss"] - found["reach"]).abs().max() < 2e-3
    assert (found["loss"] - found["reach"]).min() > -1e-12  # no network undercuts the least loss
    scrambled = found[found["arm"] == "scrambled"]
    assert scrambled["reach"].to_numpy() == pytest.approx(scrambled["one_cell"].to_numpy())
    assert (scrambled["loss"] - scrambled["target"]).max() > 0.01
    assert (found[found["arm"] == "blind"]["loss"] > found[found["arm"] == "blind"]["target"] + 1e-4).all()


def test_hidden_states_are_compared_within_and_between_classes_in_each_context():
    """By loops over pairs; points of one class that coincide give zero."""
    points = torch.randn(2, 3, 6, 4, generator=stream(0, "points"), dtype=torch.float64)
    for k in range(2):
        ratios = []
        for c in range(3):
            apart = {True: [], False: []}
            for i in range(6):
                for j in range(i):
                    apart[CLASSES[i] == CLASSES[j]].append(float((points[k, c, i] - points[k, c, j]).norm()))
            ratios.append(np.mean(apart[True]) / np.mean(apart[False]))
        assert alike(points)[k].item() == pytest.approx(np.mean(ratios))
    assert alike(points[:, :, list(CLASSES)]).abs().max() < 1e-6


def test_rows_of_the_quotient(rows):
    """Worlds of one class have like outputs at the end, not at the start; six distributions stay apart."""
    table = rows[Quotient]
    assert len(table) == 2 * 2 * 2 * 2
    start = table[table["at"] == "start"].set_index(["arm", "decay", "replicate"])
    assert (start.xs(0.0, level="decay")["states"] == start.xs(0.1, level="decay")["states"]).all()
    end = table[table["at"] == "end"].groupby("arm")
    assert (end["outputs"].max()["classes"]) < 0.6 < end["outputs"].min()["all different"]
    assert (table["excess"] > 0).all()
    assert (table[table["at"] == "end"]["excess"] < table[table["at"] == "start"]["excess"].min()).all()


def test_decay_is_compared_network_by_network():
    rows = pd.DataFrame(
        [
            {"arm": arm, "decay": d, "replicate": r, "at": "end", "states": 0.5 * (1 + r) * np.exp(-by * (d > 0))}
            for arm, by in (("classes", 0.2), ("all different", 0.0))
            for d in (0.0, 0.1)
            for r in range(4)
        ]
    )
    claim = next(each for each in CLAIMS if each.id == "TE-13.f")
    assert claim.measure(rows).value == pytest.approx(-0.2)
    assert claim.judge(claim.measure(rows))[0] == "holds"
    assert claim.comparison[1](rows).value == pytest.approx(0)


def test_an_imposed_code_is_judged_and_can_fail(rows, expected):
    claim = next(each for each in CLAIMS if each.id == "TE-13.d")
    assert claim.judge(claim.measure(rows[Imposed]))[0] == expected[claim.id]
    assert claim.judge(claim.measure(rows[Imposed].assign(loss=rows[Imposed]["loss"] + 0.01)))[0] == "fails"
