"""Writes oral cards: three questions for each result of a chapter, what an answer must contain, and what to ask next.

result   a theorem, lemma, proposition or corollary that the chapter proves: statement, badge, proof, check cell, tests
claims   that rest on it, with verdict, criterion and n from the committed ledger
next     the question that a lecture asks there, with its wrong answer; else one about the check
wrong    an answer to an exercise that makes a common mistake: the student says which line is wrong
"""

import functools
import importlib
import json
import random
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from derived.book.source import lectures, on_page, statements
from derived.lab.exercises import Derive, Exercise, Implement, described, judged
from derived.lab.rng import stream

HAND = 3  # questions on results, and as many wrong answers
_BOX = re.compile(r"^([`:]{3,})\{prf:(\w+)\}[^\n]*\n((?:[ \t]*:[^\n]*\n)*)(.*?)^\1[ \t]*$", re.M | re.S)
_ROLE = re.compile(r"\{[\w:]+\}`(?:([^`<]*)<)?([^`<>]+)>?`")
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z$*])")
_CHECKS = re.compile(r"^\s*(?:check|at_most|refute|confirm)\(.*", re.M)


class Question(NamedTuple):
    """What is asked, what an answer must contain, and what to ask when it comes too easily."""

    ask: str
    must: tuple[str, ...]
    next: str


class Card(NamedTuple):
    """Three questions about a result."""

    name: str
    label: str
    questions: tuple[Question, ...]


class Slip(NamedTuple):
    """A wrong answer to an exercise: the label, which of its parts, and what is wrong."""

    label: str
    part: int
    wrong: str


def cards(root: Path, slug: str) -> list[Card]:
    """Make the cards of a chapter, in the order of its results."""
    notebook = json.loads((root / f"notebooks/{slug}.ipynb").read_text("utf-8"))
    stated = {each.label: each for each in statements.statements(notebook)}
    titles = {label: f"{each.kind.capitalize()} ({each.title})" for label, each in stated.items()}
    texts, proofs = _texts(notebook)
    claims, rows = _claims(notebook), _rows(root, slug)
    tests = statements.tests(root, slug)
    asked = {label: step for step in lectures.read(root, slug)[180] for label in step.show if step.ask}
    found = []
    for label, proof in proofs.items():
        one, step = stated[label], asked.get(label)
        plain = functools.partial(_plain, titles=titles)
        code = "".join(notebook["cells"][one.check]["source"]) if one.check is not None else ""
        whose = statements.BADGES[one.whose] if one.whose else "of the chapter"
        sentences = [each for each in _SENTENCE.split(plain(proof)) if each]
        ends = dict.fromkeys([sentences[0], sentences[-1]])
        ledger = [
            f"{claim}: {row['verdict']}; {row['criterion']}" + f", n = {row['n']}" * bool(row["n"])
            for claim in claims.get(label, ())
            if (row := rows.get(claim))
        ]
        named = ", ".join(f"`{test.name}`" for test in tests.get(label, [])[:2])
        questions = (
            Question(
                "State it. Which of its words is an assumption, and which is the result?",
                (plain(texts[label]), f"It is marked *{whose}*."),
                f"{step.ask} A wrong answer: {step.wrong}"
                if step
                else "Drop one assumption: give an example that breaks it.",
            ),
            Question(
                "How does its proof begin, and what finishes it?",
                (*ends, f"{len(sentences)} steps in all" if len(sentences) > 2 else "nothing else is needed"),
                "Which step uses the assumption that you named? What is left of the proof without it?",
            ),
            Question(
                "How do you know that it is right, apart from the proof? Could that check have failed?",
                (
                    *ledger,
                    *(f"its check cell: `{line.strip()}`" for line in _CHECKS.findall(code)),
                    f"its tests: {named}" if named else "no test names it",
                ),
                "Change one sign in the statement: which of these turns red, and at which smallest input?",
            ),
        )
        found.append(Card(titles[label], label, questions))
    return found


def _texts(notebook: Mapping[str, Any]) -> tuple[dict[str, str], dict[str, str]]:
    """The text of each statement, and of the proof of each result, by label."""
    pages = ("".join(cell["source"]) + "\n" for cell in notebook["cells"] if cell["cell_type"] == "markdown")
    boxes = [
        (kind, label[1] if (label := re.search(r":label:\s*(\S+)", options)) else "", text.strip())
        for page in pages
        for _, kind, options, text in _BOX.findall(page)
    ]
    proved = statements.proofs((kind, label) for kind, label, _ in boxes)
    written = [text for kind, _, text in boxes if kind == "proof"]
    proofs = {label: text for label, text in zip(proved, written, strict=True) if label}
    return {label: text for kind, label, text in boxes if label}, proofs


