"""What a notebook puts on its page: figures with their alt text, numbers for the prose, source, and its ledger."""

import ast
import html
import inspect
import io
import json
import re
import textwrap
from collections.abc import Callable, Sequence
from typing import Any

import matplotlib.pyplot as plt
from IPython.display import Markdown, display

from derived.lab.claims import Claim, Study, ledger, record_states
from derived.lab.names import FINDINGS


def show(figure: Any, *studies: Study) -> None:
    """Show a matplotlib figure as SVG. Its label (``figure.set_label``) is the alt text, computed from the data; the
    provenance of the studies goes to the caption."""
    alt = figure.get_label()
    if not alt:
        raise ValueError("the figure has no alt text: figures.f(rows) must call figure.set_label(...)")
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    plt.close(figure)  # or the inline backend shows it a second time
    provenance = "; ".join(dict.fromkeys(study.provenance() for study in studies))
    display(
        {"image/svg+xml": buffer.getvalue(), "text/plain": alt},
        metadata={"image/svg+xml": {"alt": alt, "provenance": provenance}},
        raw=True,
    )


def explorer(figure: Any, alt: str) -> None:
    """Show a Plotly figure whose sliders work without a kernel; ``alt`` says what there is to see."""
    figure.update_layout(meta={"alt": alt})
    display({"application/vnd.plotly.v1+json": json.loads(figure.to_json()), "text/plain": alt}, raw=True)


def glue(name: str, value: float | int | str) -> None:
    """Store a number for the prose, where ``{glue:text}`name:.3f` `` shows it; nothing is displayed here."""
    prefix = "application/papermill.record/"
    display(
        {f"{prefix}text/plain": repr(value)}, metadata={"scrapbook": {"name": name, "mime_prefix": prefix}}, raw=True
    )


def source(thing: Callable | type) -> Markdown:
    """The package's own source of a function or class, without its docstrings."""
    lines = textwrap.dedent(inspect.getsource(thing)).splitlines()
    for node in ast.walk(ast.parse("\n".join(lines))):
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node) is not None:
            first = node.body[0]
            lines[first.lineno - 1 : first.end_lineno] = [None] * (first.end_lineno - first.lineno + 1)
    code = "\n".join(line for line in lines if line is not None)
    return Markdown(f"```python\n{code}\n```")


def _maths(text: str) -> str:
    """HTML of a sentence with $…$, typeset both by Jupyter and by the site."""
    parts = re.split(r"\$([^$]+)\$", text)
    return "".join(
        f'<span class="math notranslate nohighlight">\\({html.escape(part)}\\)</span>' if odd % 2 else html.escape(part)
        for odd, part in enumerate(parts)
    )


def _number(row: dict[str, Any]) -> str:
    if row["value"] is None:
        return "–"
    interval = "" if row["low"] is None else f" [{row['low']:.4g}, {row['high']:.4g}]"
    return f"{row['value']:.4g}{interval}"


def _table(rows: Sequence[dict[str, Any]]) -> str:
    body = "".join(
        f"<tr><td>{row['id']}</td><td>{_maths(row['statement'])}</td><td>{_maths(row['paper_value'])}</td>"
        f"<td>{_number(row)}</td><td>{row['n'] or '–'}</td><td>{row['tier']}</td>"
        f'<td><span class="verdict verdict-{row["verdict"].replace(" ", "-")}">{row["verdict"]}</span>'
        f"{'<br>' + html.escape(row['reason']) if row['reason'] else ''}</td></tr>"
        for row in rows
    )
    names = ("claim", "statement", "paper", "measured", "n", "tier", "verdict")
    head = "".join(f'<th scope="col">{name}</th>' for name in names)
    return f'<table class="chapter-ledger"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


def report(paper: str, claims: Sequence[Claim], studies: Sequence[Study]) -> None:
    """Show this chapter's ledger (headlines), and hand all of it to the press as data in the cell's output."""
    rows = ledger(paper, claims, studies)
    findings = {"rows": rows, "records": record_states(claims, studies)}
    headlines = [row for row in rows if row["headline"]]
    text = "\n".join(f"{row['id']}: {row['verdict']}" for row in headlines)
    display({"text/html": _table(headlines), FINDINGS: findings, "text/plain": text}, raw=True)
