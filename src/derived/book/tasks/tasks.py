"""Makes the tasks of a chapter for one student, drawn by a name and a tutor's word, from the pencil and
``book/teach/<slug>.yml``.

subjects    quantities of the chapter, as ``derived.lab.subjects`` has them: the file lists words, call and draw
lot         what a student's tasks are drawn by: without the word nobody can draw them again, key included
forecasts   ``<who>-predict.ipynb``: some tasks of sign, order and number, without the code that computes them; this is
            in ``tutor/<who>-run.ipynb``, for the time after the seals
mutant      ``<who>-mutant.ipynb``: four callables of which one has a broken line

The notebooks need the package alone; the key for tutors says which callable it is, and where.
"""

import functools
import random
import re
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from derived.book import written
from derived.book.house import House, UserError
from derived.book.tasks import mutants, oral, quick
from derived.lab import court
from derived.lab.forecast import Forecast, Task, can_be_ordered, task
from derived.lab.subjects import Subject, pencil, told

FOLDER = "book/teach"
FORECASTS, CALLABLES = 5, 4
WORDS = (
    "In three sentences: which change of one line explains all that you saw, why does your input show it, and why "
    "would a shorter one not?"
)


class Asked(written.Shape):
    """A subject as written in the file."""

    words: str
    call: str
    draw: dict[str, str]
    of: str = ""  # the label of the statement to which it belongs


class Bank(NamedTuple):
    """What the tasks of a chapter are drawn from."""

    slug: str
    source: str
    subjects: tuple[Subject, ...]
    items: tuple[tuple[int, tuple], ...]  # a subject that can be ordered, and a number of its arguments
    exact: tuple[Subject, ...]  # those whose value theory gives
    mutants: tuple[mutants.Mutant, ...]  # of which each names one of these
    of: dict[str, str]  # the label of a statement by the words of a quantity


@functools.cache
def bank(root: Path, slug: str) -> Bank:
    """Read a chapter's subjects, and find all mutations that they show."""
    source = (root / f"pencil/{slug}.py").read_text("utf-8")
    listed = written.read(root / FOLDER / f"{slug}.yml", dict[str, list[Asked]]).get("subjects", [])
    subjects = tuple(Subject(each.words, each.call, each.draw) for each in listed)
    of = {each.words: each.of for each in listed}
    names = pencil(source)
    ordered = [at for at, each in enumerate(subjects) if can_be_ordered(names, each)]
    items = tuple((at, slot) for at in ordered for slot in subjects[at].slots())
    exact = tuple(each for each in subjects if not each.by_chance)
    return Bank(slug, source, subjects, items, exact, tuple(mutants.viable(source, exact)), of)


def forecasts(bank: Bank, lot: str) -> list[Task]:
    """Draw a student's forecasts, of different subjects as far as there are enough."""
    draw, names = random.Random(f"predict {bank.slug} {lot}"), pencil(bank.source)
    order = draw.sample(bank.items, len(bank.items))
    first = list({at: (at, slot) for at, slot in order}.values())[:FORECASTS]
    return [task(names, bank.subjects[at], slot, draw) for at, slot in first]


class Case(NamedTuple):
    """A student's callables: the subjects, which is broken, and the mutant."""

    subjects: tuple[Subject, ...]
    guilty: int
    mutant: mutants.Mutant


def case(bank: Bank, lot: str) -> Case:
    """Draw a student's callables."""
    draw = random.Random(f"mutant {bank.slug} {lot}")
    mutant = draw.choice(bank.mutants)
    others = draw.sample([at for at in range(len(bank.exact)) if at != mutant.subject], CALLABLES - 1)
    shown = draw.sample([mutant.subject, *others], CALLABLES)
    return Case(tuple(bank.exact[at] for at in shown), shown.index(mutant.subject), mutant)


# Notebooks ------------------------------------------------------------------------------------------------------------


