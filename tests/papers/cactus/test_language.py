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


def test_unknown_characters_are_refused():
    with pytest.raises(ValueError, match="not of this language"):
        language.written("^(1/2)")
