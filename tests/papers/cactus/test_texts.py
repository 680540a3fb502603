"""Topic texts: whole texts by enumeration, their rows and claims, and the speed of blocks."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from derived.lab.rng import stream
from derived.papers.cactus.claims.texts import CLAIMS
from derived.papers.cactus.experiments.texts import Blocks
from derived.papers.cactus.figures import texts as figures
from derived.papers.cactus.model.divergences import divergence
from derived.papers.cactus.model.exact import (
    acceptance_rate,
    markov_laws,
    output_law,
    reach_probabilities,
    sequence_law,
)
from derived.papers.cactus.model.rules import Cactus, SpS
from derived.papers.cactus.model.theory import emitted_kl_bound, expected_accepted, text_kl_bound

EXPERIMENTS = (Blocks,)
SMALL = {Blocks: {"replicates": 2, "tokens": 3}}
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


def test_claims_get_the_expected_verdict_from_small_rows(rows):
    for claim in CLAIMS:
        verdict, _ = claim.judge(claim.measure(rows[claim.experiment]))
        assert verdict == claim.expected["ci"], claim.id


@pytest.mark.parametrize("best", [2.0, 3.0])
def test_speed(tells, grid, best):
    rows = grid(alpha=(0.8, 0.9), m=(1, 2, 3))
    rows = rows.assign(tokens=1 + rows["m"], speedup=np.where(rows["m"] == 2, best, 1.0))
    tells(figures.speed(rows), f"{best:.2f} at m = 2 for 0.8")
