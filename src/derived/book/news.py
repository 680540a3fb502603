"""What is new in the ledger: shown on the welcome page and on the history's, and offered as an Atom feed. The history
of criteria, from the claims themselves, stands on that page too.

entry   what happened in one chapter on one day: the claims that are new, those that left the ledger (most went into
        another row), the verdicts that changed and the criteria that changed. The last come from the claims
        themselves; the others are kept in results/news.json, written when a ledger is accepted.
"""

import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from derived.book import pages, written
from derived.book.house import write_whole

FILE = "results/news.json"
FEED = "news.xml"
ATOM = "http://www.w3.org/2005/Atom"
CHANGED = {"id": str, "tier": str, "before": str, "after": str}
RECORDS = [{"date": str, "paper": str, "claims": int, "gone?": [str], "verdicts": [CHANGED]}]  # the shape of the file
SHOWN = 5  # entries on the welcome page

Row = dict[str, Any]


@dataclass
class Entry:
    """What happened in one chapter on one day."""

    date: str
    paper: str
    title: str
    claims: int = 0  # that are new
    gone: list[str] = field(default_factory=list)  # ids of claims that left the ledger
    verdicts: list[dict[str, Any]] = field(default_factory=list)  # id, tier, before, after; stands: is in the ledger
    criteria: dict[str, None] = field(default_factory=dict)  # ids of claims, each once

    @property
    def parts(self) -> list[str]:
        """What happened, counted, in a few words."""
        said = (
            (self.claims, "new claim", "new claims"),
            (len(self.gone), "claim that left the ledger", "claims that left the ledger"),
            (len(self.verdicts), "changed verdict", "changed verdicts"),
            (len(self.criteria), "changed criterion", "changed criteria"),
        )
        return [f"{count} {one if count == 1 else several}" for count, one, several in said if count]


def compared(before: Sequence[Row], after: Sequence[Row], date: str) -> list[dict[str, Any]]:
    """What an accepted ledger changes, one record for each paper in which anything did."""
    old = {(row["paper"], row["id"], row["tier"]): row["verdict"] for row in before}
    known = dict.fromkeys(key[:2] for key in old)
    found = []
    for paper in dict.fromkeys(row["paper"] for row in after):
        rows = [row for row in after if row["paper"] == paper]
        verdicts = [
            {"id": row["id"], "tier": row["tier"], "before": was, "after": row["verdict"]}
            for row in rows
            if (was := old.get((paper, row["id"], row["tier"]), row["verdict"])) != row["verdict"]
        ]
        now = {row["id"] for row in rows}
        new = {claim for claim in now if (paper, claim) not in known}
        gone = [claim for name, claim in known if name == paper and claim not in now]
        if new or gone or verdicts:
            found.append({"date": date, "paper": paper, "claims": len(new), "gone": gone, "verdicts": verdicts})
    return found


def read(root: Path) -> list[dict[str, Any]]:
    """The records of accepted ledgers, oldest first."""
    return written.read(root / FILE, RECORDS)


def add(root: Path, records: Sequence[dict[str, Any]]) -> None:
    """Keep the records of a ledger that is accepted now; records are only ever added."""
    if records:
        write_whole(root / FILE, json.dumps([*read(root), *records], indent=1, ensure_ascii=False) + "\n")


def entries(root: Path, chapters: Sequence[pages.Chapter]) -> list[Entry]:
    """What happened in these chapters, the newest day first and in it the order of the book."""
    found: dict[tuple[str, str], Entry] = {}
    titles = {chapter.slug: chapter.name for chapter in chapters}
    standing = {row["id"] for chapter in chapters for row in chapter.rows}

    def entry(date: str, paper: str) -> Entry:
        return found.setdefault((date, paper), Entry(date, paper, titles[paper]))

    for record in read(root):
        if record["paper"] in titles:
            of_day = entry(record["date"], record["paper"])
            of_day.claims += record["claims"]
            of_day.gone += record.get("gone", [])
            for each in record["verdicts"]:
                _note(of_day.verdicts, {**each, "stands": each["id"] in standing})
    for chapter in chapters:
        for row in chapter.rows:
            for change in (one for one in row["changed"] if one["kind"] != "expected"):
                entry(change["date"], chapter.slug).criteria[row["id"]] = None
    order = list(titles)
    ordered = sorted((one for one in found.values() if one.parts), key=lambda one: order.index(one.paper))
    return sorted(ordered, key=lambda one: one.date, reverse=True)


