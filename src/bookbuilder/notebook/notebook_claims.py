"""Claims that a theorem decides, as a notebook has them: sentence, kind and terms of each, and its place on the page.

call       ``check(gap, bound, "OLS-2")``, ``at_most(…)`` or ``refute(…)`` in a code cell: it decides the claim it names
statement  the numbered one whose check cell has such a call (see ``statements``); its text is the claim's sentence
terms      that sentence, the criterion, the code of all cells with such a call, and that of the earlier statements
           which give it its names (sizes, seeds, instances), but for imports, comments and formatting
"""

import ast
import functools
import hashlib
import json
import re
import symtable
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from bookbuilder.notebook.statements import Statement, proved, shown_code, statements, texts_of
from bookbuilder.paths import cell_name
from derived.lab.findings import CALLS, JUDGED, hashed, kind_of

PARAMETERS = {"parameters", "injected-parameters"}  # their values belong to a run, and to no claim
READ = ("cell_type", "source", "metadata")  # of a cell; outputs say nothing here
_DISPLAY = re.compile(r"\$\$(.+?)\$\$[ \t]*(?:\([\w:-]+\))?", re.S)
_FORMULA = re.compile(r"((?<!\\)\$[^$]+\$)")
_ROLE = re.compile(r"\{([\w:]+)\}`([^`]+)`")


