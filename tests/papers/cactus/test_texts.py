"""Whole texts by enumeration, against every path of drafts, rejections and bonuses in plain Python."""

import math
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from derived.lab.rng import stream
from derived.papers.cactus import reference
from derived.papers.cactus.model.exact import course, markov_laws
from derived.papers.cactus.model.rules import Cactus
from derived.papers.cactus.model.theory import emitted_kl_bound

EXACT = 1e-12  # sums of at most 50 float64 terms of size at most 1, through at most 50 operations each
examples = settings(derandomize=True, max_examples=25, deadline=None, database=None)
# After a, b and c; the verifier writes a and b, the draft proposes c alone after b.
VERIFIER = [[0.94, 0.06, 0.0], [0.06, 0.94, 0.0], [0.94, 0.06, 0.0]]
DRAFT = [[0.5, 0.5, 0.0], [0.0, 0.0, 1.0], [0.5, 0.5, 0.0]]


def by_paths(draft, verifier, start, delta: float, m: int, tokens: int):
    """Distribution of the texts, expected drafts kept, expected sum of KL; rows of plain lists, by recursion."""
    rule, texts, sums = reference.cactus(delta), {}, {"kept": 0.0, "spent": 0.0}

    def walk(text: tuple[int, ...], place: int, weight: float) -> None:
        if len(text) == tokens or weight == 0:
            texts[text] = texts.get(text, 0.0) + weight
            return
        p, q = (side[text[-1]] if text else side[start] for side in (draft, verifier))
        if place == m:  # the bonus
            for y, w in enumerate(q):
                walk((*text, y), 0, weight * w)
            return
        out, kept = reference.emitted(p, q, rule), [min(w, rule(q, n)) for n, w in enumerate(p)]
        sums["kept"] += weight * sum(kept)
        sums["spent"] += weight * reference.kl([o for o in out], q)
        for y in range(len(q)):
            walk((*text, y), place + 1, weight * kept[y])
            walk((*text, y), 0, weight * max(out[y] - kept[y], 0.0))

    walk((), 0, 1.0)
    return texts, sums["kept"], sums["spent"]


def rows(num: int, generator: torch.Generator) -> list[list[float]]:
    """Distributions over three tokens, none of probability zero."""
    weights = torch.rand(num, 3, generator=generator, dtype=torch.float64) ** 4 + 0.02
    return (weights / weights.sum(dim=-1, keepdim=True)).tolist()


@examples
@given(st.integers(1, 3), st.integers(1, 4), st.sampled_from([0.0, 0.05, 0.7]), st.integers(0, 2**31))
def test_the_course_of_a_text_is_that_of_its_paths(m, num_tokens, delta, seed):
    """`cac-text`: texts, drafts kept and the bill, which is at least the KL of the text."""
    generator = stream(seed, "paths")
    draft, verifier = rows(3, generator), rows(3, generator)
    texts, kept, spent = by_paths(draft, verifier, 0, delta, m, num_tokens)
    chains = [torch.tensor(chain, dtype=torch.float64) for chain in (draft, verifier)]
    found = course(
        *(markov_laws(chain[0], chain) for chain in chains), Cactus(delta), m=m, num_tokens=num_tokens, num_vocab=3
    )
    assert max(abs(found.law[text] - texts.get(text, 0.0)) for text in found.law) <= EXACT
    assert (found.kept, found.spent) == pytest.approx((kept, spent), abs=1e-9)
    own = {
        text: math.prod(verifier[a][b] for a, b in pairwise((0, *text))) for text in texts
    }  # what the verifier writes
    apart = sum(w * math.log(w / own[text]) for text, w in texts.items() if w > 0)
    assert apart <= spent + EXACT
    assert (apart > 1e-6) == (delta > 0)


@pytest.mark.parametrize(
    ("start", "T", "gain", "far"),
    [(0, 2, 0.1828, 0.3507), (0, 4, 0.0919, 0.4955), (0, 8, -0.3617, 0.5612), (1, 8, 0.0216, 0.1704)],
)
def test_over_a_text_the_gain_may_turn(start, T, gain, far):
    """Texts that begin after a, or b: fewer drafts at eight tokens after a, at a larger distance; by paths as well."""
    lossy, exactly = by_paths(DRAFT, VERIFIER, start, 1.0, 1, T), by_paths(DRAFT, VERIFIER, start, 0.0, 1, T)
    assert lossy[1] - exactly[1] == pytest.approx(gain, abs=1e-4)
    keys = {*lossy[0], *exactly[0]}
    assert sum(abs(lossy[0].get(k, 0) - exactly[0].get(k, 0)) for k in keys) / 2 == pytest.approx(far, abs=1e-4)
    chains = [torch.tensor(chain, dtype=torch.float64) for chain in (DRAFT, VERIFIER)]
    found = [
        course(*(markov_laws(chain[start], chain) for chain in chains), Cactus(delta), m=1, num_tokens=T, num_vocab=3)
        for delta in (1.0, 0.0)
    ]
    assert found[0].kept - found[1].kept == pytest.approx(lossy[1] - exactly[1], abs=1e-9)


def test_a_text_stays_within_the_explicit_bound():
    """`cac-explicit`, `cac-text`: T times the bound of one position, and more than the budget of one proposal."""
    generator = stream(9, "texts")
    draft, verifier = rows(3, generator), rows(3, generator)
    _, _, spent = by_paths(draft, verifier, 0, 0.05, 3, 4)
    assert 0.05 < spent <= 4 * float(emitted_kl_bound(0.05, 3))
