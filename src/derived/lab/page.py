"""Functions for notebooks: figures with alt text, numbers for the prose, source, and the ledger."""

import ast
import inspect
import io
import json
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from IPython.display import Markdown, display
from numpy.typing import ArrayLike

from derived.lab.claims import Claim
from derived.lab.experiment import Experiment
from derived.lab.findings import FINDINGS, interval
from derived.lab.record import versions
from derived.lab.stats import Estimate, worst
from derived.lab.study import Check, Study, ledger, record_states, study


@dataclass(frozen=True)
class Studies:
    """What a page runs: called with an experiment it returns its study, and it holds the studies in the order of their
    first call. An experiment asked for again is not run again."""

    tier: str
    seed: int
    device: str
    held: dict[type[Experiment], Study] = field(default_factory=dict, repr=False)

    def __call__(self, experiment: type[Experiment]) -> Study:
        """The study of an experiment, live at the page's tier; ValueError for a tier that it lacks or does not know."""
        if experiment not in self.held:
            self.held[experiment] = study(experiment, self.tier, self.seed, self.device)
        return self.held[experiment]

    def __iter__(self) -> Iterator[Study]:
        return iter(self.held.values())


def studies(tier: str, seed: int, device: str) -> Studies:
    """The page's parameters bound once: ``run = studies(tier, seed, device)``, ``run(Experiment)``, and at the end
    ``report(paper, CLAIMS, run)``.

    >>> run = studies("ci", 0, "cpu")
    >>> run
    Studies(tier='ci', seed=0, device='cpu')
    >>> list(run)
    []
    """
    CHECKS.clear()
    return Studies(tier, seed, device)


def show(figure: Any, *studies: Study) -> None:
    """Show a matplotlib figure as SVG. Its label (``figure.set_label``) is the alt text, computed from the data; the
    provenance of the studies goes to the caption."""
    alt = figure.get_label()
    if not alt:
        raise ValueError("the figure has no alt text: figures.f(rows) must call figure.set_label(...)")
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    plt.close(figure)  # or the inline backend shows it a second time
    provenance = "; ".join(dict.fromkeys(part for study in studies for part in study.provenance()))
    display(
        {"image/svg+xml": buffer.getvalue(), "text/plain": alt},
        metadata={"image/svg+xml": {"alt": alt, "provenance": provenance}},
        raw=True,
    )


def explorer(figure: Any) -> None:
    """Show a Plotly figure whose sliders work without a kernel; its ``layout.meta["alt"]`` says what there is to see,
    and the builder refuses one without it."""
    alt = (figure.layout.meta or {}).get("alt", "")
    display({"application/vnd.plotly.v1+json": json.loads(figure.to_json()), "text/plain": alt}, raw=True)


def glue(name: str, value: float | int | str) -> None:
    """Store a number for the prose, where ``{glue:text}`name:.3f` `` shows it; nothing is displayed here."""
    value = value.item() if isinstance(value, np.generic) else value  # the page formats Python's numbers alone
    prefix = "application/papermill.record/"
    display(
        {f"{prefix}text/plain": repr(value)}, metadata={"scrapbook": {"name": name, "mime_prefix": prefix}}, raw=True
    )


CHECKS: dict[str, list[Check]] = {}  # by claim: what this kernel's check cells found since ``studies``


def check(gap: ArrayLike, bound: ArrayLike, claim: str = "", control: ArrayLike | None = None) -> None:
    """Say on the page how large the worst gap is and which share of its bound, over all instances; ``bound`` broadcasts
    to the shape of ``gap``. With the id of a claim this decides it (``lab.claims.on_page``). ``control`` is the gap of
    a construction that does nothing, which must exceed the bound. AssertionError where a gap exceeds its bound or is
    NaN, or where the control passes; ValueError for a gap below zero, in which an absolute value was forgotten.
    """
    if (np.asarray(gap, dtype=float) < 0).any():
        raise ValueError("a gap is below zero; give its absolute value, or say an inequality with at_most")
    found = _within("the worst gap", gap, bound)
    gap = np.max(np.asarray(gap, dtype=float))
    decided = _decide("check", found, claim, control, bound)
    print(f"worst gap {gap:.1e}, {found.value:.2g} of its bound, n = {found.n}{decided}")


def at_most(value: ArrayLike, bound: ArrayLike, claim: str = "", control: ArrayLike | None = None) -> None:
    """Say on the page which share of its bound a value has at most, over all instances: an inequality has no gap.
    ``bound``, ``claim`` and ``control`` as in ``check``. AssertionError where a value exceeds its bound or is NaN, or
    where the control passes."""
    found = _within("the largest value", value, bound)
    print(f"at most {found.value:.2g} of its bound, n = {found.n}{_decide('at_most', found, claim, control, bound)}")