def _claims(notebook: Mapping[str, Any]) -> dict[str, list[str]]:
    """The claims that rest on each statement."""
    said = notebook["metadata"].get("derived", {}).get("rests", {})
    found = {label: ids.split() for label, ids in said.items()}
    for claim, fields in on_page.decided(notebook).items():
        found.setdefault(fields["label"], []).append(claim)
    return found


def _rows(root: Path, slug: str) -> dict[str, dict[str, Any]]:
    """The committed rows of a chapter by claim, the largest tier last."""
    rows = json.loads((root / "results/ledger.json").read_text("utf-8"))
    return {row["id"]: row for row in rows if row["paper"] == slug}


def _plain(text: str, titles: Mapping[str, str]) -> str:
    words = _ROLE.sub(lambda role: (role[1] or titles.get(role[2], role[2])).strip(), text)
    return " ".join(words.split())


# Wrong answers --------------------------------------------------------------------------------------------------------


def slips(slug: str) -> list[Slip]:
    """List the common mistakes of a chapter's exercises."""
    return [
        Slip(label, at, words)
        for label, parts in _parts(slug).items()
        for at, part in enumerate(parts)
        for words in part.mistakes
    ]


def slipped(slug: str, slip: Slip, lot: str) -> Question:
    """Put a wrong answer before a student, at a point drawn by a lot."""
    part = _parts(slug)[slip.label][slip.part]
    letter = f" ({'abcdefgh'[slip.part]})" if len(_parts(slug)[slip.label]) > 1 else ""
    mistake, ask = part.mistakes[slip.wrong], "Is it right? If not, what was overlooked?"
    if isinstance(part, Implement):
        said = judged(slip.label, part, mistake).removeprefix("not right: ")
        return Question(
            f"{slip.label}{letter}: somebody's function does this: {said}. {ask}", (slip.wrong,), "Mend it."
        )
    point = part.draw(stream(0, "oral", slip.label, slip.part, lot)) if part.draw else {}
    right, wrong = (described(each(**point) if callable(each) else each) for each in (part.right, mistake))
    where = f" at {', '.join(f'{name} = {described(value)}' for name, value in point.items())}" if point else ""
    must = (
        f"not right: {slip.wrong}; it is {right}"
        if right != wrong
        else f"here both are {right}, and elsewhere {slip.wrong}"
    )
    return Question(
        f"{slip.label}{letter}: somebody has {wrong}{where}. {ask}", (must,), "At which point would both be the same?"
    )


@functools.cache
def _parts(slug: str) -> dict[str, list[Derive | Implement]]:
    found = importlib.import_module(f"derived.papers.{slug}.exercises").EXERCISES
    return {label: [each] if isinstance(each, Exercise) else [*each] for label, each in found.items()}


# Sheets ---------------------------------------------------------------------------------------------------------------


def hand(cards: list[Card], slug: str, lot: str) -> tuple[list[tuple[str, Question]], list[Slip]]:
    """Draw a student's questions: on three results, one each of the three kinds, and three wrong answers."""
    draw = random.Random(f"oral {slug} {lot}")
    asked = [(card.name, card.questions[kind]) for kind, card in enumerate(draw.sample(cards, HAND))]
    return asked, draw.sample(slips(slug), HAND)


def sheet(root: Path, slug: str, title: str, who: str = "", lot: str = "") -> str:
    """Write all cards of a chapter, or the hand of one student, drawn by a lot. Markdown, for the examiner."""
    made = cards(root, slug)
    everything = [(card.name, question) for card in made for question in card.questions], slips(slug)
    asked, wrong = hand(made, slug, lot) if who else everything
    asked += [("Judge", slipped(slug, slip, lot)) for slip in wrong]
    lines = [f"# Oral cards: {title}{f', for {who}' * bool(who)}", "", "*Keep this sheet on the examiner's side.*"]
    for at, (name, question) in enumerate(asked, start=1):
        must = "\n".join(f"- {each}" for each in question.must)
        lines.append(
            f"\n## {at}. {name}\n\n{question.ask}\n\nAn answer must contain\n\n{must}\n\n"
            f"*If it comes too easily:* {question.next}"
        )
    return "\n".join([*lines, ""])
