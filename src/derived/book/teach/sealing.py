"""Seals the answers in the wheel that a class gets: what it compares with is left as digests of numbers.

right     of a ``Derive``: its function goes, and what it needs alone; digests of its values at the points that a check
          tries, for each slot of names, take its place (``derived.lab.sealed``)
mistakes  are an answer but for a sign: those of a ``Derive`` become digests at a few points, enough to name them, and
          those of an ``Implement``, which no check reads, go
Not sealed: properties of an ``Implement``, which are theorems of the chapter.
"""

import ast
import base64
import hashlib
import importlib
import itertools
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from derived.book.teach import slicing
from derived.lab.exercises import POINTS, STOPS, Derive, Exercise, number, points, seeds
from derived.lab.sealed import NOTHING, digests, key

EXERCISES = "exercises.py"
TRIED = 3  # points at which a mistake is known


def seal(wheel: Path) -> None:
    """Rewrite a wheel of this package without the answers of its papers' exercises."""
    with zipfile.ZipFile(wheel) as opened:
        files = {name: opened.read(name) for name in opened.namelist()}
    for name in [name for name in files if name.startswith("derived/papers/") and name.endswith(f"/{EXERCISES}")]:
        slug = name.split("/")[2]
        files[name] = sealed(slug, files[name].decode("utf-8")).encode("utf-8")
    (record,) = (name for name in files if name.endswith(".dist-info/RECORD"))
    lines = [f"{name},sha256={_digest(raw)},{len(raw)}" for name, raw in files.items() if name != record]
    files[record] = "\n".join([*lines, f"{record},,", ""]).encode("utf-8")
    draft = wheel.with_suffix(".sealed")
    with zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED) as closed:
        for name, raw in files.items():
            closed.writestr(name, raw)
    draft.replace(wheel)


def _digest(raw: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(raw).digest()).decode().rstrip("=")


def sealed(slug: str, source: str) -> str:
    """Write the source of a paper's exercises without what computes their answers."""
    exercises = importlib.import_module(f"derived.papers.{slug}.exercises").EXERCISES
    tree = ast.parse(source)
    assigned = {
        node.targets[0].id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    changed = {}
    for (label, held), value in zip(exercises.items(), assigned["EXERCISES"].values, strict=True):
        parts = [held] if isinstance(held, Exercise) else held
        for part, call in zip(parts, _calls(value, assigned), strict=True):
            call.keywords = [each for each in call.keywords if each.arg not in ("right", "mistakes")]
            if isinstance(part, Derive):
                call.args[:1] = [_sealed("Sealed", _found(label, part, part.right))]
                words = [ast.Constant(each) for each in part.mistakes]
                known = [_sealed("Known", _found(label, part, each, TRIED)) for each in part.mistakes.values()]
                call.keywords.append(ast.keyword("mistakes", ast.Dict(words, known)))
            changed |= {node.lineno: ast.unparse(node) for node in tree.body if call in ast.walk(node)}
    texts = [changed.get(node.lineno, ast.get_source_segment(source, node)) for node in tree.body]
    head, body = texts[0], slicing.statements([*enumerate(texts[1:])])
    ends = [each for each in body if each.bound & {"EXERCISES", "check"}]
    kept = slicing.needed([each for each in body if each not in ends], ends)
    return "\n\n".join(
        [head, "from derived.lab.sealed import Known, Sealed", *(each.text for each in [*kept, *ends]), ""]
    )


def _calls(value: ast.expr, assigned: dict[str, ast.expr]) -> Iterator[ast.Call]:
    """Find the calls that make the parts of an exercise, in order."""
    if isinstance(value, ast.Name):
        yield from _calls(assigned[value.id], assigned)
    elif isinstance(value, ast.Tuple):
        for each in value.elts:
            yield from _calls(each, assigned)
    else:
        yield value


def _sealed(kind: str, found: dict[str, tuple]) -> ast.expr:
    return ast.parse(f"{kind}({found!r})", mode="eval").body


def _found(label: str, part: Derive, answer: Any, tried: int = POINTS) -> dict[str, tuple]:
    """Digest an answer at the first points of each slot; where there are no points it is the same for all."""
    slots = seeds(label)[: None if part.draw else 1]
    rows = [point for seed in slots for point in itertools.islice(points(seed, part.draw), tried)]
    return {key(point): _digested(part, answer, point) for point in rows}


def _digested(part: Derive, answer: Any, point: dict[str, Any]) -> tuple:
    """Digest an answer at a point; a mistake that has no number there is like no answer."""
    try:
        return tuple(digests(number(answer(**point) if callable(answer) else answer), part.digits))
    except STOPS:
        if answer is part.right:
            raise
        return tuple(NOTHING)
