"""Real words as ecologies, and which names a real model tells apart: the lists, the rows, the measures."""

from itertools import chain

import numpy as np
import pandas as pd
import pytest
import torch
from here import needs

from derived.lab.experiment import run_condition, run_experiment
from derived.lab.real.models import Pretrained
from derived.lab.rng import stream
from derived.papers.task_ecologies import languages
from derived.papers.task_ecologies.data import peoples
from derived.papers.task_ecologies.languages import ErasAbroad, NamesAbroad, NamesKept

BY_ID = {claim.id: claim for claim in languages.CLAIMS}


def test_texts_are_words_between_opening_tokens():
    texts = peoples.drawn_texts(["anna", "bo"], 50, 9, stream(0, "texts"))
    assert texts.shape == (50, 10)
    assert (texts[:, 0] == 26).all()
    words = "".join(chr(97 + letter) for letter in texts[0]).split("{")[1:-1]  # the last one may be cut
    assert {*words} <= {"anna", "bo"}


def test_dealt_words_are_the_same_words_in_lists_of_the_same_lengths():
    lists = [[f"w{10 * k + i}" for i in range(5 + k)] for k in range(3)]
    dealt = peoples.dealt(lists, stream(0, "dealt"))
    assert [len(each) for each in dealt] == [5, 6, 7]
    assert sorted(chain(*dealt)) == sorted(chain(*lists))
    assert dealt != lists


def test_what_was_read_is_not_judged():
    assert peoples.unread([["a", "b"], ["c"]], [["b"], ["d"]]) == [["a"], ["c"]]
    with pytest.raises(ValueError, match="of 1 lists"):
        peoples.unread([["a"], ["b"]], [["b"]])


@needs("faker")
def test_names_come_from_a_family_and_from_elsewhere():
    for replicate, family in enumerate(peoples.FAMILIES):
        chosen, read, held = peoples.names_by_language(replicate, 150, stream(1, replicate))
        assert sorted(chosen[:5]) == sorted(family)
        assert {*chosen[5:]} <= {*peoples.ALIENS}
        assert {len(each) for each in read} == {150}
        assert min(map(len, peoples.unread(held, read))) >= 10
        assert all(word.isascii() and word.islower() for each in (*read, *held) for word in each)


@needs("stdlib")
def test_eras_are_in_order_from_either_end():
    first, last = (peoples.chunks_by_era(replicate, 50, stream(0, replicate)) for replicate in (0, 1))
    assert first[0] == sorted(first[0])
    assert last[0] == first[0][::-1]
    assert {len(word) <= 24 and word.isalpha() for part in first[1] for word in part} == {True}
    assert {len(part) for part in (*first[1], *first[2])} == {50}


@needs("faker")
def test_rows_of_names_abroad_and_what_the_model_reads(monkeypatch):
    read = []
    mixed = NamesAbroad.mixed
    monkeypatch.setattr(NamesAbroad, "mixed", lambda self, lists, draw: read.append(lists) or mixed(self, lists, draw))
    found = run_experiment(NamesAbroad.at("tiny"), seed=0, device="cpu")
    assert len(found) == 2 * 3 * 7
    assert found.groupby(["arm", "replicate"])["language"].nunique().eq(7).all()
    assert [len(lists) for lists in read] == [3] * 6
    assert {*read[0][0]} <= {*peoples._words(found["language"][0])}
    assert len({*read[3][0]} - {*peoples._words(found["language"][21])}) > 50, "dealt"
    figure = languages.words_abroad(found.assign(tier="ci", recorded=False))
    assert "dealt by chance" in figure.get_label()
    rise = found["category"].map({"trained": 0.0, "relative": 0.1, "alien": 0.3})
    excess = rise.where(found["arm"] == "as they are", -0.1 * rise)
    title = languages.words_abroad(found.assign(tier="ci", recorded=False, excess=excess)).axes[0].texts[0].get_text()
    assert title == "alien lists cost 0.30 nats more,\ndealt by chance 0.03 nats less"


@needs("stdlib")
def test_rows_of_eras_abroad():
    found = run_condition(ErasAbroad.at("tiny"), {"arm": "as they are"}, 0, "cpu")
    assert len(found) == 3 * 7
    assert found["language"].str.startswith("from 1").any()


