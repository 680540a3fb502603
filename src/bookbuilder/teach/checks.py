"""Check the slides of a lecture: missing statements, and slides that do not fit.

fault   one line: what is wrong, and on which slide; the builder stops at it

Checked: each label is there, and once; a statement or figure that a slide refers to is shown before, or in the same
step; no statement or figure that uses a symbol of the setup's table comes before it, and any other symbol is shown
by itself, or on one side of a sign, before a formula needs it; no slide holds one short sentence; the minutes of a
proof are enough for it; there is slack, and there are pictures, one of them of something trained or real.
"""

import copy
import re
from collections.abc import Iterator, Sequence

from bs4 import NavigableString, Tag

from bookbuilder.notebook.lectures import Step
from bookbuilder.teach.slide_blocks import POINTS, Slide, Thing, claims_of, is_picture, of_class, plain_words, sentences

ORPHAN = 140  # a single sentence shorter than this does not fill a slide
CORE = {50: 45, 90: 75}  # minutes that cannot be dropped, at most
SLIDES = {50: 22}  # at most, the first two included
PICTURED = {50: 1 / 2, 90: 1 / 3, 180: 1 / 4}  # of the other slides, at least
WORDS, FORMULAS = 100, 6  # of a proof, a minute at the board
SKETCH = 1 / 3  # of the time of a proof, for its idea
_ATOM = re.compile(r"\\(?:mathrm|rm|mathcal|mathbb|operatorname|mathbf|tilde|hat|bar)\s*\{?\\?[A-Za-z]+|\\?[A-Za-z]+")
_GREEK = (
    "alpha beta gamma Gamma delta Delta epsilon varepsilon zeta eta theta Theta vartheta iota kappa lambda Lambda mu "
    "nu xi Xi pi Pi rho varrho sigma Sigma tau upsilon phi varphi Phi chi psi Psi omega Omega ell"
)
_NAME = re.compile(
    r"\\(?:hat|tilde|bar|mathcal|mathbb|mathbf)\s*\{?\s*(?:\\[A-Za-z]+|[A-Za-z])"
    rf"|\\(?:{_GREEK.replace(' ', '|')})(?![a-z])|(?<![A-Za-z\\])[A-Z]"
)
_UPRIGHT = re.compile(
    r"\\(?:mathrm|text|operatorname\*?|textrm|texttt)\s*\{[^}]*\}|\\rm\s*\w+|\\mathbb\s*\{?[PERNZ]\}?"
)
USUAL = {"I", "O", r"\mathcal N", r"\pi"}  # the identity, Landau's order, the normal distribution, the number
_LABEL = re.compile(r"(?<=[A-Za-z}])_(?:[A-Z]\b|\{[A-Z]+\})")  # W_Q: no symbol of its own
_INDEX = re.compile(r"[_^](?:\{(?:[^{}]|\{[^{}]*\})*\}|\\?\w+|\W)")
_ARGUMENTS = re.compile(r"([A-Za-z}])(?:\([^()]*\)|\[[^\[\]]*\])")
_BARE = re.compile(r"[\s(){}$.]|\\(?:[lr]angle|[()\]]|displaystyle|big[lr]?|left|right)")
_SIGN = re.compile(
    r":?=|\\(?:geq?|leq?|in|sim|to|colon|ne|mapsto|ll|gg|subset(?:eq)?|approx|propto|preceq|succeq)(?![a-z])|[<>|]|\\\|"
)
_UNDER = re.compile(r"\\(?:sum|prod|min|max|sup|inf|lim|int|bigcup|[a-z]*max|[a-z]*min)_(\{[^{}]*\}|\\?\w)")

# Time, pictures -----------------------------------------------------------------------------------------------------


def board(step: Step, known: dict[str, Thing]) -> float:
    """Estimate the minutes that the proofs of a step take at the board, from their words and formulas."""
    proofs = [note for label in step.show if label in known for note in known[label].notes if of_class(note, "proof")]
    words = sum(len(_without_formulas(proof).split()) for proof in proofs)
    return words / WORDS + sum(len(_formulas(proof)) for proof in proofs) / FORMULAS


def pace(steps: Sequence[Step], known: dict[str, Thing], aims: int) -> Iterator[str]:
    """Check that each step with a proof says how to treat it and has time for that, and which objectives there are."""
    for step in steps:
        need, name = board(step, known), " ".join(step.show)
        if bool(need) != bool(step.way):
            yield f"{name}: " + ("say as way: prove, sketch or quote" if need else "there is no proof, so no way")
        least = {"prove": need, "sketch": SKETCH * need}.get(step.way, 0.0)
        if step.minutes + 0.5 < least:
            yield f"{name}: to {step.way} it takes about {least:.1f} minutes, it has {step.minutes}"
        if not {*step.aims} <= {*range(1, aims + 1)}:
            yield f"{name}: the chapter has {aims} objectives, aims are {step.aims}"