def _notebook(title: str, words: str, cells: Sequence[NotebookNode]) -> NotebookNode:
    about = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    made = new_notebook(cells=[new_markdown_cell(f"# {title}\n\n{words}"), *cells], metadata=about)
    for at, cell in enumerate(made.cells):
        cell.id = f"cell-{at}"
    return made


def predict(bank: Bank, title: str, who: str, lot: str) -> NotebookNode:
    """Write the notebook in which a student seals forecasts; nothing in it computes what it asks."""
    cells = []
    for at, one in enumerate(forecasts(bank, lot), start=1):
        file = f"forecast-{at}.json"
        cells += [
            new_markdown_cell(f"## Forecast {at}\n\n{Forecast(one, file).questions()}"),
            new_code_cell(_asked(one, file), metadata={"jupyter": {"source_hidden": True}}),
            new_code_cell(
                "# yours: three probabilities, an order and how sure you are of it, an interval or None\n"
                'forecast.seal({"rises": 1 / 3, "falls": 1 / 3, "stays": 1 / 3}, order="ABC", sure=1 / 6, '
                "interval=None)"
            ),
        ]
    words = (
        f"For {who}. Think, then write a forecast and run its cell: this seals it in a file, and the first one counts. "
        "Hand in the digests that the cells print, and keep the files; you then get the notebook that runs what you "
        "forecast. Points are for calibration: who knows nothing and says so has none, who is sure and right has "
        "three a forecast, and who is sure and wrong loses. Derive with pencil and paper: whoever runs the chapter's "
        "code instead learns nothing about their own judgement."
    )
    return _notebook(f"Predict: {title}", words, cells)


def _asked(one: Task, file: str) -> str:
    return (
        "from derived.lab.forecast import Forecast, Task\nfrom derived.lab.subjects import Subject\n\n"
        f"subject = {one.subject!r}\n"
        f"task = Task(subject, {one.slot!r}, {one.point!r}, {one.to!r}, {one.calls!r})\n"
        f"forecast = Forecast(task, {file!r})"
    )


def run(bank: Bank, title: str, who: str, lot: str) -> NotebookNode:
    """Write the notebook that runs what a student sealed."""
    source = f"from derived.lab.forecast import Outcome\n\nsource = {bank.source!r}"
    cells = [new_code_cell(source, metadata={"jupyter": {"source_hidden": True}})]
    for at, one in enumerate(forecasts(bank, lot), start=1):
        file = f"forecast-{at}.json"
        cells += [
            new_markdown_cell(f"## Forecast {at}\n\n{Forecast(one, file).questions()}"),
            new_code_cell(_asked(one, file), metadata={"jupyter": {"source_hidden": True}}),
            new_code_cell("Outcome(source, forecast).run()"),
        ]
    words = f"For {who}, in the folder of the sealed files. The digests are those that were handed in."
    return _notebook(f"Run: {title}", words, cells)


def mutant(bank: Bank, title: str, who: str, lot: str) -> NotebookNode:
    """Write the notebook of a student's callables."""
    drawn = case(bank, lot)
    found = drawn.mutant
    shortest = court.length(found.witness)
    held = court.pack(bank.source, drawn.subjects, drawn.guilty, found.broken, shortest, found.usual)
    listed = "\n".join(
        f"| {letter} | {one.words} | {one.arguments()} |"
        for letter, one in zip(court.LETTERS, drawn.subjects, strict=False)
    )
    cells = [
        new_markdown_cell(f"| | returns | arguments |\n|---|---|---|\n{listed}"),
        new_code_cell(
            f"from derived.lab.court import Court\n\ncourt = Court.read({held!r})\n"
            f"{', '.join(court.LETTERS[:CALLABLES])} = court.callables().values()",
            metadata={"jupyter": {"source_hidden": True}},
        ),
        new_code_cell(f"A({court_arguments(drawn.subjects[0])})  # experiments, as many as you like"),
        new_code_cell(
            "# yours: a letter, what it should return, and the shortest input\n"
            f'court.charge("?", None, {court_arguments(drawn.subjects[0])})'
        ),
        new_markdown_cell(f"*{WORDS}*"),
    ]
    words = (
        f"For {who}. One of {CALLABLES} callables has one broken line. Find out which by experiments, and hand in its "
        "letter, what it should return, up to half a percent, and the shortest input at which it does not. The whole "
        "mechanism is public, so a loop that compares finds an input at once: one as long as drawn inputs are has no "
        "points, one as short as the shortest that is known has ten. The last cell is for words."
    )
    return _notebook(f"Find the mutant: {title}", words, cells)