def test_the_rise_is_that_of_the_arm():
    rows = pd.DataFrame(
        {"arm": arm, "replicate": r, "category": category, "excess": 0.1 + r * 0.01 + k * (rise + 0.001 * r)}
        for arm, rise in (("as they are", 0.2), ("dealt", 0.0))
        for r in range(6)
        for k, category in enumerate(("trained", "relative", "alien"))
    )
    for id, n in (("TE-E1.d", 3), ("TE-E1.e", 6)):  # three families, each with two of the six models
        assert BY_ID[id].measure(rows).value == pytest.approx(0.2025)
        assert BY_ID[id].measure(rows).n == n


def kept(ratio: float) -> pd.DataFrame:
    """Rows of ``NamesKept`` in which gender counts where it is told and to the trained model alone."""
    return pd.DataFrame(
        {
            "weights": weights, "telling": telling, "sentence": f"{telling} {place}", "group": group,
            "within": 0.1 * scale,
            "between": 0.1 * scale * (ratio + 0.01 * group if telling and weights == "trained" else 1.0),
        }
        for weights in ("trained", "untrained") for telling in (True, False)
        for place, scale in enumerate((1.0, 3.0)) for group in range(8)
    )  # fmt: skip


def test_groups_are_compared_in_the_sentences_that_tell_and_in_the_others():
    rows = kept(2.0)
    told, silent = BY_ID["TE-16.a"], BY_ID["TE-16.b"]
    assert told.measure(rows).value == pytest.approx(np.exp(np.log(2 + 0.01 * np.arange(8)).mean()))
    assert told.measure(rows).n == 8
    less = (rows["sentence"] == "True 1") & (rows["weights"] == "trained")
    some = rows.assign(between=rows["between"].mask(less, 1.7 * rows["within"]))
    assert told.measure(some).value == pytest.approx(1.7)  # one sentence of less decides
    assert silent.comparison[1](some).value == pytest.approx(told.measure(rows).value)  # and one of more
    assert told.control(rows).value == pytest.approx(1.0)
    assert silent.measure(rows).value == pytest.approx(1.0)
    assert silent.judge(silent.comparison[1](rows))[0] == "fails"
    with pytest.raises(ValueError, match="no number"):
        told.measure(rows.assign(within=np.nan))
    figure = languages.names_kept(rows.assign(tier="ci", recorded=False))
    assert "2.0" in figure.get_label()
    named = {text.get_text(): text.xy for text in figure.axes[0].texts}
    assert named["a pronoun may come"] == (pytest.approx(2.035), 3)
    assert named["none can"] == (pytest.approx(1.0), 1)
    assert named["before training"] == (pytest.approx(1.0), 2)


class Speaker(torch.nn.Module):
    """Says after "said" a pronoun by the name's first letter, and elsewhere what all names have in common."""

    def forward(self, ids: torch.Tensor, logits_to_keep: int):
        logits = torch.zeros(len(ids), 1, 4)
        woman, told, other = ids.split(1, dim=1)
        logits[..., 0] = 5.0 * woman * told
        logits[..., 1] = 0.1 * other
        return type("Out", (), {"logits": logits})()


@needs("faker")
def test_a_speaker_that_tells_gender_where_it_is_told_is_seen(monkeypatch):
    women, men = peoples.names_by_gender()
    assert not {*women} & {*men}
    assert {"Mary", "Susan"} <= {*women}
    assert {"John", "Michael"} <= {*men}
    telling = {sentence.split("{}")[1] for sentence in peoples.TELLING}

    def tokens(text: str) -> torch.Tensor:
        words = text.replace(",", "").split()
        name = words[1]  # as all sentences have it
        return torch.tensor([[name in women, text.split(name)[1] in telling, len(name) % 3]]).long()

    monkeypatch.setattr(languages.models, "load", lambda name: Pretrained(Speaker(), tokens))
    found = run_condition(NamesKept.at("ci"), {"weights": "trained"}, 0, "cpu")
    told = found[found["telling"]]
    assert len(found) == 2 * 8
    assert (told["between"] > 10 * told["within"].clip(lower=1e-4)).all()
    assert (found[~found["telling"]][["between", "within"]] < 0.01).all(axis=None)


@needs("gemma", "faker")
def test_names_are_one_token_each():
    reader = languages.models.load("gemma")
    names = NamesKept.at("ci").names(reader, 0)
    assert names.shape == (2, 4)
    assert len({*names.ravel()}) == 8
    lengths = {
        reader.tokens(sentence.format(name)).shape[1] for name in names.ravel() for sentence in peoples.SILENT[:1]
    }
    assert len(lengths) == 1
