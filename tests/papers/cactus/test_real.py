"""Drafts from word counts, and the lumping of what the draft never proposes."""

import torch
from here import needs

from derived.lab.rng import stream
from derived.papers.cactus.data.ngrams import Ngrams, lumped
from derived.papers.cactus.experiments.real import Novels
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


@needs("gemma", "austen")
def test_a_trained_verifier_pays_as_the_theorem_says():
    """`cac-price` on Gemma; a draft that is the verifier itself would gain and pay nothing."""
    rows = Novels(texts=1, length=40, others=1, deltas=(0.1,)).run(
        {}, seed=0, device=torch.device("cpu"), dtype=torch.float64
    )
    paid = rows[rows["rule"] != "exact"]
    assert (paid["gap"] < paid["bound"]).all()
    assert (paid["acceptance"] > paid["exact"] + 0.05).all()
    matched = paid.set_index("rule")["acceptance"]
    assert abs(matched["lenience"] - matched["cactus"]) < 1e-4
