"""Breaks one line of a pencil in every way that counts: it still runs, and some input tells it from the whole one.

mutation   an operator, a comparison, a constant, or least for greatest, changed in a function that a subject calls
witness    arguments at which the subject's value differs; ``shortened`` replaces its numbers by shorter ones
"""

import ast
import copy
import random
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from derived.lab.court import convicts, differ, length
from derived.lab.subjects import Point, Subject, moved, pencil

TRIES = 24  # points at which a mutation must differ once and never stop
SWAPS = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult}
TURNS = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}
NAMES = {"max": "min", "min": "max", "sin": "cos", "cos": "sin"}
SHORTER = (0, 1, 2, 3, 4, 5, 6, 0.0, 1.0, 2.0, 0.5, 0.2, 0.1, -1.0, -1)
LAWS = {2: ([1, 0], [0, 1], [0.5, 0.5]), 3: ([1, 0, 0], [0, 1, 0], [0, 0, 1], [0.5, 0.5, 0], [0.5, 0, 0.5])}


class Change(NamedTuple):
    """An expression of a function before and after it was changed."""

    function: str
    before: str
    after: str


class Mutant(NamedTuple):
    """A broken pencil, what was changed in it, a short witness, the share of drawn points that show it, and the length
    of the middle one of those points."""

    subject: int  # whose value shows it
    broken: str
    change: Change
    witness: Point
    share: float
    usual: int


def mutations(source: str, called: frozenset[str]) -> Iterator[tuple[str, Change]]:
    """Yield pencils with one change in one of the named functions, and the change."""
    tree = ast.parse(source)
    for function in tree.body:
        if isinstance(function, ast.FunctionDef) and function.name in called:
            whole, own = ast.unparse(tree), ast.unparse(function)
            for before, after in _changes(function):
                yield whole.replace(own, ast.unparse(function)), Change(function.name, before, after)


def _changes(function: ast.FunctionDef) -> Iterator[tuple[str, str]]:
    """Make one change of a function after the other, and take it back; a number is told with what it is part of."""
    for parent in ast.walk(function):
        for node in ast.iter_child_nodes(parent):
            told = parent if isinstance(node, ast.Constant) else node
            for name, value in _changed(node):
                held, before = getattr(node, name), ast.unparse(told)
                setattr(node, name, value)
                yield before, ast.unparse(told)
                setattr(node, name, held)


def _changed(node: ast.AST) -> Iterator[tuple[str, Any]]:
    if isinstance(node, ast.BinOp) and type(node.op) in SWAPS:
        yield "op", SWAPS[type(node.op)]()
    elif isinstance(node, ast.Compare) and type(node.ops[0]) in TURNS:
        yield "ops", [TURNS[type(node.ops[0])](), *node.ops[1:]]
    elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
        yield "value", node.value + 1 if isinstance(node.value, int) else 2 * node.value + 0.5 * (node.value == 0)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
        func = copy.copy(node.func)
        field = "id" if isinstance(func, ast.Name) else "attr"
        if getattr(func, field) in NAMES:
            setattr(func, field, NAMES[getattr(func, field)])
            yield "func", func


def called(source: str, call: str) -> frozenset[str]:
    """The functions of a pencil that a call needs, those that they call included."""
    bodies = {each.name: each for each in ast.parse(source).body if isinstance(each, ast.FunctionDef)}
    found: set[str] = set()
    waiting: list[ast.AST] = [ast.parse(call)]
    while waiting:
        names = {node.id for node in ast.walk(waiting.pop()) if isinstance(node, ast.Name)}
        fresh = (names & bodies.keys()) - found
        found |= fresh
        waiting += [bodies[name] for name in fresh]
    return frozenset(found)


def viable(source: str, subjects: Sequence[Subject]) -> list[Mutant]:
    """List the mutations that some subject shows, each with the subject that shows it most rarely."""
    healthy, found = pencil(source), []
    drawn = [[each.point(random.Random(f"point {at}")) for at in range(TRIES)] for each in subjects]
    right = [[each.value(healthy, point) for point in points] for each, points in zip(subjects, drawn, strict=True)]
    needs = [called(source, each.call) for each in subjects]
    for broken, change in mutations(source, frozenset().union(*needs)):
        names = pencil(broken)
        shown = []
        for place, (subject, points) in enumerate(zip(subjects, drawn, strict=True)):
            wrong = _values(subject, names, points) if change.function in needs[place] else []
            hits = [point for point, *both in zip(points, right[place], wrong, strict=False) if differ(*both)]
            shown += [(len(hits) / TRIES, place, sorted(hits, key=length))] if hits else []
        if shown:
            share, place, hits = min(shown, key=lambda each: each[:2])
            witness = shortened(subjects[place], healthy, names, hits[0])
            found.append(Mutant(place, broken, change, witness, share, length(hits[len(hits) // 2])))
    return found


def _values(subject: Subject, names: dict, points: Sequence[Point]) -> list[Any]:
    """The values at these points, none where a pencil stops at one of them."""
    try:
        return [subject.value(names, point) for point in points]
    except Exception:  # a mutant may stop in any way
        return []


def shortened(subject: Subject, healthy: dict, broken: dict, point: Point) -> Point:
    """Replace numbers of a witness by shorter ones as long as it convicts."""
    for slot in subject.slots() * 2:
        tries = [moved(point, slot, value) for value in SHORTER]
        point = _shortest(subject, healthy, broken, point, tries)
    for name, kind in subject.draw.items():
        if kind.startswith("law"):
            tries = [point | {name: law} for law in LAWS[int(kind.split()[1])]]
            point = _shortest(subject, healthy, broken, point, tries)
    return point


def _shortest(subject: Subject, healthy: dict, broken: dict, point: Point, tries: list[Point]) -> Point:
    usual = length(point)
    shorter = sorted((each for each in tries if length(each) < usual), key=length)
    return next((each for each in shorter if convicts(subject, healthy, broken, each)), point)
