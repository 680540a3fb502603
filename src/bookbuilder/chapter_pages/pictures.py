"""Makes figures light, without invisible digits, and lets their ink follow the page."""

import re

import numpy as np

from derived.lab.plot import INK, MUTED

DARK = "#12181d"  # the ground of a dark page, and on it the ink of words and axes and of what is muted
INKS = {"#000000": "#d6dde3", INK: "#d6dde3", MUTED: "#9aa7b2"}
CARD = "#e3e7ea"  # ground of a picture that keeps its colours
CONTRAST = 4.5  # of a line on a dark page
TYPE = "'Avenir Next','Segoe UI',Inter,'Source Sans 3','Noto Sans','Helvetica Neue','Liberation Sans',sans-serif"
_GLYPH = re.compile(r'<tspan x="([^"]*)" y="([^"]*)" style="([^"]*)">(.*?)</tspan>', re.S)
_SPELT = re.compile(r"[A-Za-z0-9 .,'%-]{2}")
_PLACES = re.compile(r'(?<= )(d|x|y|x1|x2|y1|y2)="([^"]*)"')
_LONG = re.compile(r"-?\d+\.\d{3,}(?:e[-+]?\d+)?")


def light(svg: str) -> str:
    """Round the places of a figure to hundredths of a point, drop its comments and the names that nothing in it uses,
    shorten the others, and let its ink follow the page.

    >>> light('<g> <!-- a line --> <path d="M 1.23456 2.5 L 300.999999 -0.0000001" style="opacity: 0.123456"/></g>')
    '<g><path d="M 1.23 2.5 L 301 0" style="opacity: 0.123456"/></g>'
    """
    svg = re.sub(r">\s+<(?!/t)", "><", re.sub(r"<!-- .*? -->|<metadata>.*?</metadata>", "", svg, flags=re.S))
    svg = lettered(_PLACES.sub(lambda place: f'{place[1]}="{_LONG.sub(_short, place[2])}"', svg))
    return inked(named(svg))


def named(svg: str) -> str:
    """Number the names of what a figure draws again and again, as each point of a cloud, and drop all others.

    >>> named('<g id="axes_1"><path id="C0_0_dd0c7a1587"/><use xlink:href="#C0_0_dd0c7a1587" x="9"/></g>')
    '<g><path id="n0"/><use xlink:href="#n0" x="9"/></g>'
    """
    used = dict.fromkeys(re.findall(r'(?:href="|url\()#([^")]+)', svg))
    short = {name: f"n{number}" for number, name in enumerate(used)}
    svg = re.sub(r' id="([^"]+)"', lambda found: f' id="{short[found[1]]}"' if found[1] in short else "", svg)
    return re.sub(r'((?:href="|url\()#)([^")]+)', lambda found: found[1] + short[found[2]], svg)


def lettered(svg: str) -> str:
    """A figure whose words are text in the page's own type, not of one font: each word of a formula is one piece, as
    wide as the formula leaves room for it, whatever font shows it.

    >>> glyphs = (("o", 0), ("f", 6.1), ("a", 9.6), ("l", 15.7))
    >>> spans = "".join(f'<tspan x="{x}" y="0" style="font-size: 10px">{a}</tspan>' for a, x in glyphs)
    >>> lettered(f'<text>{spans}<tspan x="20" y="0" style="font-style: oblique; font-size: 10px">m</tspan></text>')[:77]
    '<text x="0" y="0" style="font-size: 10px" textLength="20" lengthAdjust="spaci'
    """
    svg = re.sub(r"; font-family: [^;\"]*|font-family: [^;\"]*; ", "", svg)
    svg = re.sub(r"<text(?: [^>]*)?>(<tspan.*?)</text>", lambda found: _pieces(found[1]), svg, flags=re.S)
    return re.sub(r"<svg [^>]*>", lambda tag: f"{tag[0]}<style>text{{font-family:{TYPE}}}</style>", svg, count=1)


