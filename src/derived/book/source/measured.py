"""How each claim is measured, as its source has it: a hash for the committed ledger, beside the hash of its terms.

measure   the expression that a claim gives for its measure, and what it calls in the topics, through others
by hand   a claim made by a function of its own file: the whole call, and that function
"""

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from derived.lab.findings import hashed
from derived.lab.sources import what_runs

WORDS = ("identity", "bound", "refuted", "statistic", "computed", "reported")  # of ``lab.claims``
ID = re.compile(r"[A-Z]+-[A-Z]?\d+\w*(\.\w*)?")
PLACE = 3  # of the measure among their arguments: id, statement, experiment, measure


def measure(root: Path, slug: str, id: str) -> str | None:
    """The hash of how a claim is measured; None for a check cell, whose terms hold its code."""
    files = sorted((root / "src/derived/papers" / slug).glob("*.py"))
    found = _hashes(tuple((file, file.stat().st_mtime_ns) for file in files))
    return found.get(id) or next(
        (found[begin] for begin in found if begin.endswith(".") and id.startswith(begin)), None
    )


def ids(root: Path, slug: str) -> list[str]:
    """The ids of the claims that a chapter's sources state, but for those that a loop makes."""
    return [*dict.fromkeys(_id(call) for tree in _trees(root, slug) for call in _stated(tree))]


def bare(root: Path, slug: str) -> list[str]:
    """Those that say themselves neither on which proof they rest nor, with ``unseen``, why they cannot be run."""
    found: dict[str, None] = {}
    for tree in _trees(root, slug):
        made = {each.name for each in tree.body if isinstance(each, ast.FunctionDef) and _makes(each, {"unseen"})}
        for call in _stated(tree):
            if _name(call) not in made | {"unseen"} and not any(each.arg == "proof" for each in call.keywords):
                found[_id(call)] = None
    return [*found]


def _trees(root: Path, slug: str) -> Iterator[ast.Module]:
    for file in sorted((root / "src/derived/papers" / slug).glob("*.py")):
        yield ast.parse(file.read_text("utf-8"), str(file))


def _stated(tree: ast.Module) -> Iterator[ast.Call]:
    """The calls that state a claim."""
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        if ID.fullmatch(id := _id(call)) and not id.endswith("."):
            yield call


def _makes(function: ast.FunctionDef, words: set[str]) -> bool:
    """Whether a function calls one of these words."""
    return any(_name(each) in words for each in ast.walk(function))


@cache
def _hashes(files: tuple[tuple[Path, int], ...]) -> Mapping[str, str]:
    """The hash by a claim's id, or by what the ids that a loop makes begin with, such as ``T-1.``."""
    room = {file.stem: ast.parse(file.read_text("utf-8"), str(file)) for file, _ in files}
    defined = {topic: dict(_defined(tree)) for topic, tree in room.items()}
    found = {}
    for topic, tree in room.items():
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
            if ID.fullmatch(id := _id(call)) and (how := _measure(call, defined[topic])) is not None:
                found[id] = hashed(sorted(_reached(how, topic, defined)))
    return found


def _id(call: ast.Call) -> str:
    """The first argument of a call, if it is a text, or the text that it begins with; else nothing."""
    first = call.args[0] if call.args else None
    while isinstance(first, ast.Starred | ast.Tuple | ast.JoinedStr):
        parts = {ast.Starred: "value", ast.Tuple: "elts", ast.JoinedStr: "values"}
        inside = getattr(first, parts[type(first)])
        first = next(iter(inside), None) if isinstance(inside, list) else inside
    return str(getattr(first, "value", ""))


def _defined(tree: ast.Module) -> Iterator[tuple[str, ast.stmt]]:
    """The names that a file binds, each with its statement."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name, node
        elif isinstance(node, ast.ImportFrom) and node.level == 1:
            yield from ((alias.asname or alias.name, node) for alias in node.names)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from ((each.id, node) for one in targets for each in ast.walk(one) if isinstance(each, ast.Name))


def _measure(call: ast.Call, here: Mapping[str, ast.stmt]) -> ast.AST | None:
    """What in a call that states a claim says how it is measured: the measure, or all of it if made by hand."""
    if (name := _name(call)) in WORDS:
        return next((word.value for word in call.keywords if word.arg == "measure"), None) or call.args[PLACE]
    return call if isinstance(made := here.get(name), ast.FunctionDef) and _makes(made, {*WORDS}) else None


def _name(node: ast.AST) -> str:
    return ast.unparse(node.func).rpartition(".")[2] if isinstance(node, ast.Call) else ""


def _reached(node: ast.AST, topic: str, defined: Mapping[str, Mapping[str, ast.stmt]]) -> set[str]:
    """What runs in an expression and in all that it names in the topics."""
    found, todo, seen = {what_runs(node)}, [(node, topic)], set()
    while todo:
        node, topic = todo.pop()
        for name in {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}:
            statement, place = defined[topic].get(name), topic
            if isinstance(statement, ast.ImportFrom):
                place = statement.module or ""
                statement = defined.get(place, {}).get(
                    next(a.name for a in statement.names if name in (a.asname, a.name))
                )
            if statement is not None and (place, name) not in seen:
                seen.add((place, name))
                found.add(what_runs(statement))
                todo.append((statement, place))
    return found
