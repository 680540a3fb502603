"""Write the page of retracted statements from the dated changes of claims, shortest first."""

from collections.abc import Mapping, Sequence

from bookbuilder.chapter_pages import pages

TAKEN_BACK = {
    "criterion": "A criterion was wrong or judged the wrong thing",
    "measure": "A number was made in the wrong way",
    "range": "Limits were wrong",
    "unit": "The wrong thing was counted",
    "late": "A criterion was written after numbers were seen",
}


def page(chapters: Sequence[pages.Chapter], changes: Mapping[str, Sequence[dict[str, str]]]) -> str:
    """Write the changes by claim that took something back, by their kind; claims of this build are links. MyST."""
    standing = {row["id"] for chapter in chapters for row in chapter.rows}
    found: dict[str, dict[tuple[str, str, str], list[str]]] = {kind: {} for kind in TAKEN_BACK}
    for claim, told in changes.items():
        for one in told:
            found[one["kind"]].setdefault((one["date"], one["what"], one["why"]), []).append(claim)
    groups = {
        TAKEN_BACK[kind]: sorted(entries.items(), key=lambda entry: len(entry[0][1] + entry[0][2]))
        for kind, entries in found.items()
        if entries
    }
    return pages.raw(pages.html("wrong.html", groups=groups, standing=standing))