def _pieces(spans: str) -> str:
    """Text elements for the glyphs of a formula: neighbours of one style and height that spell words are one."""
    glyphs = sorted((float(x), y, style, glyph) for x, y, style, glyph in _GLYPH.findall(spans.replace("\xa0", " ")))
    runs: list[list[tuple]] = []
    for glyph in glyphs:
        last = runs[-1][-1] if runs else ("", "", "", "")
        joined = last[1:3] == glyph[1:3] and "oblique" not in glyph[2] and _SPELT.fullmatch(last[3] + glyph[3])
        runs[-1].append(glyph) if joined else runs.append([glyph])
    ends = [run[0][0] for run in runs[1:]] + [None]
    return "".join(_piece(run, end) for run, end in zip(runs, ends, strict=True))


def _piece(run: list[tuple], end: float | None) -> str:
    """The text element of a run of glyphs, without the spaces around it; ``end`` is where the next run begins."""
    inked = [place for place, glyph in enumerate(run) if glyph[3] != " "]
    if not inked:
        return ""
    after, run = run[inked[-1] + 1 :], run[inked[0] : inked[-1] + 1]
    x, y, style, _ = run[0]
    end = after[0][0] if after else end
    fit = f' textLength="{end - x:.4g}" lengthAdjust="spacingAndGlyphs"' if end and len(run) >= 4 else ""
    return f'<text x="{x:g}" y="{y}" style="{style}"{fit}>{"".join(glyph for *_, glyph in run)}</text>'


def inked(svg: str) -> str:
    """Make words, axes and lines of a figure light on a dark page; surfaces, maps and white keep their colours.

    A picture follows the colour scheme of the page around it, so the rule is in the picture. One with ink drawn
    over a map keeps its colours, and has a light ground in the dark.
    """
    if "<image" in svg and _OVER_MAP.search(svg):
        style = f"<style>@media (prefers-color-scheme:dark){{svg{{background:{CARD}}}}}</style>"
        return re.sub(r"<svg [^>]*>", lambda tag: tag[0] + style, svg, count=1)
    colours = {*re.findall(r"stroke: (#[0-9a-f]{6})", svg), *INKS} - {"#ffffff"}
    names = {colour: f"--c{number}" for number, colour in enumerate(sorted(colours))}
    day = "".join(f"{name}:{colour};" for colour, name in names.items())
    night = "".join(f"{name}:{INKS.get(colour) or lifted(colour)};" for colour, name in names.items())
    ink = names["#000000"]  # of glyphs that say no colour
    style = f"<style>svg{{fill:var({ink});{day}}}@media (prefers-color-scheme:dark){{svg{{{night}}}}}</style>"
    svg = re.sub(r"(fill|stroke): (#[0-9a-f]{6})", lambda found: _named(names, *found.groups()), svg)
    return re.sub(r"<svg [^>]*>", lambda tag: tag[0] + style, svg, count=1)


def _named(names: dict[str, str], part: str, colour: str) -> str:
    return f"{part}: var({names[colour]})" if colour in names else f"{part}: {colour}"


def lifted(colour: str) -> str:
    """Mix a colour with white until it is seen on a dark page.

    >>> lifted("#e69f00"), lifted("#440154")
    ('#e69f00', '#9c78a4')
    """
    parts = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)])
    mixed = (parts + share * (255 - parts) for share in np.linspace(0, 1, 33))
    found = next(each for each in mixed if _luminance(each) >= CONTRAST * (_luminance(_PAGE) + 0.05) - 0.05)
    return "#" + "".join(f"{round(each):02x}" for each in found)


_OVER_MAP = re.compile(rf'clip-path="[^"]*" style="[^"]*stroke: (?:{INK}|#000000)')
_PAGE = np.array([int(DARK[at : at + 2], 16) for at in (1, 3, 5)])


def _luminance(colour: np.ndarray) -> float:
    """Compute the relative luminance of WCAG 2."""
    share = colour / 255
    linear = np.where(share <= 0.03928, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def _short(number: re.Match) -> str:
    return f"{round(float(number[0]), 2) + 0.0:.2f}".rstrip("0").rstrip(".")
