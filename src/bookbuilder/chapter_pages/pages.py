"""Writes the fragments of pages that come from data: cards, the ledger, and the status page.

    finding      one chapter's findings file: who ran, where, how long, its ledger rows and the state of its records
    row          one claim at one tier; the headline row is the one of the largest tier that ran
    verdict key  how a row is shown: its verdict, with "fails" of a summary apart from "fails" of a paper
    group        whose statement it is: the paper, its code, the paper from a summary, earlier work, ours

Every fragment is a `{raw} html` block of MyST, because statements, cards and tables need more structure than
Markdown has; maths in it is marked up as Sphinx does it, so that MathJax typesets it like the rest of the page.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Any

import jinja2
from markupsafe import Markup

from bookbuilder import format
from bookbuilder.notebook.evidence import Entry
from bookbuilder.notebook.reading import Minutes
from bookbuilder.notebook.statements import BADGES, SOURCES

# Verdict key: sign, words for one claim, words for several.
VERDICTS = {
    "holds": ("✓", "holds", "hold"),
    "fails": ("✗", "fails", "fail"),
    "retold": ("(✗)", "fails, from a summary", "fail, from a summary"),
    "refuted": ("≠", "refuted", "refuted"),
    "undecided": ("?", "undecided", "undecided"),
    "reported": ("•", "reported", "reported"),
    "not-run": ("–", "not run", "not run"),
}
GROUPS = {
    "paper": "the papers",
    "code": "their authors' code",
    "retold": "the papers, from a summary",
    "earlier": "earlier work",
    "ours": "this book",
}

THEIRS = {"paper": "the paper", "code": "its code", "retold": "the paper, from a summary"}  # of one chapter
SCALES = {"exact": "exact", "paper": "at the paper's scale", "ours": "at ours", "toy": "toy"}
PUNCTUATION = tuple(".,;:)")  # must not begin a line after a formula

Finding = dict[str, Any]
Row = dict[str, Any]


@dataclass(frozen=True)
class Chapter:
    """The data of one chapter that pages show."""

    slug: str
    facts: dict[str, Any]  # from the notebook's metadata: paper, claim, prerequisites, objectives
    finding: Finding
    exercises: int
    links: dict[str, str]
    minutes: Minutes
    sections: tuple[str, ...]  # their headings
    name: str  # its number in the book and its heading

    @property
    def title(self) -> str:
        """The title of the paper."""
        return self.facts["paper"]["title"]

    @property
    def rows(self) -> list[Row]:
        return self.finding["rows"]


def verdict_key(row: Row) -> str:
    """Return the class in which a row is shown and counted; a failing retelling says nothing about the paper."""
    if row["verdict"] == "fails" and row["source"] == "digest":
        return "retold"
    return row["verdict"].replace(" ", "-")


def group(row: Row) -> str:
    """Return whose statement a row is: paper, code, retold, earlier or ours."""
    return SOURCES[row["source"]][0]


def headlines(rows: list[Row]) -> list[Row]:
    """Select one row per claim, each amendment right after the row that it amends."""
    chosen = [row for row in rows if row["headline"]]
    amendments = [row for row in chosen if row["amends"]]
    ordered = []
    for row in (row for row in chosen if not row["amends"]):
        ordered += [row, *_amending(row["id"], amendments)]
    return ordered + [row for row in amendments if row not in ordered]


def _amending(claim_id: str, amendments: list[Row]) -> list[Row]:
    """Find the rows that amend a claim, and their own amendments."""
    direct = [row for row in amendments if row["amends"] == claim_id]
    return [found for row in direct for found in (row, *_amending(row["id"], amendments))]


def counts(rows: list[Row]) -> dict[str, int]:
    """Count the claims of each verdict key, in the order of VERDICTS."""
    found = Counter(verdict_key(row) for row in rows if row["headline"])
    return {key: found[key] for key in VERDICTS}


def grouped(rows: list[Row]) -> dict[str, dict[str, int]]:
    """Count the verdicts of each group that has claims, leaving out zeros."""
    found = {name: counts([row for row in rows if group(row) == name]) for name in GROUPS}
    return {name: {key: n for key, n in each.items() if n} for name, each in found.items() if any(each.values())}


def has_interval(row: Row) -> bool:
    """Tell whether the value of a row has an interval, possibly open at one end."""
    return row["low"] is not None or row["high"] is not None


def kind(row: Row) -> str:
    """Return how a claim is judged; a statistic without an interval is called computed."""
    computed = row["kind"] == "statistic" and row["value"] is not None and not has_interval(row)
    return "computed" if computed else row["kind"]


def sure(row: Row) -> str:
    """Say how sure a verdict is, in a few words."""
    n = {None: "no instance", 1: "one instance"}.get(row["n"], f"{row['n']} instances")
    if row["verdict"] == "not run" or (row["verdict"] == "undecided" and row["value"] is None):
        return row["reason"]
    if row["kind"] == "identity":
        return f"within its bound in {n}" if row["verdict"] == "holds" else f"beyond its bound, {n}"
    if row["kind"] == "bound":
        proved = "proved on the page; " if row["proof"] else "no proof yet; "
        return f"{proved}no counterexample in {n}" if row["verdict"] != "fails" else f"a counterexample in {n}"
    if row["kind"] == "counterexample" and not has_interval(row):
        return f"no witness in {n}" if row["verdict"] == "undecided" else "one exact witness"
    if not has_interval(row):
        return f"computed, without chance, in {n}" if row["kind"] == "statistic" else f"reported only; {n}"
    return f"an interval of 99.9\u00a0% over {n}"


def words(key: str, count: int) -> str:
    """Write a count of claims: 1 holds, 2 hold."""
    return f"{count} {VERDICTS[key][1 if count == 1 else 2]}"


def pill(key: str, count: int | None = None) -> Markup:
    """Write a verdict, or a count of them, as a coloured label with a sign and words."""
    said = VERDICTS[key][1] if count is None else words(key, count)
    label = '<span class="verdict verdict-{}"><span aria-hidden="true">{}</span> {}</span>'
    return Markup(label).format(key, VERDICTS[key][0], said)


_templates = jinja2.Environment(
    loader=jinja2.PackageLoader("bookbuilder"),
    autoescape=True,
    trim_blocks=True,
    lstrip_blocks=True,
    undefined=jinja2.StrictUndefined,
)
_templates.filters |= {
    "group": group,
    "kind": kind,
    "sure": sure,
    "typeset": format.typeset,
    "number": format.number,
    "duration": format.duration,
    "memory": format.memory,
    "breakable": format.breakable,
    "date": format.date,
    "pill": pill,
    "words": words,
    "spelt": format.spelt,
    "verdict_key": verdict_key,
}
_templates.policies["json.dumps_kwargs"] = {}  # keys keep their order
_templates.globals |= {"VERDICTS": VERDICTS, "SOURCES": SOURCES, "BADGES": BADGES, "GROUPS": GROUPS}
_templates.globals |= {"SCALES": SCALES, "THEIRS": THEIRS}


def html(template: str, **values: Any) -> str:
    """Render a template."""
    return _templates.get_template(template).render(values)


def raw(content: str) -> str:
    """Wrap HTML as a block of MyST; nothing is nothing, since a directive wants content."""
    return f"```````{{raw}} html\n{content}\n```````" if content.strip() else ""


# Fragments ----------------------------------------------------------------------------------------------------------


PICTURE = "<!-- picture -->"  # where the opening's picture goes


def card(chapter: Chapter) -> str:
    """Write the head of a chapter: what was read, the surprise, a place for the picture, three lines, the verdicts on
    the paper's claims, and the rest in a fold. MyST."""
    values = {
        "chapter": chapter,
        "groups": grouped(chapter.rows),
        "hardware": hardware(chapter.finding["records"]),
        "longest": longest(chapter.finding["records"]),
        "gpu_waits": any(r["tier"] == "gpu" and r["verdict"] == "not run" and r["experiment"] for r in chapter.rows),
    }
    top, bottom = html("opening.html", **values).split("<!-- citation -->")
    first, rest = top.split(PICTURE)
    paper = chapter.facts["paper"]
    arxiv = f" · [arXiv:{paper['arxiv']}](https://arxiv.org/abs/{paper['arxiv']})" if paper.get("arxiv") else ""
    cited = f"{{cite:p}}`{paper['bibkey']}`{arxiv}\n\n{raw(bottom)}"
    return f"{raw(first)}\n\n{PICTURE}\n\n{raw(rest)}\n\n{cited}"