def refute(gap: ArrayLike, limit: ArrayLike, claim: str = "") -> None:
    """Say on the page by how much the best witness against a statement misses it: how many times its ``limit``, which
    is what the statement would allow. ``claim`` as in ``check``. AssertionError where there is no witness."""
    found = _ratio(gap, limit)
    if not found.value > 1:
        raise AssertionError(f"no witness: the largest gap is {found.value:.3g} times its limit")
    print(f"refuted by {found.value:.3g} times its limit, n = {found.n}{_decide('refute', found, claim)}")


def _decide(call: str, found: Estimate, claim: str, control: ArrayLike | None = None, bound: ArrayLike = 1.0) -> str:
    """Keep what decides a claim; return its id and by how much the control fails, in words."""
    arm = None if control is None else _ratio(*np.broadcast_arrays(control, bound))
    if arm and not arm.value > 1:
        raise AssertionError(f"the control passes: {arm.value:.3g} of its bound; it must exceed it")
    if claim:
        CHECKS.setdefault(claim, []).append((call, found, arm))
    return (f" ({claim})" if claim else "") + (f"; the control has {arm.value:.3g} times the bound" if arm else "")


def confirm(facts: ArrayLike, words: str) -> None:
    """Say on the page, in ``words``, that something is so in every instance. AssertionError where it is not in one;
    ValueError for no instance, and for what is neither true nor false."""
    found = np.asarray(facts)
    if found.dtype != bool or not found.size:
        raise ValueError(f"{found.size} facts of type {found.dtype} prove nothing; give True or False, once or more")
    if not found.all():
        raise AssertionError(f"not so in {int((~found).sum())} of {found.size} instances: {words}")
    print(f"true in {found.size} of {found.size}: {words}")


def _within(name: str, value: ArrayLike, bound: ArrayLike) -> Estimate:
    found = _ratio(value, bound)
    if not found.value <= 1:
        raise AssertionError(f"{name} is {found.value:.3g} times its bound")
    return found


def _ratio(value: ArrayLike, bound: ArrayLike) -> Estimate:
    value, bound = np.asarray(value, dtype=float), np.asarray(bound, dtype=float)
    if np.isinf(bound).any():
        raise ValueError("a bound is infinite, so that nothing can exceed it; give a finite one")
    return worst(value, np.broadcast_to(bound, value.shape))


def worded(table: pd.DataFrame, **words: str) -> pd.DataFrame:
    """A table for readers: ``words`` replace names in its heads, those of columns, of the index, and of rows.

    >>> worded(pd.DataFrame({"kl": [0.5]}).rename_axis("V"), V="tokens", kl="KL").reset_index().columns.tolist()
    ['tokens', 'KL']
    """
    return table.rename(index=words, columns=words).rename_axis(index=words, columns=words)


def source(thing: Callable | type) -> Markdown:
    """The package's own source of a function or class, without its docstrings."""
    lines = textwrap.dedent(inspect.getsource(thing)).splitlines()
    for node in ast.walk(ast.parse("\n".join(lines))):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node) is not None:
            first = node.body[0]
            lines[first.lineno - 1 : first.end_lineno] = [None] * (first.end_lineno - first.lineno + 1)
    code = "\n".join(line for line in lines if line is not None)
    return Markdown(f"```python\n{code}\n```")


def _number(row: dict[str, Any]) -> str:
    if row["value"] is None:
        return "–"
    return " ".join(f"{row['value']:.4g} {interval(row['low'], row['high'])} {row['unit']}".split())


def _table(rows: Sequence[dict[str, Any]]) -> str:
    """The ledger as Jupyter shows it; the site puts its own table in place of one of this class."""
    shown = ["id", "statement", "paper_value", "measured", "n", "tier", "verdict", "reason"]
    table = pd.DataFrame([row | {"measured": _number(row)} for row in rows], dtype=object)
    with pd.option_context("display.max_colwidth", None):
        return table[shown].to_html(index=False, na_rep="–", classes="chapter-ledger")


def report(paper: str, claims: Sequence[Claim], run: Studies) -> None:
    """Show this chapter's ledger (headlines), and hand all of it to the builder in the cell's output; ``run`` is
    what ``studies`` returned. ValueError where a claim rests on an experiment that was not run."""
    found = list(run)
    rows = ledger(paper, claims, found, CHECKS, run.seed)
    on_page = [claim.id for claim in claims if claim.kind == "on page"]
    findings = {"rows": rows, "records": record_states(claims, found), "on_page": on_page}
    findings["versions"] = versions()
    headlines = [row for row in rows if row["headline"]]
    text = "\n".join(f"{row['id']}: {row['verdict']}" for row in headlines)
    display({"text/html": _table(headlines), FINDINGS: findings, "text/plain": text}, raw=True)
