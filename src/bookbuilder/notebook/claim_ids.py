"""The claims that the sources of a paper state, found without importing it."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ID = re.compile(r"[A-Z]+-[A-Z]?\d+\w*(\.\w*)?")
QUOTED = re.compile(rf"""\(\s*[*(f\s]*["']{ID.pattern}""")  # as the first argument of a call


def ids(root: Path, slug: str, judged: bool = False) -> list[str]:
    """The ids of the claims that a chapter's sources state, without ids that a loop makes; with ``judged`` only those
    of claims that can be run."""
    found = ((call, unseen) for tree in _trees(root, slug) for call, unseen in _stated(tree))
    return [*dict.fromkeys(_id(call) for call, unseen in found if not (judged and unseen))]


def _trees(root: Path, slug: str) -> Iterator[ast.Module]:
    for file in sorted((root / "src/derived/papers" / slug).rglob("*.py")):
        if QUOTED.search(text := file.read_text("utf-8")):
            yield ast.parse(text, str(file))


def _stated(tree: ast.Module) -> Iterator[tuple[ast.Call, bool]]:
    """The calls that state a claim, each with whether it is one that cannot be run."""
    unseen = {"unseen"}
    unseen |= {each.name for each in tree.body if isinstance(each, ast.FunctionDef) and _makes(each, "unseen")}
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        if ID.fullmatch(id := _id(call)) and not id.endswith("."):
            yield call, _name(call) in unseen


def _makes(function: ast.FunctionDef, word: str) -> bool:
    """Whether a function calls this word."""
    return any(_name(each) == word for each in ast.walk(function))


def _id(call: ast.Call) -> str:
    """The first argument of a call, if it is a text, or the text that it begins with; else nothing."""
    first = call.args[0] if call.args else None
    while isinstance(first, ast.Starred | ast.Tuple | ast.JoinedStr):
        parts = {ast.Starred: "value", ast.Tuple: "elts", ast.JoinedStr: "values"}
        inside = getattr(first, parts[type(first)])
        first = (inside or [None])[0] if isinstance(inside, list) else inside
    return str(getattr(first, "value", ""))


def _name(node: ast.AST) -> str:
    return ast.unparse(node.func).rpartition(".")[2] if isinstance(node, ast.Call) else ""