def shape(
    minutes: int, steps: Sequence[Step], slides: Sequence[Slide], known: dict[str, Thing], trained: set[str]
) -> Iterator[str]:
    """Check that a lecture has slack, few slides, and of what the chapter has: pictures, the first at once, a live
    explorer, and a result of something trained or real."""
    core = sum(step.minutes for step in steps if step.show and not step.optional)
    if core > CORE.get(minutes, core):
        yield f"its core takes {core} minutes, at most {CORE[minutes]} leave room for questions"
    if len(slides) + 2 > SLIDES.get(minutes, len(slides) + 2):
        yield f"it has {len(slides) + 2} slides, at most {SLIDES[minutes]}"
    shown = [slide.picture for slide in slides if slide.picture is not None]
    there = [thing.parts[0] for thing in known.values() if thing.parts and is_picture(thing.parts[0])]
    least = min(PICTURED.get(minutes, 0.0) * len(slides), len(there))
    if len(shown) < least:
        yield f"{len(shown)} of {len(slides)} slides have a picture, at least {least:.0f} should"
    if there and not any(slide.picture is not None for slide in slides[:1]):
        yield "it opens without a picture: the first step shows one"
    kinds = {
        "an explorer": lambda picture: of_class(picture, "explorer"),
        "a figure of something trained or real": lambda picture: claims_of(picture) & trained,
    }
    for name, is_one in kinds.items():
        if any(map(is_one, there)) and not any(map(is_one, shown)):
            yield f"no slide has {name}"


def _without_formulas(tag: Tag) -> str:
    words = copy.copy(tag)
    for formula in words.select(".math"):
        formula.extract()
    return words.get_text(" ")


# References, words --------------------------------------------------------------------------------------------------


def quote(slides: list[Slide], known: dict[str, Thing]) -> Iterator[str]:
    """Quote equations from elsewhere where they are first referred to; yield references to what is not shown."""
    seen: set[str] = set()
    for slide in slides:
        step = [part for other in slides if other.step == slide.step for part in other.parts]
        seen |= {name for part in step for name in _ids(part)}
        told = [part for part in slide.parts if not lists_symbols(part)]
        for link in [link for part in told for link in part.select('a[href^="#"]')]:
            target = link["href"][1:]
            label = target.removeprefix("equation-")
            if target in seen or label not in known or known[label].parts[:1] == [] or _is_section(known[label]):
                continue
            if target == label and not _drop(link):
                yield f"{plain_words(slide.heading)} refers to {known[label].name}, which is not shown before"
            elif target != label:
                quoted = copy.copy(known[label].parts[0])
                del quoted["id"]
                quoted["class"] = [*quoted.get("class", []), "quoted"]
                slide.parts.append(quoted)
                seen.add(target)


_PARENTHESES = ((r"\s*\($", r"^\)"), (r"(?<=\()$", r"^, "), (r", $", r"^(?=\))"))


def _drop(link: Tag) -> bool:
    """Drop a list item, or a parenthesis, that refers to something not shown; the sentence reads without it."""
    point = link.find_parent("li")
    if point and (point.parent is None or len(point.parent.find_all("li", recursive=False)) > 1):
        point.extract()
        return True
    before, after = link.previous_sibling, link.next_sibling
    if not (isinstance(before, NavigableString) and isinstance(after, NavigableString)):
        return _drop_sentence(link)
    for left, right in _PARENTHESES:
        if re.search(left, before) and re.search(right, after):
            before.replace_with(re.sub(left, "", before))
            after.replace_with(re.sub(right, "", after))
            link.extract()
            return True
    return _drop_sentence(link)


def _drop_sentence(link: Tag) -> bool:
    """Drop the sentence of a text or caption that refers to something not shown; others must remain."""
    text = link.find_parent(class_="caption-text") or link.find_parent("p")
    if text is None or link.find_parent(class_="admonition", id=True):
        return False
    found, around = sentences(text), [link, *link.parents]
    for sentence in found:
        if len(found) > 1 and any(each is one for each in sentence for one in around):
            for each in sentence:
                each.extract()
            return True
    return False


def _is_section(thing: Thing) -> bool:
    return not thing.parts[0].get("id")


def _ids(part: Tag) -> set[str]:
    return {tag["id"] for tag in [part, *part.find_all(id=True)] if tag.get("id")}


def orphans(slides: list[Slide]) -> Iterator[str]:
    """Find slides with one short sentence alone, those that point to what is not on them, and half told figures."""
    for slide in slides:
        text = " ".join(slide.text.split())
        alone = len(slide.parts) == 1 and slide.parts[0].name == "p" and not slide.parts[0].select_one(".verdict")
        if alone and len(text) < ORPHAN:
            yield f"one short sentence alone on a slide: {text}"
        live = slide.picture is not None and slide.picture.name != "figure"
        if not live and (found := POINTS.search(_words(slide))):
            yield f"{plain_words(slide.heading)} points to what is not there: {found[0]}"
        caption = slide.picture.figcaption if slide.picture is not None else None
        told = caption.get_text(" ") if caption else ""
        if re.search(r"\bLeft[:,]", told) and not re.search(r"\bright\b", told, re.I):
            yield f"{plain_words(slide.heading)} has a caption that tells the left panel alone"


