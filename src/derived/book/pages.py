"""Fragments of the site that are made from data: a chapter's card, the ledger, its totals, and the status page.

    finding      one chapter's findings file: who ran, where, how long, its ledger rows and the state of its records
    row          one claim at one tier; the headline row is the one of the largest tier that ran
    verdict key  how a row is shown: its verdict, with "fails" of a retelling apart from "fails" of a paper

Every fragment is a `{raw} html` block of MyST, because statements, cards and tables need more structure than
Markdown has; maths in it is marked up as Sphinx does it, so that MathJax typesets it like the rest of the page.
"""

import math
import re
from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import jinja2
from markupsafe import Markup, escape

# Verdict key: sign, words for one claim, words for several.
VERDICTS = {
    "holds": ("✓", "holds", "hold"),
    "fails": ("✗", "fails", "fail"),
    "retold": ("(✗)", "fails as retold", "fail as retold"),
    "undecided": ("?", "undecided", "undecided"),
    "reported": ("•", "reported", "reported"),
    "not-run": ("–", "not run", "not run"),
}
TIERS = ("ci", "cpu", "gpu")
# Source of a statement: one word, and who states it.
SOURCES = {
    "paper": ("paper", "the paper"),
    "digest": ("as retold", "a digest of the paper"),
    "repo": ("code", "the authors' code"),
    "prior": ("earlier", "earlier work"),
    "ours": ("ours", "this book"),
}

PLANNED = 10  # papers that the book is about
PUNCTUATION = tuple(".,;:)")  # must not begin a line after a formula

Finding = dict[str, Any]
Row = dict[str, Any]


@dataclass(frozen=True)
class Chapter:
    """What the pages say about one chapter."""

    slug: str
    facts: dict[str, Any]  # from the notebook's metadata: paper, claim, prerequisites, minutes_to_read, objectives
    finding: Finding
    exercises: int
    links: dict[str, str]

    @property
    def title(self) -> str:
        return self.facts["paper"]["title"]

    @property
    def rows(self) -> list[Row]:
        return self.finding["rows"]


def verdict_key(row: Row) -> str:
    """How a row is shown and counted; a failing retelling says nothing about the paper, so it is a class of its own."""
    if row["verdict"] == "fails" and row["source"] == "digest":
        return "retold"
    return row["verdict"].replace(" ", "-")


def headlines(rows: list[Row]) -> list[Row]:
    """One row per claim, each amendment right after the row that it amends."""
    chosen = [row for row in rows if row["headline"]]
    amendments = [row for row in chosen if row["amends"]]
    ordered = []
    for row in (row for row in chosen if not row["amends"]):
        ordered += [row, *_amending(row["id"], amendments)]
    return ordered + [row for row in amendments if row not in ordered]


def _amending(claim_id: str, amendments: list[Row]) -> list[Row]:
    """The rows that amend a claim, and the rows that amend those."""
    direct = [row for row in amendments if row["amends"] == claim_id]
    return [found for row in direct for found in (row, *_amending(row["id"], amendments))]


def counts(rows: list[Row]) -> dict[str, int]:
    """How many claims have each verdict key, in the order of VERDICTS."""
    found = Counter(verdict_key(row) for row in rows if row["headline"])
    return {key: found[key] for key in VERDICTS}


# Text ---------------------------------------------------------------------------------------------------------------


def typeset(text: Any) -> Markup:
    """HTML of a sentence with $…$ and `code`, escaped."""
    return Markup("").join(_piece(*found.groups()) for found in _PIECE.finditer(str(text)))


_PIECE = re.compile(r"(?<!\\)\$([^$]+)\$([.,;:)]?)|`([^`]+)`|((?:\\\$|[^$`])+|[$`])")


def _piece(maths: str | None, mark: str | None, code: str | None, plain: str | None) -> Markup:
    if maths is not None:
        formula = Markup('<span class="math notranslate nohighlight">\\({}\\)</span>').format(maths.strip())
        return Markup('<span class="nobreak">{}{}</span>').format(formula, mark) if mark else formula
    return Markup("<code>{}</code>").format(code) if code is not None else escape(plain.replace(r"\$", "$"))


def number(value: Any) -> Markup:
    """A number as a reader writes it: four significant digits, a power of ten where it is needed, – for none."""
    if value is None:
        return Markup("–")
    if isinstance(value, str):
        return typeset(value)
    if isinstance(value, bool) or not math.isfinite(value):
        return escape({math.inf: "∞", -math.inf: "−∞"}.get(value, value))
    if value == int(value) and abs(value) < 1e6:
        return Markup(f"{int(value)}".replace("-", "−"))
    mantissa, _, exponent = f"{value:.4g}".partition("e")
    shown = mantissa.replace("-", "−")
    if exponent:
        return Markup(f"{shown}\u2009×\u200910<sup>{int(exponent)}</sup>".replace("<sup>-", "<sup>−"))
    return Markup(shown)


def duration(seconds: float | None) -> str:
    """Seconds as 0.4 s, 38 s, 12 min or 1 h 20 min."""
    if seconds is None:
        return "–"
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 99.5:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"


def memory(megabytes: float | None) -> str:
    """Megabytes as 210 MB or 3.4 GB."""
    if megabytes is None:
        return "–"
    return f"{megabytes:.0f} MB" if megabytes < 1000 else f"{megabytes / 1000:.1f} GB"


