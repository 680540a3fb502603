"""The generated language: its grammar against another evaluator."""

import pytest
import torch

from derived.lab.rng import stream
from derived.papers.cactus.data import language

GRAMMAR = language.Grammar()


def evaluated(text: str) -> bool:
    """Whether Python's own evaluator agrees with every value of a text of whole lines."""
    for line in text.removeprefix("^").split(";")[:-1]:
        stack = []
        for place, token in enumerate(line):
            if token == "(":
                stack.append(place)
            elif token == ")":
                begin = stack.pop()
                inner, out = line[begin : place + 1], ""
                depth = 0
                for char in inner[1:-1]:  # keep only the values of inner brackets
                    depth += char == "("
                    if depth == 0:
                        out += char
                    if char == ")":
                        depth -= 1
                if int(line[place + 1]) != eval(out) % 10:
                    return False
        if stack:
            return False
    return True


def test_samples_have_right_values_by_another_evaluator():
    for text in GRAMMAR.sample(200, 60, stream(0, "texts")):
        whole = language.read(text).rpartition(";")[0] + ";"
        assert evaluated(whole)


def test_a_text_is_possible_iff_the_evaluator_finds_no_fault():
    """`cac-language`: positive probability and absence of a fault are the same, token by token."""
    texts = GRAMMAR.sample(300, 40, stream(1, "texts"))
    assert (GRAMMAR.first_fault(texts) == 40).all()
    places = torch.randint(1, 40, (300,), generator=stream(2, "places"))
    tokens = torch.randint(1, 17, (300,), generator=stream(2, "tokens"))
    state, possible = GRAMMAR.start(300), torch.zeros(300, dtype=torch.bool)
    for place in range(1, 40):
        chance = GRAMMAR.law(state).gather(-1, tokens.unsqueeze(-1)).squeeze(dim=-1)
        possible = torch.where(places == place, chance > 0, possible)
        state = GRAMMAR.advance(state, texts[:, place])
    changed = texts.scatter(-1, places.unsqueeze(-1), tokens.unsqueeze(-1))
    fault = GRAMMAR.first_fault(changed)
    assert ((fault == places) == ~possible).all()
    assert possible.any()
    assert (~possible).any()


@pytest.mark.parametrize(
    ("text", "fault"),
    [("^(1+2)3;", 8), ("^(1+2)4;", 6), ("^1;", 1), ("^(1+2)3(", 7), ("(1+2)3;", 0), ("^((1-2)9*(3", 11)],
)
def test_first_fault_of_texts_by_hand(text, fault):
    assert GRAMMAR.first_fault(language.written(text).unsqueeze(0)).tolist() == [fault]


def test_padding_ends_a_text():
    ids = torch.cat([language.written("^(1+2)3;"), torch.tensor([-1, -1])]).unsqueeze(0)
    assert GRAMMAR.first_fault(ids).tolist() == [10]
    assert language.read(ids[0]) == "^(1+2)3;"


def test_unknown_characters_and_bad_grammars_are_refused():
    with pytest.raises(ValueError, match="not of this language"):
        language.written("^(1/2)")
    with pytest.raises(ValueError, match="depth"):
        language.Grammar(depth=0)
