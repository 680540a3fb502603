"""Writes values for readers: sentences with maths, numbers, times, sizes, days and names."""

import math
import re
from datetime import datetime
from typing import Any

from markupsafe import Markup, escape


def typeset(text: Any) -> Markup:
    """Write a sentence with $…$ and `code` as escaped HTML."""
    return Markup("").join(_piece(*found.groups()) for found in _PIECE.finditer(str(text)))


_PIECE = re.compile(r"(?<!\\)\$([^$]+)\$([.,;:)]?)|`([^`]+)`|((?:\\\$|[^$`])+|[$`])")


def _piece(maths: str | None, mark: str | None, code: str | None, plain: str | None) -> Markup:
    if maths is not None:
        formula = Markup('<span class="math notranslate nohighlight">\\({}\\)</span>').format(maths.strip())
        return Markup('<span class="nobreak">{}{}</span>').format(formula, mark) if mark else formula
    return Markup("<code>{}</code>").format(code) if code is not None else escape(plain.replace(r"\$", "$"))


def number(value: Any) -> Markup:
    """Write a number for readers: four significant digits, a power of ten where needed, – for none."""
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
    """Write seconds as 0.4 s, 38 s, 12 min or 1 h 20 min."""
    if seconds is None:
        return "–"
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 99.5:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"


def memory(megabytes: float | None) -> str:
    """Write megabytes as 210 MB or 3.4 GB."""
    if megabytes is None:
        return "–"
    return f"{megabytes:.0f} MB" if megabytes < 1000 else f"{megabytes / 1000:.1f} GB"


def date(stamp: str | None) -> Markup:
    """Write the day of an ISO 8601 time, in an element to which the page's script adds its age."""
    if not stamp:
        return Markup("–")
    moment = datetime.fromisoformat(stamp)
    return Markup('<time class="age" datetime="{}">{}</time>').format(moment.isoformat(), moment.date())


def spelt(count: int) -> str:
    """Write a count up to twelve as a word."""
    names = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
    return names[count] if count < len(names) else str(count)


def breakable(name: str) -> Markup:
    """Let a name in CamelCase or snake_case break between its words, and a call after its bracket.

    >>> breakable("LearnedInContext"), breakable("cactus_speed"), breakable("solve(driver)")
    (Markup('Learned<wbr>In<wbr>Context'), Markup('cactus_<wbr>speed'), Markup('solve(<wbr>driver)'))
    """
    return Markup("<wbr>").join(re.split("(?<=[a-z0-9])(?=[A-Z])|(?<=[_(])", name))