def court_arguments(subject: Subject) -> str:
    """Arguments that a callable takes, as an example."""
    return told(subject.point(random.Random("an example")))


def key(bank: Bank, who: str, lot: str) -> dict[str, object]:
    """Write for the tutor which callable is broken, where, and a short witness."""
    drawn = case(bank, lot)
    subject, found = drawn.subjects[drawn.guilty], drawn.mutant
    right = subject.value(pencil(bank.source), found.witness)
    return {
        "who": who,
        "broken": court.LETTERS[drawn.guilty],
        "in": found.change.function,
        "has": f"`{found.change.after}`",
        "instead of": f"`{found.change.before}`",
        "what it returns": subject.words,
        "a short witness": f"`{told(found.witness)}`",
        "right there": right,
        "drawn inputs that convict": f"{found.share:.0%}",
    }


def write(root: Path, slug: str, title: str, who: str, lot: str, into: Path) -> list[Path]:
    """Write a student's two notebooks, and for the tutor the one that runs the forecasts."""
    held, made = bank(root, slug), []
    (into / "tutor").mkdir(parents=True, exist_ok=True)
    for name, make_one in ((f"{who}-predict", predict), (f"{who}-mutant", mutant), (f"tutor/{who}-run", run)):
        made.append(into / f"{name}.ipynb")
        nbformat.write(make_one(held, title, who, lot), made[-1])
    return made


def make(house: House, slugs: Sequence[str], who: Sequence[str], word: str = "") -> list[Path]:
    """Write under ``_build/tasks/<slug>`` quick questions for all, what each student gets, and for the tutor all oral
    cards, a hand of them for each, and the key, with the word that draws the same again; UserError for a name that
    makes no file name."""
    if wrong := [name for name in who if not re.fullmatch(r"[\w.-][\w .-]*", name)]:
        raise UserError(f"{wrong[0]!r} makes no file name: give letters, digits, '-', '_' and '.'")
    made, word = [], word or secrets.token_hex(4)
    lots = {name: f"{name} {word}" for name in who}
    for slug in slugs:
        into = house.build / "tasks" / slug
        (into / "tutor").mkdir(parents=True, exist_ok=True)
        title, held = _title(house, slug), bank(house.root, slug)
        made.append(into / "quick.html")
        made[-1].write_text(
            quick.page(title, held.source, quick.questions(held.source, held.exact, held.mutants)), "utf-8"
        )
        sheets = {"oral": oral.sheet(house.root, slug, title)}
        sheets |= {f"{name}-oral": oral.sheet(house.root, slug, title, name, lot) for name, lot in lots.items()}
        if who:
            rows = _table([key(held, name, lot) for name, lot in lots.items()])
            words = f"Drawn with `--word {word}`, which draws the same again. {WORDS} Five points, by the line below."
            sheets["key"] = f"# Who has which mutant: {title}\n\n{words}\n\n{rows}\n"
        for name, lot in lots.items():
            made += write(house.root, slug, title, name, lot, into)
        for name, text in sheets.items():
            path = into / "tutor" / f"{name}.md"
            path.write_text(text, "utf-8")
            made.append(path)
    return made


def _table(rows: Sequence[dict[str, object]]) -> str:
    lines = [[*rows[0]], ["---"] * len(rows[0]), *([*row.values()] for row in rows)]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def _title(house: House, slug: str) -> str:
    cells = nbformat.read(house.notebook(slug), as_version=4).cells
    return next(line[2:] for cell in cells for line in cell.source.splitlines() if line.startswith("# "))