def decided(notebook: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """What the page says of each claim that a check cell decides, by its id: fields of its row, and the statement's
    ``label``. A claim with a fault is left out (``faults``)."""
    return {claim: fields for claim, fields in _read(notebook).items() if not isinstance(fields, str)}


def faults(notebook: Mapping[str, Any]) -> list[str]:
    """One line per claim that check cells cannot decide as they are."""
    cells, found = notebook["cells"], []
    wrong = {claim: fault for claim, fault in _read(notebook).items() if isinstance(fault, str)}
    wrong |= {
        claim: f"a bound needs a proof, and {fields['label']} has none on the page"
        for claim, fields in decided(notebook).items()
        if fields["kind"] == "bound" and not fields["proof"]
    }
    for place, call, claim in _calls(cells):
        if claim is None:
            fault = f"give {call} the id of a claim as its third argument, in quotes"
        elif claim in wrong:
            fault = f"{claim}: {wrong.pop(claim)}"
        else:
            continue
        found.append(f"{cell_name(place + 1, cells[place]['source'])}: {fault}")
    return found


def unmatched(notebook: Mapping[str, Any], claims: Sequence[str]) -> list[str]:
    """One line per claim that no check cell names, and per name in a check cell that is no such claim."""
    cells = notebook["cells"]
    named = {claim: place for place, _, claim in _calls(cells) if claim}
    return [f"claim {claim} is on_page, and no check cell names it" for claim in claims if claim not in named] + [
        f"{cell_name(place + 1, cells[place]['source'])}: {claim} is no claim that is on_page"
        for claim, place in named.items()
        if claim not in claims
    ]


def claims_of(cells: Sequence[Mapping[str, Any]]) -> dict[int, list[str]]:
    """The claims that each cell decides, by its place."""
    found: dict[int, list[str]] = {}
    for place, _, claim in _calls(cells):
        if claim and claim not in found.setdefault(place, []):
            found[place].append(claim)
    return found


def fill(notebook: Mapping[str, Any], rows: Sequence[dict[str, Any]]) -> None:
    """Add statement, terms and proof from the notebook to the kernel's rows."""
    on_page = decided(notebook)
    for row in (row for row in rows if row["id"] in on_page):
        row |= {name: value for name, value in on_page[row["id"]].items() if name in row}


def sentence(text: str, titles: Mapping[str, str]) -> str:
    """The text of a statement as one line that can be read alone: displays in the line, references by their titles.

    ValueError for what only the page can show, such as the number of a formula.

    >>> sentence("So\\n$$\\na=b.\\n$$ (eq-a)\\nas in {prf:ref}`x`, *always*.", {"x": "The layer"})
    'So $a=b.$ as in “The layer”, always.'
    """
    parts = _FORMULA.split(_DISPLAY.sub(lambda display: f"${display[1].strip()}$", text))
    return " ".join("".join(part if odd % 2 else _words(part, titles) for odd, part in enumerate(parts)).split())


def _words(text: str, titles: Mapping[str, str]) -> str:
    def title(role: re.Match[str]) -> str:
        if role[1] != "prf:ref" or not titles.get(role[2]):
            raise ValueError(f"its statement cannot be read alone: it has {role[0]}")
        return f"“{titles[role[2]]}”"

    return re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", _ROLE.sub(title, text)).replace("*", "")


def _read(notebook: Mapping[str, Any]) -> dict[str, dict[str, Any] | str]:
    """The fields of each claim, or what is wrong with it."""
    return _read_cells(json.dumps([{part: cell.get(part) for part in READ} for cell in notebook["cells"]]))


@functools.lru_cache(maxsize=64)  # a build asks six times for the claims of each chapter
def _read_cells(written: str) -> dict[str, dict[str, Any] | str]:
    cells = json.loads(written)
    stated, texts = statements({"cells": cells}), texts_of({"cells": cells})
    titles = {each.label: each.title for each in stated}
    named: dict[str, list[tuple[int, str]]] = {}
    for place, call, claim in _calls(cells):
        if claim:
            named.setdefault(claim, []).append((place, call))
    found: dict[str, dict[str, Any] | str] = {}
    first: dict[str, str] = {}  # the claim of each statement
    for claim, calls in named.items():
        try:
            about = _statement(stated, {place for place, _ in calls})
            if first.setdefault(about.label, claim) != claim:
                raise ValueError(
                    f"{about.label} is the statement of {first[about.label]}; give both one id, or split it"
                )
            text = sentence(texts[about.label], titles)
            kind = kind_of(call for _, call in calls)
        except ValueError as error:
            found[claim] = str(error)
            continue
        proof = about.label if kind == "bound" and about.label in proved(cells) else ""
        places = dict.fromkeys(place for place, _ in calls)
        codes = [code for place in places for code in (*_behind(cells, place), _normal(_source(cells[place])))]
        found[claim] = {"label": about.label, "kind": kind, "proof": proof} | _terms(text, kind, codes)
    return found


def _terms(text: str, kind: str, codes: Sequence[str]) -> dict[str, Any]:
    code = hashlib.sha256("\0".join(codes).encode()).hexdigest()[:16]
    terms = {
        "statement": text,
        "criterion": JUDGED[kind][1],
        "accept": [None, 1.0],
        "configuration": {"check cell": code},
    }
    return terms | {"terms": hashed(terms)}


def _statement(stated: Sequence[Statement], places: set[int]) -> Statement:
    """The one statement whose check cell is among these."""
    found = [each for each in stated if each.check in places]
    if len(found) != 1:
        names = ", ".join(each.name for each in found)
        raise ValueError(
            f"its cell checks {names}; give each its own check cell"
            if found
            else "its cell is the check cell of no statement; name one in the cell's metadata, "
            'derived: {"checks": ["label"]}'
        )
    return found[0]


def _behind(cells: Sequence[Mapping[str, Any]], place: int) -> list[str]:
    """The statements of earlier code cells that a cell's names come from, and theirs, in the page's order."""
    runs = [cell for cell in cells[:place] if cell["cell_type"] == "code"]
    own = [cell for cell in runs if not PARAMETERS & {*cell["metadata"].get("tags", [])}]
    earlier = [each for cell in own for each in _statements(_source(cell))]
    wanted, found = _wanted(_statements(_normal(_source(cells[place])))), []
    for each in reversed(earlier):
        if each.gives & wanted:
            wanted = wanted - each.resets | each.reads
            found.append(each.code)
    return found[::-1]


class _Line(NamedTuple):
    """A statement: its code, and the names that it reads, gives, and gives whatever they were before."""

    code: str
    reads: set[str]
    gives: set[str]
    resets: set[str]


@functools.cache
def _statements(code: str) -> tuple[_Line, ...]:
    """What a cell does, but for imports."""
    try:
        body = ast.parse(code).body
    except SyntaxError:  # a line of IPython
        return ()
    return tuple(_line(node) for node in body if not isinstance(node, ast.Import | ast.ImportFrom))


def _line(node: ast.stmt) -> _Line:
    code, inside = _written(node), []
    if isinstance(node, ast.For | ast.While | ast.If | ast.With):
        inside = [_line(each) for each in (*node.body, *getattr(node, "orelse", ()))]
        node.body, node.orelse = [ast.Pass()], []
    names = symtable.symtable(ast.unparse(Apart().visit(node)), "cell", "exec")
    symbols = names.get_symbols()
    reads = {each.get_name() for each in symbols if each.is_referenced()} | _free(names)
    gives = {each.get_name() for each in symbols if each.is_assigned() or each.is_namespace()}
    return _Line(code, reads | (_wanted(inside) - gives), gives.union(*(each.gives for each in inside)), gives)


class _Quoted(ast.NodeTransformer):
    """f-strings as Python 3.11 writes them: since 3.12 what stands inside may have the quotes of the whole."""

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.Name:
        parts = "".join(self._inside(each) for each in node.values)
        quote = next(each for each in ("'", '"', '"""', "'''") if each not in parts and not parts.endswith(each[0]))
        return ast.Name(f"f{quote}{parts}{quote}", ast.Load())

    def visit_FormattedValue(self, node: ast.FormattedValue) -> ast.FormattedValue:
        node.value = self.visit(node.value)
        if node.format_spec:
            node.format_spec.values = [self.visit(each) for each in node.format_spec.values]
        return node

    def _inside(self, part: ast.expr) -> str:
        text = ast.unparse(ast.JoinedStr([self.visit(part)]))[1:]
        width = 3 if text.startswith(('"""', "'''")) else 1
        return text[width:-width]


def _written(node: ast.AST) -> str:
    """The code of a node, the same in every Python."""
    return ast.unparse(_Quoted().visit(node))


class Apart(ast.NodeTransformer):
    """Comprehensions as generators, whose names are their own: those of a list count outside since Python 3.12."""

    def visit_ListComp(self, node: ast.ListComp | ast.SetComp) -> ast.GeneratorExp:
        """Keep element and loops."""
        self.generic_visit(node)
        return ast.GeneratorExp(node.elt, node.generators)

    visit_SetComp = visit_ListComp

    def visit_DictComp(self, node: ast.DictComp) -> ast.GeneratorExp:
        """Make a pair of key and value."""
        self.generic_visit(node)
        return ast.GeneratorExp(ast.Tuple([node.key, node.value], ast.Load()), node.generators)


def _wanted(lines: Sequence[_Line]) -> set[str]:
    """The names that must be there before the first of these statements."""
    wanted: set[str] = set()
    for each in reversed(lines):
        wanted = wanted - each.resets | each.reads
    return wanted


def _free(names: symtable.SymbolTable) -> set[str]:
    """What functions and comprehensions read from outside."""
    inner = {each.get_name() for child in names.get_children() for each in child.get_symbols() if each.is_global()}
    return inner.union(*map(_free, names.get_children()))


def _source(cell: Mapping[str, Any]) -> str:
    return "".join(cell["source"])


@functools.cache  # the code of a cell belongs to many claims
def _normal(code: str) -> str:
    """Code without its comments, its formatting and the controls of the calls that decide."""
    tree = ast.parse(code)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in CALLS:
            node.keywords = [each for each in node.keywords if each.arg != "control"]
    return _written(tree)


def _calls(cells: Sequence[Mapping[str, Any]]) -> Iterator[tuple[int, str, str | None]]:
    """Place, name and claim of each call that decides one, in their order; None for a name that is computed."""
    for place, node in _nodes(cells):
        match node:
            case ast.Call(func=ast.Name(id=call), args=[_, _, named]):
                yield place, call, named.value if isinstance(named, ast.Constant) else None
            case ast.Call(func=ast.Name(id=call), keywords=keywords) if any(one.arg == "claim" for one in keywords):
                yield place, call, None


def _nodes(cells: Sequence[Mapping[str, Any]]) -> Iterator[tuple[int, ast.Call]]:
    """Place and node of each call that can decide a claim."""
    for place, cell in enumerate(cells):
        yield from ((place, node) for node in _deciding(_source(cell) if shown_code(cell) else ""))


@functools.cache  # each claim asks for the calls of its whole notebook
def _deciding(code: str) -> tuple[ast.Call, ...]:
    try:
        nodes = ast.walk(ast.parse(code))
    except SyntaxError:  # a line of IPython
        return ()
    calls = (node for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Name))
    return tuple(node for node in calls if node.func.id in CALLS)
