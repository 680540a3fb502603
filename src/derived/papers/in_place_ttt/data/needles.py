"""Texts like RULER's, of integers: needles in filler, a chain of variables, the commonest word.

symbol   name      meaning                                                           axes
n        length    tokens of a text, the question included                           scalar
-        words     different words; keys, values and fillers are words               scalar
-        ids       marks 0..3 (needle, variable, question, end), words 4..            (B, n)
-        answers   the words that a right answer names, -1 where fewer               (B, 4)
"""

from typing import NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor

from derived.lab.checks import check_choice, check_count

NEEDLE, VARIABLE, QUESTION, END, FIRST = range(5)
TASKS = {"needle": 1, "needles": 4, "tracking": 4, "common": 0}  # how many triples are hidden


class Haystack(NamedTuple):
    """Texts and the answers to the questions with which they end."""

    ids: Int[Tensor, "B n"]
    answers: Int[Tensor, "B 4"]
    vocabulary: int


def ruler_like(task: str, batch: int, length: int, *, words: int = 64, generator: torch.Generator) -> Haystack:
    """Texts of one of four tasks, each ending in a question of three tokens.

    "needle": one triple (mark, key, value) somewhere, and its key asked; "needles": four, and one of the keys asked;
    "tracking": a chain x = value, y = x, … of four, hidden in order, and all names asked that hold the value;
    "common": one word fills a third of the text, and is asked for. ValueError where a text is too short.

    >>> text = ruler_like("needle", 1, 16, generator=torch.Generator().manual_seed(0))
    >>> place = (text.ids[0] == NEEDLE).nonzero()[0, 0]
    >>> text.ids[0, -2] == text.ids[0, place + 1], text.answers[0, 0] == text.ids[0, place + 2]
    (tensor(True), tensor(True))
    """
    check_choice("task", task, TASKS)
    check_count("words", words, 9)
    hidden = TASKS[task]
    slots = (length - 3) // 3
    if slots < max(hidden, 4):
        raise ValueError(f"length = {length} for {max(hidden, 4)} triples and a question; give at least 15")
    order = torch.rand(batch, words, generator=generator).argsort(dim=-1) + FIRST  # all different, a row each
    ids = order.gather(1, torch.randint(8, words, (batch, length), generator=generator))  # fillers: no key, no value
    keys, values = order[:, :4], order[:, 4:8]
    answers = torch.full((batch, 4), -1)
    rows = torch.arange(batch)
    if task == "common":
        ids[:, :-3] = torch.where(
            torch.rand(batch, length - 3, generator=generator) < 1 / 3, values[:, :1], ids[:, :-3]
        )
        answers[:, 0], asked = values[:, 0], torch.full((batch,), END)
    else:
        place = 3 * torch.rand(batch, slots, generator=generator).argsort(dim=-1)[:, :hidden]
        place = place.sort(dim=-1).values if task == "tracking" else place
        mark = VARIABLE if task == "tracking" else NEEDLE
        held = torch.cat([values[:, :1], keys[:, :3]], dim=1) if task == "tracking" else values
        for i in range(hidden):
            at = place[:, i]
            ids[rows, at], ids[rows, at + 1], ids[rows, at + 2] = torch.tensor(mark), keys[:, i], held[:, i]
        which = torch.randint(max(hidden, 1), (batch,), generator=generator)
        asked = values[:, 0] if task == "tracking" else keys[rows, which]
        answers[:, : (4 if task == "tracking" else 1)] = (
            keys if task == "tracking" else values[rows, which].unsqueeze(-1)
        )
    ids[:, -3], ids[:, -2], ids[:, -1] = QUESTION, asked, END
    return Haystack(ids, answers, words + FIRST)
