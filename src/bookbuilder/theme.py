"""Keeps of a style sheet the rules that the finished pages can use: those whose classes a page or a script names."""

import re
from collections.abc import Iterable, Set
from pathlib import Path

RULE = re.compile(r"([^{}]+)\{([^{}]*)\}")
EMPTY = re.compile(r"@(?:media|supports)[^{}]*\{\s*\}")
IN_PARENTHESES = re.compile(r"\([^()]*\)")
CLASS = re.compile(r"\.((?:[-\w]|\\.)+)")
COMMA = re.compile(r",(?![^()]*\))")
GIVEN = re.compile(r'class="([^"]*)"')
SCRIPT = re.compile(r"<script[^>]*>(.*?)</script>", re.S)
WORD = re.compile(r"[-\w]+")
BUILT = "bs-"  # Bootstrap's script makes names that begin so from pieces


def classes(pages: Iterable[Path], scripts: Iterable[Path]) -> set[str]:
    """Collect the classes of pages, and every word of a script, which may set it as a class."""
    found: set[str] = set()
    for page in pages:
        text = page.read_text("utf-8")
        found.update(*(given.split() for given in GIVEN.findall(text)), *map(WORD.findall, SCRIPT.findall(text)))
    return found.union(*(WORD.findall(script.read_text("utf-8")) for script in scripts))


def of_use(sheet: str, known: Set[str]) -> str:
    """Leave out selectors with an unknown class, rules without a selector, and conditions without a rule.

    >>> of_use(".a,.b .a{x:y}@media print{.b{x:y}}p:not(.b){x:y}", {"a"})
    '.a{x:y}p:not(.b){x:y}'
    """

    def used(selector: str) -> bool:
        while (bare := IN_PARENTHESES.sub("", selector)) != selector:
            selector = bare
        return all(name in known or name.startswith(BUILT) for name in CLASS.findall(selector))

    def kept(rule: re.Match[str]) -> str:
        before, semicolon, selectors = rule[1].rpartition(";")
        left = [each for each in COMMA.split(selectors) if used(each)]
        return before + semicolon + (f"{','.join(left)}{{{rule[2]}}}" if left else "")

    found = RULE.sub(kept, sheet)
    while (fewer := EMPTY.sub("", found)) != found:
        found = fewer
    return found
