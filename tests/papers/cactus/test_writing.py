"""Writing with a draft and a verifier."""

import itertools

import pytest
import torch

from derived.lab.rng import stream
from derived.papers.cactus.data import language
from derived.papers.cactus.data import small_lm as training
from derived.papers.cactus.experiments import writing
from derived.papers.cactus.experiments.matching import rule_of

GRAMMAR = language.Grammar()


def model(depth: int = 2, name: str = "a") -> training.LanguageModel:
    return training.LanguageModel(width=16, depth=depth, head=8, generator=stream(4, name), dtype=torch.float64)


SHAPE = writing.Shape(1.0, 1.0)


@pytest.mark.parametrize("rule", [("cactus", 0.0), ("cactus", 0.3), ("interp", 0.4), ("tas", 0.1), ("mentored", 0.1)])
def test_writing_leaves_the_prompt_and_accounts_for_every_token(rule):
    ids = GRAMMAR.sample(5, 20, stream(8, "texts"))
    options = {"prompt": 6, "m": 3, "rule": rule_of(*rule), "shape": SHAPE, "generator": stream(9, "writing")}
    found = writing.write(model(1, "draft"), model(2, "verifier"), ids, **options)
    assert torch.equal(found.ids[:, :6], ids[:, :6])
    written = found.kept + found.blocks
    assert (written >= 14).all()  # the last block may reach beyond the end
    assert (written < 14 + 4).all()
    assert (found.reached <= 14).all()
    assert (found.tv >= 0).all()


def test_exact_writing_has_the_verifiers_law():
    """Texts of two tokens from blocks of two drafts, against the verifier's own probabilities."""
    draft, verifier, num = model(1, "draft"), model(2, "verifier"), 20_000
    ids = torch.zeros(num, 4, dtype=torch.long)
    ids[:, :2] = language.written("^(")
    options = {"prompt": 2, "m": 2, "rule": rule_of("cactus", 0.0), "shape": SHAPE}
    found = writing.write(draft, verifier, ids, generator=stream(10, "writing"), **options)
    counts = torch.bincount(found.ids[:, 2] * 17 + found.ids[:, 3], minlength=17 * 17).double()
    prefix = torch.cat([ids[:17, :2], torch.arange(17).unsqueeze(-1)], dim=-1)
    laws = torch.softmax(verifier(prefix).detach(), dim=-1)
    expected = num * (laws[0, 1].unsqueeze(-1) * laws[:, 2]).flatten()
    often = expected > 10
    chi2 = ((counts - expected)[often] ** 2 / expected[often]).sum(dim=0)
    degrees = int(often.sum(dim=0))
    assert chi2 < degrees + 6 * (2 * degrees) ** 0.5


@pytest.mark.parametrize("shape", [SHAPE, writing.Shape(0.6, 0.7)])
def test_drafts_come_from_the_shaped_law_that_is_reported(shape):
    """Truncated, the draft too: its laws are those of its logits at this temperature and top-p, and its drafts obey."""
    draft, ids = model(1, "draft"), GRAMMAR.sample(6, 12, stream(8, "texts"))
    options = {"prompt": 5, "m": 2, "rule": rule_of("cactus", 0.3), "shape": shape}
    block = next(writing.blocks(draft, model(2, "verifier"), ids.clone(), generator=stream(12, "w"), **options))
    law = training.next_law(draft(ids[:, :5])[:, -1], *shape).detach()
    assert torch.allclose(block.p[:, 0], law, rtol=0, atol=1e-12)
    assert (block.p.gather(-1, block.drafted.unsqueeze(-1)) > 0).all()
    assert bool((block.p == 0).any()) == (shape != SHAPE)


