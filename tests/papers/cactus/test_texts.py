"""Topic texts: whole texts by enumeration, their rows and claims, and the speed of blocks."""

import dataclasses
from itertools import pairwise, product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from derived.lab.rng import stream
from derived.papers.cactus import texts, witness
from derived.papers.cactus.data.chains import zipf_chains
from derived.papers.cactus.model.divergences import divergence
from derived.papers.cactus.model.exact import (
    acceptance_rate,
    markov_laws,
    output_law,
    reach_probabilities,
    sequence_law,
)
from derived.papers.cactus.model.generate import next_laws
from derived.papers.cactus.model.rules import Cactus, SpS
from derived.papers.cactus.model.theory import emitted_kl_bound, expected_accepted, text_kl_bound
from derived.papers.cactus.texts import SHAPES, MarkovPairs

EXPERIMENTS = (MarkovPairs,)
EXACT = 1e-12  # sums of at most 50 float64 terms of size at most 1, through at most 50 operations each
examples = settings(derandomize=True, max_examples=40, deadline=None, database=None)


def numbers(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def laws(num: int, generator: torch.Generator) -> Tensor:
    """Laws over three tokens, far from uniform, about half of them with a token of probability 0."""
    weights = torch.rand(num, 3, generator=generator, dtype=torch.float64) ** 4
    zero = torch.randint(6, (num, 1), generator=generator)
    weights = torch.where(torch.arange(3) == zero, 0.0, weights)
    return weights / weights.sum(dim=-1, keepdim=True)


@examples
@given(st.integers(1, 4), st.integers(1, 3), st.integers(0, 2**31))
def test_blocks_are_exact(m, num_tokens, seed):
    """`cac-blocks`, CAC-11: with SpS the text has the verifier's own law, whatever m; AL_m is the sum of alpha^i."""
    g = stream(seed, "blocks")
    draft, verifier = ((laws(1, g)[0], laws(3, g)) for _ in "pq")
    found = sequence_law(markov_laws(*draft), markov_laws(*verifier), SpS(), m=m, num_tokens=num_tokens, num_vocab=3)
    assert len(found) == 3**num_tokens
    for text, probability in found.items():
        expected = float(verifier[0][text[0]])
        for x, y in pairwise(text):
            expected *= float(verifier[1][x, y])
        assert abs(probability - expected) <= EXACT
    p, q = draft[0], verifier[0]
    same = [markov_laws(law, law.expand(3, 3)) for law in (p, q)]
    for rule in (SpS(), Cactus(0.2)):
        reached = reach_probabilities(*same, rule, m=m, num_vocab=3)
        rate = acceptance_rate(p, q, rule)
        assert (reached - rate ** torch.arange(1, m + 1)).abs().max() <= EXACT
        assert abs(float(expected_accepted(rate.clamp(max=1.0), m) - reached.sum(dim=0))) <= EXACT


def test_text_divergence_adds_up():
    """`cac-text`: KL of the text <= sum over drafted positions of the expected KL <= T times the explicit bound."""
    g = stream(9, "texts")
    for m in (1, 3):
        draft, verifier = ((laws(1, g)[0], laws(3, g) * 0.9 + 0.1 / 3) for _ in "pq")
        rule, T = Cactus(0.05), 4
        text = sequence_law(markov_laws(*draft), markov_laws(*verifier), rule, m=m, num_tokens=T, num_vocab=3)
        own = sequence_law(markov_laws(*draft), markov_laws(*verifier), SpS(), m=m, num_tokens=T, num_vocab=3)
        keys = [key for key in text if own[key] > 0]
        assert abs(sum(text[key] for key in keys) - 1) <= EXACT
        spent = float(divergence(numbers(*map(text.get, keys)), numbers(*map(own.get, keys))))
        per_place = [divergence(output_law(*laws, rule), laws[1]) for laws in zip(draft, verifier, strict=True)]
        worst = max(float(per_place[0]), float(per_place[1].max()))
        assert 0 < spent <= T * worst
        assert worst <= float(emitted_kl_bound(0.05, 3))
        assert spent <= float(text_kl_bound(0.05, 3, T))
        if m == 3:
            assert spent > 0.05  # the budget of one proposal is no budget for the text


@pytest.mark.parametrize("name", SHAPES)
def test_chains_pay_what_the_enumeration_of_their_texts_pays(name):
    """`cac-text` with every token drafted: the KL of the law of all texts, which begin after a uniform class."""
    small = dataclasses.replace(MarkovPairs.at("ci"), replicates=1, sizes=(6,), classes=2, tokens=4, delta=0.2)
    row = small.run({"V": 6}, seed=3, device="cpu", dtype=torch.float64).set_index("laws").loc[name]
    p, q = (next_laws(each.log(), **SHAPES[name]) for each in zipf_chains(6, 2, stream(3, "zipf", 6, 0)))
    emitted, kept = output_law(p, q, Cactus(0.2)), acceptance_rate(p, q, Cactus(0.2))
    spent = accepted = 0.0
    for begun, *text in product(range(2), *[range(6)] * small.tokens):
        classes = [begun, *(y % 2 for y in text)][:-1]
        own, other = (float(law[classes, text].prod(dim=0)) / 2 for law in (emitted, q))
        spent += own * np.log(own / other) if own else 0.0
        accepted += own * float(kept[classes].mean(dim=0))
    assert abs(row["kl"] * small.tokens - spent) <= EXACT
    assert abs(row["acceptance"] - accepted) <= EXACT
    assert row["kl"] > 0
    assert row["acceptance"] > row["exact_acceptance"]


def test_zipf_chains_have_the_law_of_zipf_in_an_order_of_each_row():
    p, q = zipf_chains(50, 4, stream(6, "zipf"))
    ranked = q.sort(dim=-1, descending=True).values
    assert torch.allclose(ranked[:, :1] / ranked, torch.arange(1.0, 51, dtype=torch.float64).expand(4, -1))
    assert len({tuple(row) for row in q.argsort(dim=-1).tolist()}) == 4
    noise = (p / q).log()
    assert torch.allclose(p.sum(dim=-1), torch.ones(4).double())
    assert abs((noise - noise.mean(dim=-1, keepdim=True)).std().item() - 0.5) < 5 * 0.5 / (2 * 200) ** 0.5


def test_the_paths_of_a_text_add_up_to_its_law_and_see_another_budget():
    """`cac-text`: the enumeration of the page against ``sequence_law``."""
    p, q = (0.9 * laws(4, stream(11, "paths", name)).view(1, 4, 3) + 0.1 / 3 for name in "pq")
    law, _ = witness.law_by_paths(p, q, 0.05, m=2, tokens=3)
    sides = [markov_laws(chain[0, -1], chain[0, :-1]) for chain in (p, q)]
    for delta, alike in ((0.05, True), (0.02, False)):
        other = sequence_law(*sides, Cactus(delta), m=2, num_tokens=3, num_vocab=3)
        assert (max(abs(other[text] - law[text].item()) for text in other) <= EXACT) == alike


@pytest.mark.parametrize("best", [2.0, 3.0])
def test_speed(tells, grid, best):
    rows = grid(alpha=(0.8, 0.9), m=(1, 2, 3))
    rows = rows.assign(tokens=1 + rows["m"], speedup=np.where(rows["m"] == 2, best, 1.0))
    tells(texts.speed(rows), f"{best:.2f} at m = 2 for 0.8")