def date(stamp: str | None) -> Markup:
    """The day of an ISO 8601 time, in an element whose age the page's script adds."""
    if not stamp:
        return Markup("–")
    moment = datetime.fromisoformat(stamp)
    return Markup('<time class="age" datetime="{}">{}</time>').format(moment.isoformat(), moment.date())


def words(key: str, count: int) -> str:
    """A count of claims: 1 holds, 2 hold."""
    return f"{count} {VERDICTS[key][1 if count == 1 else 2]}"


def pill(key: str, count: int | None = None) -> Markup:
    """A verdict, or a count of them, as a coloured label with a sign and words."""
    said = VERDICTS[key][1] if count is None else words(key, count)
    label = '<span class="verdict verdict-{}"><span aria-hidden="true">{}</span> {}</span>'
    return Markup(label).format(key, VERDICTS[key][0], said)


_templates = jinja2.Environment(
    loader=jinja2.PackageLoader("derived.book"),
    autoescape=True,
    trim_blocks=True,
    lstrip_blocks=True,
    undefined=jinja2.StrictUndefined,
)
_templates.filters |= {
    "typeset": typeset,
    "number": number,
    "duration": duration,
    "memory": memory,
    "date": date,
    "pill": pill,
    "words": words,
    "verdict_key": verdict_key,
}
_templates.globals |= {"VERDICTS": VERDICTS, "SOURCES": SOURCES, "TIERS": TIERS}


def html(template: str, **values: Any) -> str:
    """A template filled in."""
    return _templates.get_template(template).render(values)


def raw(content: str) -> str:
    """HTML as a block of MyST."""
    return f"```````{{raw}} html\n{content}\n```````"


# Fragments ----------------------------------------------------------------------------------------------------------


def card(chapter: Chapter) -> str:
    """What a chapter shows at its head: paper, claim, prerequisites, cost, verdicts, links, command. MyST."""
    values = {
        "chapter": chapter,
        "counts": counts(chapter.rows),
        "hardware": hardware(chapter.finding["records"]),
        "gpu_waits": any(row["tier"] == "gpu" and row["verdict"] == "not run" for row in chapter.rows),
    }
    top, bottom = html("card.html", **values).split("<!-- citation -->")
    paper = chapter.facts["paper"]
    arxiv = f" · [arXiv:{paper['arxiv']}](https://arxiv.org/abs/{paper['arxiv']})" if paper.get("arxiv") else ""
    return f"{raw(top)}\n\n{{cite:p}}`{paper['bibkey']}`{arxiv}\n\n{raw(bottom)}"


def hardware(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The records that exist, those of one tier, machine and state together: their names and the newest date."""
    groups: dict[tuple, list[dict[str, Any]]] = {}
    for record in records:
        if record["state"] != "missing":
            groups.setdefault((record["tier"], record["device"], record["state"]), []).append(record)
    return [
        {
            **{"tier": tier, "device": device, "state": state},
            **{"names": [one["experiment"] for one in group], "date": max(one["date"] for one in group)},
        }
        for (tier, device, state), group in groups.items()
    ]


def totals(chapters: list[Chapter]) -> str:
    """The sums over the whole ledger, and one bar per chapter."""
    bars = [(chapter, counts(chapter.rows)) for chapter in chapters]
    everything = {key: sum(found[key] for _, found in bars) for key in VERDICTS}
    headline = Counter(row["source"] for chapter in chapters for row in chapter.rows if row["headline"])
    by = {source: headline[source] for source in SOURCES}
    return raw(html("totals.html", bars=bars, everything=everything, by=by, planned=max(PLANNED, len(bars))))


def ledger(chapters: list[Chapter]) -> str:
    """The table of all claims with its filters."""
    rows = [(c.slug, row, other_tiers(row, c.rows)) for c in chapters for row in headlines(c.rows)]
    seen = {key: sum(verdict_key(row) == key for _, row, _ in rows) for key in VERDICTS}
    titles = {chapter.slug: chapter.title for chapter in chapters}
    sources = [source for source in SOURCES if any(row["source"] == source for _, row, _ in rows)]
    return raw(html("ledger.html", rows=rows, titles=titles, seen=seen, sources=sources, page="ledger"))


def chapter_ledger(finding: Finding) -> str:
    """The rows of one chapter as plain HTML, for the output of its last cell."""
    rows = [(finding["chapter"], row, other_tiers(row, finding["rows"])) for row in headlines(finding["rows"])]
    return html("claims.html", rows=rows, titles={}, page="chapter")


def other_tiers(row: Row, rows: list[Row]) -> list[Row]:
    """The rows of the same claim at the other tiers."""
    return [other for other in rows if other["id"] == row["id"] and other["tier"] != row["tier"]]


def status(chapters: list[Chapter]) -> str:
    """How each chapter ran and where each record comes from."""
    versions: dict[str, set[str]] = {}
    for chapter in chapters:
        for name, version in chapter.finding["versions"].items():
            versions.setdefault(name, set()).add(version)
    return raw(html("status.html", chapters=chapters, versions=versions))


def course(chapters: list[Chapter]) -> str:
    """The chapters as course sections: objectives, minutes, exercises, downloads."""
    return raw(html("course.html", chapters=chapters))