def test_the_spend_of_exact_writing_is_nothing_and_of_a_lossy_rule_something():
    ids = GRAMMAR.sample(4, 16, stream(8, "texts"))
    options = {"prompt": 4, "m": 2, "shape": SHAPE}
    for knob, lossy in ((0.0, False), (0.5, True)):
        found = writing.write(
            model(1, "draft"), model(2, "v"), ids, rule=rule_of("cactus", knob), generator=stream(1, "w"), **options
        )
        assert bool((found.tv > 1e-9).all()) == lossy


def test_writing_refuses_a_prompt_without_a_second_token():
    ids = GRAMMAR.sample(2, 8, stream(8, "texts"))
    with pytest.raises(ValueError, match="prompt = 1"):
        writing.write(model(), model(), ids, prompt=1, m=2, rule=rule_of("cactus", 0.0), shape=SHAPE, generator=None)


def test_alone_and_surprise():
    ids, one = GRAMMAR.sample(3, 12, stream(8, "texts")), model()
    found, seconds = writing.write_alone(one, ids, prompt=4, shape=SHAPE, generator=stream(2, "alone"))
    assert seconds > 0
    assert torch.equal(found[:, :4], ids[:, :4])
    draw, twin = stream(2, "alone"), ids.clone()
    for t in range(4, 12):  # without a cache
        twin[:, t] = training.pick(training.next_law(one(twin[:, :t])[:, -1]), draw)
    assert torch.equal(found, twin)
    laws = torch.log_softmax(one(found), dim=-1)
    by_hand = -torch.stack([laws[:, t - 1].gather(-1, found[:, t : t + 1]) for t in range(4, 12)]).mean(dim=0)
    assert torch.allclose(writing.surprise(one, found, 4), by_hand.squeeze(dim=-1), atol=1e-12)


def test_the_clock_leaves_out_the_prompt_and_counts_one_pass_per_token(monkeypatch):
    ids, one, passes = GRAMMAR.sample(1, 12, stream(8, "texts")), model(), []
    times = itertools.count()
    monkeypatch.setattr(writing, "clock", lambda device: (next(times), passes.append("clock"))[0])
    one.register_forward_hook(lambda _, inputs, __: passes.append(inputs[0].shape[1]))
    writing.write_alone(one, ids, prompt=4, shape=SHAPE, generator=stream(2, "alone"))
    assert passes == [3, "clock", *[1] * 8, "clock"]
    passes.clear()
    options = {"prompt": 4, "m": 2, "rule": rule_of("cactus", 0.0), "shape": SHAPE}
    tokens, seconds = writing.time_blocks(model(1, "d"), one, ids, generator=stream(3, "w"), **options)
    verified = passes.count(3)
    assert passes[:3] == [4, "clock", 3]
    assert seconds == verified  # from one reading of the clock to the next, for each block
    assert 8 <= tokens <= min(8 + 2, 3 * verified)


def test_laws_of_every_block_are_those_of_the_whole_text_without_a_cache():
    """A cache that missed a token of the draft would leave the text exact, and the draft worse: look at the laws."""
    draft, verifier, ids = model(1, "draft"), model(2, "verifier"), GRAMMAR.sample(4, 18, stream(8, "texts"))
    options = {"prompt": 5, "m": 3, "rule": rule_of("cactus", 2.0), "shape": SHAPE}
    written, kept_all = torch.full((4,), 5), 0
    for block in writing.blocks(draft, verifier, ids, generator=stream(11, "writing"), **options):
        for row in block.unfinished.nonzero().squeeze(dim=-1).tolist():
            before = ids[row, : int(written[row])]
            whole = torch.cat([before, block.drafted[row]]).unsqueeze(0)
            at = slice(len(before) - 1, len(before) + 3)
            p, q = (training.next_law(one(whole)[0, at]).detach() for one in (draft, verifier))
            assert torch.allclose(block.p[row], p[:3], rtol=0, atol=1e-12)
            assert torch.allclose(block.q[row], q, rtol=0, atol=1e-12)
            kept_all += int(block.kept[row] == 3)
        written = torch.where(block.unfinished, written + block.kept + 1, written)
    assert kept_all > 0
