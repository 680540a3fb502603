"""Drafts from word counts, and the lumping of what the draft never proposes."""

import pandas as pd
import pytest
import torch
from here import needs

from derived.lab.rng import stream
from derived.papers.cactus.data.ngrams import Ngrams, lumped
from derived.papers.cactus.data.pairs import random_pairs
from derived.papers.cactus.gemma import CLAIMS, DRAFTS, JUDGED, REFERENCES, Novels, kept_and_spent, smallest_budget
from derived.papers.cactus.matching import match
from derived.papers.cactus.model.divergences import divergence
from derived.papers.cactus.model.exact import acceptance_rate, output_law
from derived.papers.cactus.model.rules import Cactus, Interp, Lenience, SpS


def test_counts_are_interpolated():
    draft = Ngrams([1, 2, 3, 1, 2, 4])
    found = draft.proposals([1, 2])
    assert abs(sum(found.values()) - 1) < 1e-12
    assert abs(found[3] - (0.1 / 6 + 0.3 / 2 + 0.6 / 2)) < 1e-12
    unseen = draft.proposals([4, 4])  # of one token alone
    assert max(unseen, key=unseen.get) in (1, 2)
    assert abs(unseen[1] - 2 / 6) < 1e-12


def test_lumping_changes_no_number():
    """Acceptance, total variation and KL on the draft's support and one more token are those of the vocabulary."""
    generator = stream(0, "lumped")
    q = torch.rand(50, generator=generator, dtype=torch.float64)
    q /= q.sum()
    proposals = {7: 0.5, 3: 0.3, 41: 0.2}
    p = torch.zeros(50, dtype=torch.float64)
    p[[*proposals]] = torch.tensor([*proposals.values()], dtype=torch.float64)
    short = lumped(proposals, q, 6)
    for rule in (SpS(), Cactus(0.05), Cactus(1.0), Lenience(0.4), Interp(0.3)):
        whole, part = output_law(p, q, rule), output_law(*short, rule)
        torch.testing.assert_close(acceptance_rate(*short, rule), acceptance_rate(p, q, rule))
        for name in ("kl", "tv"):
            torch.testing.assert_close(divergence(part, short[1], name), divergence(whole, q, name), atol=1e-12, rtol=0)


def drawn(num_pages: int = 4, V: int = 6):
    """Pages of ten positions each, with drafts near the verifier."""
    p, q = random_pairs(10 * num_pages, V, "noised", stream(0, "drawn"))
    return torch.arange(num_pages).repeat_interleave(10), p, q


def test_each_half_of_the_pages_sets_the_knobs_of_the_other():
    page, p, q = drawn()
    rows = Novels(texts=4, deltas=(0.05,))._judged("table", page, p, q)
    assert {*rows["text"]} == {0, 1, 2, 3}
    assert (rows.query("rule != 'exact'")["gap"] < rows["bound"].iloc[0]).all()
    spoiled = q.clone()
    spoiled[page == 1] = q[page == 1].flip(-1)
    other = Novels(texts=4, deltas=(0.05,))._judged("table", page, p, spoiled)
    third = [each.query("text == 3").reset_index(drop=True) for each in (rows, other)]
    pd.testing.assert_frame_equal(*third)  # what is judged moves no knob of its own half
    even = page % 2 == 0
    knob = match("lenience", p[even], q[even], acceptance_rate(p[even], q[even], Cactus(0.05)).mean().item())
    expected = acceptance_rate(p[~even], q[~even], Lenience(knob)).mean().item()
    assert abs(rows.query("text % 2 == 1 and rule == 'lenience'")["acceptance"].mean() - expected) < 1e-12


def test_the_smallest_budget_is_enough_and_none_below():
    _, p, q = drawn(1)
    delta = smallest_budget(p, q)
    assert (
        acceptance_rate(p, q, Cactus(1.001 * delta)).mean() >= 0.99 > acceptance_rate(p, q, Cactus(0.99 * delta)).mean()
    )
    assert smallest_budget(q, q) < 1e-7  # the verifier itself needs none
    certain, never = torch.tensor([[1.0, 0.0]]).double(), torch.tensor([[1e-30, 1 - 1e-30]]).double()
    assert smallest_budget(certain, never) == 1e8


@needs("gemma", "austen")
def test_a_trained_verifier_pays_as_the_theorem_says():
    """`cac-price` on Gemma, whatever the draft."""
    sizes = {"novels": JUDGED[:1], "texts": 2, "length": 40, "first": 32, "others": 1, "taught": 2, "deltas": (0.1,)}
    rows = Novels(**sizes).run({}, seed=0, device=torch.device("cpu"), dtype=torch.float64)
    paid = rows[rows["rule"] != "exact"]
    assert (paid["gap"] < paid["bound"]).all()
    assert (paid["acceptance"] >= paid["exact"]).all()
    assert {*rows["draft"]} == {*DRAFTS, *REFERENCES}
    alone = rows.query("rule == 'exact'").groupby("draft")[["exact", "enough"]].mean()
    assert alone.at["self", "exact"] > 0.8 > alone.at["exit", "exact"]
    assert (alone.drop(index="self")["enough"] > 100 * alone.at["self", "enough"]).all()


def pages(grid, lead: float):
    rows = grid(
        novel=["a"], text=range(4), draft=["table"], rule=["exact", "cactus", "lenience", "interp"], delta=[0.01]
    )
    kl = rows["rule"].map({"exact": 0.0, "cactus": 0.5, "lenience": 0.5 - lead, "interp": 0.9}) + 0.01 * rows["text"]
    return rows.assign(kl=kl, acceptance=0.5)


def test_how_much_nearer_lenience_is(grid):
    claim = next(one for one in CLAIMS if one.id == "CAC-13.h")
    found = claim.measure(pages(grid, 0.2))
    assert (found.value, found.n) == (pytest.approx(0.2), 4)
    assert claim.comparison[1](pages(grid, 0.2)).value == pytest.approx(-0.4)


@pytest.mark.parametrize("lead", [0.1, 0.3])
def test_the_figure_says_each_rule(tells, grid, lead):
    tells(kept_and_spent(pages(grid, lead)), f"lenience {0.515 - lead:.2f}")