def _words(slide: Slide) -> str:
    """Join the words of a slide, without its code."""
    return " ".join(part.get_text(" ") for part in slide.parts if not part.select_one("pre"))


# Symbols ------------------------------------------------------------------------------------------------------------


def letters(formula: str) -> list[str]:
    """Extract the symbols of a formula, without sizes, spaces and signs."""
    return [each for each in _ATOM.findall(formula) if each not in ("\\", "\\ ")]


def defined(row: Tag) -> set[str]:
    """Extract the symbols that a row of a table of symbols defines: the first of each formula in its first column."""
    found = set()
    for formula in row.find("td").select(".math") if row.find("td") else []:
        inside = formula.get_text().removeprefix("\\(").removesuffix("\\)")
        left = re.split(r"=|\\[gl]e\b|\\in\b|\\sim\b|[<>|]|\\\|", inside)[0]
        found |= {names[0] for piece in re.split(r"[,;]", left) if (names := letters(piece))}
    return found


def used(slides: Sequence[Slide]) -> set[str]:
    """Extract the symbols of all formulas of some slides."""
    maths = [formula for slide in slides for part in slide.parts for formula in _formulas(part)]
    return {name for formula in maths for name in letters(formula)}


def _formulas(part: Tag) -> list[str]:
    found = [part] if of_class(part, "math") else part.select(".math")
    return [formula.get_text() for formula in found]


def late(slides: Sequence[Slide], known: dict[str, Thing]) -> Iterator[str]:
    """Find statements and figures that use a symbol of the setup's table before it is shown."""
    at = next((place for place, slide in enumerate(slides) if any(map(lists_symbols, slide.parts))), None)
    listed = {name for row in _rows(known.get("setup")) for name in defined(row)}
    early = [slide for slide in slides[:at] if any(_needs_setup(part) for part in slide.parts)]
    if used(early) & listed:
        yield from (f"{plain_words(slide.heading)} uses symbols before the setup shows them" for slide in early)


def undefined(slides: Sequence[Slide]) -> Iterator[str]:
    """Find symbols that no row of the setup's table and no formula so far has introduced."""
    met = {*USUAL}
    for slide in slides:
        tables = [each for part in slide.parts if lists_symbols(part) for each in _formulas(part)]
        maths = [each for part in slide.parts if not lists_symbols(part) for each in _formulas(part)]
        met |= {name for each in tables for name in names(each)}
        met |= {name for each in maths for name in introduced(each)}
        if unknown := {name for each in maths for name in names(each)} - met:
            yield f"{plain_words(slide.heading)} uses what no slide has introduced: {' '.join(sorted(unknown))}"
            met |= unknown


def names(formula: str) -> list[str]:
    """Extract the symbols of a formula that need an introduction: capitals, Greek and decorated letters.

    >>> names(r"\\hat W_i=\\eta\\sum_t\\ln V^\\top")
    ['\\\\hat W', '\\\\eta', 'V']
    """
    plain = _LABEL.sub(" ", _UPRIGHT.sub(" ", formula))
    return [" ".join(each.replace("{", " ").split()) for each in _NAME.findall(plain)]


def introduced(formula: str) -> set[str]:
    """Extract the symbols that are alone in a formula, on one side of a sign, or under a sum, a minimum or the like.

    >>> sorted(introduced(r"\\min_P F(P),\\quad V\\in\\mathcal V"))
    ['P', 'V', '\\\\mathcal V']
    """
    inside = _ARGUMENTS.sub(r"\1", _ARGUMENTS.sub(r"\1", re.split(r"\\[(\[]", formula, maxsplit=1)[-1]))
    pieces = re.split(r"[,;:&]|\\\\|\\q?quad|\\(?:begin|end)\{\w+\}", _INDEX.sub("", inside))
    sides = [side for piece in pieces for side in _SIGN.split(piece)]
    found = {name for side in sides if not _BARE.sub("", _NAME.sub("", side)) for name in names(side)[:2]}
    return found | {name for under in _UNDER.findall(inside) for name in names(under)[:1]}


def _rows(setup: Thing | None) -> list[Tag]:
    table = next((part for part in setup.parts if part.select_one("tr")), None) if setup else None
    return table.select("tbody tr") if table else []


def lists_symbols(part: Tag) -> bool:
    """Tell whether a part is a table of symbols."""
    first = part.select_one("th")
    return first is not None and first.get_text().strip() == "symbol"


def _needs_setup(part: Tag) -> bool:
    return part.name == "figure" or (of_class(part, "admonition") and bool(part.get("id")))
