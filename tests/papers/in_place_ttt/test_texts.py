"""Topic texts: needles and real text, what is missed, the arms, the measures and the figures."""

import math

import pandas as pd
import pytest
import torch

from derived.lab.measure import highest, lowest
from derived.lab.nets import Draws
from derived.lab.rng import stream
from derived.papers.in_place_ttt import texts as figures
from derived.papers.in_place_ttt.data.needles import FIRST, TASKS, ruler_like
from derived.papers.in_place_ttt.data.sources import python_bytes
from derived.papers.in_place_ttt.model.network import SmallLM
from derived.papers.in_place_ttt.texts import (
    CLAIMS,
    Needles,
    SettledNeedles,
    SourceBytes,
    arm,
    missed,
    missed_without_less,
)
from derived.papers.in_place_ttt.trained import last_lengthening

EXPERIMENTS = (Needles, SettledNeedles, SourceBytes)


def test_an_answer_is_missed_unless_it_is_among_the_largest_as_many_logits():
    """By a loop over texts and answers."""
    logits = torch.randn(3, 50, 12, generator=stream(0, "logits"))
    found = ruler_like("tracking", 25, 32, words=9, generator=stream(0, "texts"))
    one = ruler_like("needle", 25, 32, words=9, generator=stream(1, "texts"))
    answers = torch.cat([found.answers, one.answers]).clamp(max=11)
    answers = torch.stack([answers, answers.roll(1, dims=0), answers.roll(2, dims=0)])
    shares = missed(logits, answers)
    for r in range(3):
        for b in range(50):
            wanted = {each for each in answers[r, b].tolist() if each >= 0}
            count = sum(each >= 0 for each in answers[r, b].tolist())
            named = set(logits[r, b].topk(count).indices.tolist())
            assert shares[r, b] == pytest.approx(1 - len(wanted & named) / count)


def test_the_question_is_the_last_token_and_the_answer_is_not_in_the_input():
    needles = Needles.at("cpu")
    for task in TASKS:
        ids, answers = needles.texts(task, 30, stream(0, "texts"), torch.device("cpu"))
        assert ids.shape == (needles.networks, 30, needles.length - 1)
        assert int(ids.max()) < needles.words + FIRST
        if task.startswith("needle"):
            for text, answer in zip(ids.flatten(0, 1).tolist(), answers[..., 0].flatten().tolist(), strict=True):
                assert text[text.index(text[-1]) + 1] == answer


def test_arms_have_as_many_parameters():
    for experiment, vocabulary in ((Needles.at("cpu"), 17), (SourceBytes.at("cpu"), 256)):
        counts = [SmallLM(arm(experiment, vocabulary, chunk), Draws()).parameters_each for chunk in (0, 2, 8)]
        assert max(counts) - min(counts) <= 3 * experiment.width * 2
        assert not arm(experiment, vocabulary, 0).memories
        assert [each.chunk for each in arm(experiment, vocabulary, 4).memories.values()] == [4, 4]


def test_what_is_judged_was_not_trained_on():
    texts = SourceBytes.at("cpu")
    parts = texts.parts()
    assert torch.equal(torch.cat(list(parts.values())), python_bytes(texts.package, texts.size_of_text))
    assert [round(len(each) / texts.size_of_text, 3) for each in parts.values()] == [0.9, 0.05, 0.05]
    pieces = texts.texts(parts["test"], 5, stream(0, "pieces"), torch.device("cpu"))
    whole = bytes(parts["test"].tolist())
    assert all(bytes(piece.tolist()) in whole for piece in pieces.flatten(0, 1))


@pytest.mark.parametrize("context", [0, 5, 24])
def test_the_last_block_is_judged_after_as_much_context_as_is_said(context):
    """Texts that count up, and a model that knows it: it reads the context and the block, and misses nothing."""
    texts, seen = SourceBytes.at("ci"), []
    ids = torch.arange(33) + torch.tensor([[0], [100]])

    def model(given):
        seen.append(given)
        return 50.0 * torch.nn.functional.one_hot(given + 1, 256)[None].float()

    assert texts.final_loss(model, ids, context) < 1e-6
    assert torch.equal(seen[0], ids[:, 32 - texts.final - context : 32])


def test_every_arm_and_rate_has_its_rows(rows):
    needles, text = rows[Needles], rows[SourceBytes]
    assert set(needles["chunk"]) == {0, 2, 4, 8}
    assert set(needles.loc[needles["usual"], "chunk"]) == {0, 4}
    assert needles[["valid", "test", "shuffled"]].stack().between(0, 1).all()
    without = needles[needles["chunk"] == 0]
    assert (without["test"] == without["shuffled"]).all()  # nothing is written that could be shuffled
    assert set(text["chunk"]) == {0, 4}
    assert (text["valid"] != text["test"]).all()  # other bytes choose than judge
    assert (text.loc[text["context"] == 24, "loss"] == text.loc[text["context"] == 24, "test"]).all()
    settled = rows[SettledNeedles]
    assert {*zip(settled["chunk"], settled["rate"], strict=True)} == {(0, 4e-3), (4, 6.3e-3), (4, 1e-2)}
    assert (settled.groupby(["chunk", "rate", "replicate"])["late"].nunique() == 1).all()  # one network, four tasks
    flat = rows | {each: rows[each].assign(before=rows[each]["late"]) for each in (SourceBytes, SettledNeedles)}
    for claim in CLAIMS:
        assert math.isfinite(claim.measure(flat[claim.experiment]).value), claim.id


def test_measures_on_tables_with_known_answers():
    facts = {"usual": True, "chunk": 8, "rate": 0.1, "valid": 0.2}
    both = pd.DataFrame(
        facts | {"chunk": chunk, "task": task, "replicate": r, "test": 0.9 - 0.1 * chunk, "shuffled": 0.9 - gain}
        for task, gain in (("needle", 0.3), ("needles", 0.2), ("tracking", -0.1))
        for chunk in (0, 8)
        for r in range(4)
    )
    assert missed_without_less("test", lowest)(both).value == pytest.approx(0.8)
    assert missed_without_less("shuffled", lowest)(both).value == pytest.approx(-0.1)
    assert missed_without_less("shuffled", highest)(both).value == pytest.approx(0.3)  # a control that passes one task
    text = pd.DataFrame(
        {"chunk": 8, "rate": rate, "replicate": r, "context": context, "loss": 3 - context * rate, "valid": 1 - rate}
        for rate in (0.1, 0.2)
        for r in range(4)
        for context in (0, 3, 5)
    )
    assert last_lengthening("chunk > 0")(text).value == pytest.approx(2 * 0.2)


def test_figures_say_in_words_what_they_show(tells):
    facts = {"rate": 0.1, "valid": 0.2, "recorded": True, "tier": "cpu"}
    needles = pd.DataFrame(
        {"chunk": chunk, "usual": chunk in (0, 4), "task": task, "replicate": r, "test": 0.9 - 0.1 * chunk, **facts}
        for chunk in (0, 2, 4)
        for task in TASKS
        for r in range(3)
    )
    label = figures.needles(needles).get_label()
    assert "one needle 0.90 without and 0.50 with it" in label
    assert "0.70 at 2, 0.50 at 4" in label
    text = pd.DataFrame(
        {"chunk": chunk, "context": context, "replicate": r, "loss": 2.0 - chunk * context / 100, **facts}
        for chunk in (0, 4)
        for context in (0, 10)
        for r in range(3)
    )
    tells(figures.real_text(text), "window 2.000 without context and 2.000 with 10 bytes", "and 1.600 with 10 bytes")
