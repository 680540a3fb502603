"""Selects the statements of a notebook that some of its cells need, by the names that they read.

statement  one of the top level of a code cell
bound      names that a statement gives a value, changes in place, or imports
read       names whose value it takes from before

What a call changes inside its arguments is not seen.
"""

import ast
import functools
import symtable
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bookbuilder.notebook.notebook_claims import Apart


@dataclass(frozen=True)
class Statement:
    """A top-level statement, the place of its cell, and its text with the comment behind it."""

    cell: int
    text: str
    is_import: bool
    bound: frozenset[str]
    read: frozenset[str]


def statements(sources: Sequence[tuple[int, str]]) -> list[Statement]:
    """Parse code cells, given as place and source, into statements; SyntaxError if a cell is not plain Python."""
    return [Statement(place, *each) for place, source in sources for each in _statements(source)]


@functools.cache  # a chapter's homework is made with and without its solutions
def _statements(source: str) -> list[tuple[str, bool, frozenset[str], frozenset[str]]]:
    """Parse a source into statements: text, whether they import, names bound and names read."""
    found, lines = [], source.split("\n")
    for node in ast.parse(source).body:
        first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", []))])
        text = "\n".join(lines[first - 1 : node.end_lineno])
        bound, read = names([node])
        is_import = isinstance(node, ast.Import | ast.ImportFrom)
        found.append((text, is_import, frozenset(bound), frozenset(read)))
    return found


def needed(before: Sequence[Statement], cells: Sequence[Statement]) -> list[Statement]:
    """Select the statements of ``before`` that those of ``cells`` need, in order."""
    wanted: set[str] = set()
    for each in reversed(cells):
        wanted = (wanted - each.bound) | each.read
    found = []
    for each in reversed(before):
        if each.bound & wanted:
            wanted = (wanted - each.bound) | each.read
            found.append(each)
    return found[::-1]


def names(body: Iterable[ast.stmt]) -> tuple[set[str], set[str]]:
    """Return the names that statements bind, and those that they read before binding them."""
    bound: set[str] = set()
    read: set[str] = set()
    for node in body:
        now, before = _names(node)
        read |= before - bound
        bound |= now
    return bound, read


def _names(node: ast.stmt) -> tuple[set[str], set[str]]:
    heads: list[tuple[set[str], set[str]]] = []
    match node:
        case ast.For():
            heads = [_own(ast.Expr(node.iter)), (_own(ast.Delete([node.target]))[0], set())]
        case ast.If() | ast.While():
            heads = [_own(ast.Expr(node.test))]
        case ast.With():
            for item in node.items:
                target = _own(ast.Delete([item.optional_vars]))[0] if item.optional_vars else set()
                heads += [_own(ast.Expr(item.context_expr)), (target, set())]
        case ast.FunctionDef() | ast.AsyncFunctionDef():  # changes nothing before it is called
            return _own(node)
        case _:
            bound, read = _own(node)
            changed = _changed(node)
            return bound | changed, read | changed
    bound, read = set(), set()
    for now, before in [*heads, names([*node.body, *getattr(node, "orelse", [])])]:
        read |= before - bound
        bound |= now
    return bound, read


def _own(node: ast.stmt) -> tuple[set[str], set[str]]:
    """Return names bound and read by Python's symbol table, inner functions included."""
    apart = Apart().visit(ast.parse(ast.unparse(node)))  # a copy: the statement itself is read on
    table = symtable.symtable(ast.unparse(apart), "cell", "exec")
    bound = {each.get_name() for each in table.get_symbols() if each.is_assigned() or each.is_imported()}
    read = {each.get_name() for each in table.get_symbols() if each.is_referenced()}
    inner = list(table.get_children())
    while inner:
        scope = inner.pop()
        inner += scope.get_children()
        read |= {each.get_name() for each in scope.get_symbols() if each.is_global() and each.is_referenced()}
    return bound, read


def _changed(node: ast.stmt) -> set[str]:
    """Return the names changed in place: x of x[0] = 1, x.y = 1 and x += 1."""
    found = set()
    for inner in ast.walk(node):
        target = inner.target if isinstance(inner, ast.AugAssign) else inner
        if isinstance(target, ast.Subscript | ast.Attribute) and isinstance(target.ctx, ast.Store):
            while isinstance(target, ast.Subscript | ast.Attribute):
                target = target.value
        elif not isinstance(inner, ast.AugAssign):
            continue
        if isinstance(target, ast.Name):
            found.add(target.id)
    return found
