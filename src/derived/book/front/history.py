"""Writes the news of the ledger for the page of history, and the changes of verdicts and criteria.

entry   the changes of one chapter on one day: new claims, claims that left the ledger (most went into another row),
        changed verdicts and changed criteria. Criteria come from the claims themselves; the rest is kept in
        results/news.json, which accepting a ledger extends.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from derived.book.judge import changes, news
from derived.book.page import pages

SHOWN = 5  # entries that are not folded

Row = dict[str, Any]


@dataclass
class Entry:
    """The changes of one chapter on one day."""

    date: str
    paper: str
    title: str
    claims: int = 0  # that are new
    gone: dict[str, list[str]] = field(default_factory=dict)  # ids of claims that left the ledger, by the reason
    verdicts: list[dict[str, Any]] = field(
        default_factory=list
    )  # id, tier, before, after, and whether it is in the ledger
    criteria: dict[str, None] = field(default_factory=dict)  # ids of claims, each once

    @property
    def parts(self) -> list[str]:
        """The changes counted, in a few words."""
        said = (
            (self.claims, "new claim", "new claims"),
            (sum(map(len, self.gone.values())), "claim that left the ledger", "claims that left the ledger"),
            (len(self.verdicts), "changed verdict", "changed verdicts"),
            (len(self.criteria), "changed criterion", "changed criteria"),
        )
        return [f"{count} {one if count == 1 else several}" for count, one, several in said if count]


def entries(root: Path, chapters: Sequence[pages.Chapter]) -> list[Entry]:
    """List the changes in these chapters, newest day first, chapters of a day in the order of the book."""
    found: dict[tuple[str, str], Entry] = {}
    titles = {chapter.slug: chapter.name for chapter in chapters}
    known = {row["id"] for chapter in chapters for row in chapter.rows}
    why = {claim: one["why"] for claim, told in changes.read(root).items() for one in told if one["kind"] == "left"}

    def entry(date: str, paper: str) -> Entry:
        return found.setdefault((date, paper), Entry(date, paper, titles[paper]))

    for record in news.read(root):
        if record["paper"] in titles:
            of_day = entry(record["date"], record["paper"])
            of_day.claims += record["claims"]
            for claim in record.get("gone", []):
                of_day.gone.setdefault(why.get(claim, ""), []).append(claim)
            for each in record["verdicts"]:
                _note(of_day.verdicts, {**each, "present": each["id"] in known})
    for chapter in chapters:
        for row in chapter.rows:
            for change in (one for one in row["changed"] if one["kind"] != "expected"):
                entry(change["date"], chapter.slug).criteria[row["id"]] = None
    order = list(titles)
    ordered = sorted((one for one in found.values() if one.parts), key=lambda one: order.index(one.paper))
    return sorted(ordered, key=lambda one: one.date, reverse=True)


def _note(verdicts: list[dict[str, Any]], change: dict[str, Any]) -> None:
    """Add a change to those of a day, merging changes of one claim and dropping those that cancel."""
    earlier = [one for one in verdicts if (one["id"], one["tier"]) == (change["id"], change["tier"])]
    for one in earlier:
        verdicts.remove(one)
    before = earlier[0]["before"] if earlier else change["before"]
    if before != change["after"]:
        verdicts.append({**change, "before": before})


def latest(entries: Sequence[Entry]) -> str:
    """Write the entries, all but the newest folded. MyST."""
    return pages.raw(pages.html("news.html", latest=entries[:SHOWN], earlier=entries[SHOWN:]))


def verdicts(entries: Sequence[Entry]) -> str:
    """Write every change of a verdict, newest first. MyST."""
    changed = [(entry, change) for entry in entries for change in entry.verdicts]
    return pages.raw(pages.html("verdicts.html", changed=changed))


def history(chapters: Sequence[pages.Chapter]) -> str:
    """Write the changes of criteria made after rows existed, newest first, grouping claims that changed together."""
    groups: dict[tuple[str, ...], list[Row]] = {}
    for chapter in chapters:
        for row in chapter.rows:
            for change in row["changed"] if row["headline"] else ():
                key = (change["date"], chapter.slug, chapter.name, change["what"], change["why"])
                groups.setdefault(key, []).append(row)
    names = ("date", "slug", "name", "what", "why")
    changes = [dict(zip(names, key, strict=True), rows=rows) for key, rows in groups.items()]
    changes.sort(key=lambda change: change["date"], reverse=True)
    claims = {row["id"] for rows in groups.values() for row in rows}
    return pages.raw(pages.html("history.html", changes=changes, claims=len(claims)))