def _note(verdicts: list[dict[str, Any]], change: dict[str, Any]) -> None:
    """Add a change to those of a day: two of one claim are one, and none where they undo each other."""
    earlier = [one for one in verdicts if (one["id"], one["tier"]) == (change["id"], change["tier"])]
    for one in earlier:
        verdicts.remove(one)
    before = earlier[0]["before"] if earlier else change["before"]
    if before != change["after"]:
        verdicts.append({**change, "before": before})


def latest(news: Sequence[Entry]) -> str:
    """The newest entries as HTML, with the way to all of them. MyST."""
    return pages.raw(pages.html("news.html", entries=news[:SHOWN], more=len(news) > SHOWN, feed=FEED))


def verdicts(news: Sequence[Entry]) -> str:
    """Every change of a verdict, the newest first. MyST."""
    changed = [(entry, change) for entry in news for change in entry.verdicts]
    return pages.raw(pages.html("verdicts.html", changed=changed, feed=FEED))


def history(chapters: Sequence[pages.Chapter]) -> str:
    """What changed in the terms of claims after rows of them existed, newest first; claims of one change together."""
    groups: dict[tuple[str, ...], list[Row]] = {}
    for chapter in chapters:
        for row in chapter.rows:
            for change in row["changed"] if row["headline"] else ():
                key = (change["date"], chapter.slug, chapter.name, change["what"], change["why"])
                groups.setdefault(key, []).append(row)
    changes = sorted(groups.items(), key=lambda group: group[0][0], reverse=True)
    claims = {row["id"] for rows in groups.values() for row in rows}
    return pages.raw(pages.html("history.html", changes=changes, claims=len(claims)))


def feed(news: Sequence[Entry], title: str, site: str) -> str:
    """The entries as an Atom feed; ``site`` is the address of the site, empty where it has none."""
    ElementTree.register_namespace("", ATOM)
    root = ElementTree.Element(f"{{{ATOM}}}feed")

    def put(parent: ElementTree.Element, name: str, text: str | None = None, **attributes: str) -> ElementTree.Element:
        element = ElementTree.SubElement(parent, f"{{{ATOM}}}{name}", attributes)
        element.text = text
        return element

    base = f"{site.rstrip('/')}/" if site else ""
    put(root, "title", f"{title}: what is new")
    put(root, "id", _urn(title))
    put(root, "updated", _moment(news[0].date if news else "2026-01-01"))
    put(root, "link", rel="self", href=f"{base}{FEED}")
    put(root, "link", href=f"{base}book/intro.html")
    put(put(root, "author"), "name", title)
    for one in news:
        item = put(root, "entry")
        put(item, "title", f"{one.title}: {', '.join(one.parts)}")
        put(item, "id", _urn(f"{title}/{one.date}/{one.paper}"))
        put(item, "updated", _moment(one.date))
        put(item, "link", href=f"{base}notebooks/{one.paper}.html")
        changes = [f"{each['id']} ({each['tier']}): {each['before']} → {each['after']}" for each in one.verdicts]
        if one.gone:
            changes.append(f"No rows of the ledger any more: {', '.join(one.gone)}")
        if one.criteria:
            changes.append(f"New criteria, with their reasons: {', '.join(one.criteria)}")
        put(item, "content", "\n".join(changes) or None, type="text")
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _urn(name: str) -> str:
    return uuid.uuid5(uuid.NAMESPACE_URL, name).urn


def _moment(day: str) -> str:
    return f"{day}T00:00:00Z"