def longest(records: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Find the record that took longest, None where there is none."""
    return max((one for one in records if one["state"] != "missing"), key=lambda one: one["seconds"], default=None)


def hardware(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Group the existing records by tier, machine and state: names, oldest and newest date."""
    groups: dict[tuple, list[dict[str, Any]]] = {}
    for record in records:
        if record["state"] != "missing":
            groups.setdefault((record["tier"], record["device"], record["state"]), []).append(record)
    return [
        {
            **{"tier": tier, "device": device, "state": state},
            **{"names": [one["experiment"] for one in group]},
            **{"first": min(one["date"] for one in group), "last": max(one["date"] for one in group)},
        }
        for (tier, device, state), group in groups.items()
    ]


def ledger(chapters: list[Chapter]) -> str:
    """Write the table of all claims with its filters."""
    values = {
        "titles": {chapter.slug: chapter.name for chapter in chapters},
        "rows": [row for chapter in chapters for row in chapter.rows if row["headline"]],
        "parts": [(_link(chapter), entries_of(chapter.rows)) for chapter in chapters],
    }
    return raw(html("ledger.html", page="ledger", more=0, **values))


def _link(chapter: Chapter) -> Markup:
    """Write a chapter's name as a link from a page of the book."""
    return Markup('<a href="../notebooks/{}.html">{}</a>').format(chapter.slug, chapter.name)


def chapter_ledger(finding: Finding) -> str:
    """Write the paper's claims of one chapter as plain HTML, for the output of its last cell."""
    entries = entries_of(finding["rows"])
    theirs = [entry for entry in entries if group(entry.row) in THEIRS]
    values = {"slug": finding["chapter"], "more": len(entries) - len(theirs), "parts": [(None, theirs)]}
    return html("ledger.html", page="chapter", **values)


def claim_previews(chapter: Chapter) -> dict[str, str]:
    """Write what the card of a link to each claim shows: its verdict and its sentence."""
    return {
        row["id"]: f"{pill(verdict_key(row))} {format.typeset(row['plain'] or row['statement'])}"
        for row in headlines(chapter.rows)
    }


def entries_of(rows: list[Row]) -> list[Entry]:
    """Make one entry per claim of a chapter."""
    shown = headlines(rows)
    return [
        Entry(row, other_tiers(row, rows), [other for other in shown if other["amends"] == row["id"]]) for row in shown
    ]


def other_tiers(row: Row, rows: list[Row]) -> list[Row]:
    """Find the rows of the same claim at the other tiers."""
    return [other for other in rows if other["id"] == row["id"] and other["tier"] != row["tier"]]


def status(chapters: list[Chapter]) -> str:
    """Write how each chapter ran, and where each record comes from."""
    versions: dict[str, set[str]] = {}
    for chapter in chapters:
        for name, version in chapter.finding["versions"].items():
            versions.setdefault(name, set()).add(version)
    return raw(html("status.html", chapters=chapters, versions=versions))


def errata(corrections: list[dict[str, str]]) -> str:
    """Write a chapter's corrections: the error and its place, the right version, who found it, how it was checked."""
    return raw(html("errata.html", corrections=corrections))


def statement(
    whose: str, label: str, proved: bool, checked: bool, tested: dict[str, list[Any]], claims: list[Row], slug: str
) -> dict[str, str]:
    """Write the badge of a numbered statement and its foot, which links its proof, check and tests.

    ``tested`` has the tests by label; ``claims`` rest on the statement.
    """
    values = {"label": label, "proved": proved, "checked": checked, "claims": claims, "slug": slug}
    values |= {"tests": tested.get(label, [])}
    badge = Markup('<span class="whose whose-{}">{}</span>').format(whose, BADGES[whose]) if whose else ""
    return {"badge": str(badge), "foot": html("statement.html", **values).strip()}


def cell_foot(slug: str, checked: list[str], decides: list[str], runs: dict[str, list[str]]) -> str:
    """Write the foot of a cell: the statements it checks, the claims it decides, and those of experiments it runs."""
    return html("cell.html", slug=slug, checked=checked, decides=decides, runs=runs).strip()


def evidence(
    chapter: Chapter,
    found: list[Any],
    proved: set[str],
    tests: dict[Any, str],
    bibtex: str,
    source: str,
) -> str:
    """Write the page of evidence for a chapter's claims. ``proved`` has the labels of proved results, ``tests`` the
    source of its tests; ``source`` is the address of the repository's files, or empty. The paper's claims
    come first."""
    found = sorted(found, key=lambda each: [*GROUPS].index(group(each.row)))
    groups, keys = ({by(each.row) for each in found} for by in (group, verdict_key))
    values = {"slug": chapter.slug, "title": chapter.title, "found": found, "proved": proved, "bibtex": bibtex}
    values |= {"tests": tests, "groups": {key: GROUPS[key] for key in GROUPS if key in groups}}
    values["verdicts"] = {key: VERDICTS[key][1] for key in VERDICTS if key in keys}
    head = f"---\nhtml_theme.sidebar_secondary.remove: true\n---\n\n# Evidence: {chapter.name}\n\n"
    return head + raw(html("evidence.html", address=source, page="evidence", **values)) + "\n"


def theorems(chapters: list[Chapter], rows: list[dict[str, Any]]) -> str:
    """Write the index of all numbered statements: slug, kind, title, label, badge and claims of each."""
    titles = {chapter.slug: chapter.name for chapter in chapters}
    kinds = {kind: kind for kind in sorted({row["kind"] for row in rows})}
    parts = [(_link(chapter), [row for row in rows if row["slug"] == chapter.slug]) for chapter in chapters]
    return raw(html("theorems.html", titles=titles, parts=parts, kinds=kinds))
