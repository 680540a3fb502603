"""Draws pictures: figures without invisible digits whose ink follows the page, and the first view of an explorer.

Where scripts are off, a still shows what the explorer shows before anybody moves a slider. Explorers are
made of lines, points, words, bars and maps; anything else fails the build.
"""

import base64
import io
import re
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from derived.lab.plot import COLOURS, INK, MUTED, plain_log

WIDE = 7.4  # inches of a still
DASHES = {"solid": "-", "dot": ":", "dash": "--", "dashdot": "-."}
SYMBOLS = {
    "circle": "o",
    "circle-open": "o",
    "square": "s",
    "diamond": "D",
    "cross": "P",
    "x": "X",
    "triangle-up": "^",
    "star": "*",
}
DARK = "#12181d"  # the ground of a dark page, and on it the ink of words and axes and of what is muted
INKS = {"#000000": "#d6dde3", INK: "#d6dde3", MUTED: "#9aa7b2"}
CARD = "#e3e7ea"  # ground of a picture that keeps its colours
CONTRAST = 4.5  # of a line on a dark page
SIDES = {"left": "right", "right": "left", "center": "center", "top": "bottom", "bottom": "top", "middle": "center"}
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


def still(figure: dict[str, Any]) -> str:
    """Draw the first view of a Plotly figure as SVG; raise ValueError for an unsupported kind of trace."""
    layout = figure["layout"]
    drawn = Figure(figsize=(WIDE, layout.get("height", 420) / 100), layout="none")
    axes: dict[str, Axes] = {}
    for number, trace in enumerate(figure["data"]):
        name = trace.get("xaxis", "x").removeprefix("x")
        if name not in axes:
            axes[name] = _axes(drawn, layout.get(f"xaxis{name}", {}), layout.get(f"yaxis{name}", {}))
        if trace.get("type", "scatter") not in DRAW:
            raise ValueError(f"an explorer has a trace of type {trace['type']}, which no still can show")
        style = {
            "color": _colour(trace, COLOURS[number % len(COLOURS)]),
            "label": trace.get("name") if trace.get("showlegend", True) else None,
        }
        together = [
            each
            for each in figure["data"]
            if each.get("type") == "bar" and each.get("xaxis", "x") == trace.get("xaxis", "x")
        ]
        place = (
            (together.index(trace), len(together))
            if trace in together and layout.get("barmode") != "overlay"
            else (0, 1)
        )
        DRAW[trace.get("type", "scatter")](axes[name], trace, style, place)
    for words in layout.get("annotations", []):
        said = words["text"].replace("<br>", "\n")
        drawn.text(*_inside(words["x"], words["y"]), said, ha="center", va="bottom", color=INK)
    for name, ax in axes.items():
        _finish(ax, layout.get(f"xaxis{name}", {}), layout.get(f"yaxis{name}", {}))
        named = {label: handle for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)}
        if layout.get("showlegend", len(named) > 1) and named:
            ax.legend(
                named.values(),
                named.keys(),
                ncols=4,
                loc="lower left",
                bbox_to_anchor=(0, 1.1 if layout.get("annotations") else 1),
                fontsize=8,
            )
    out = io.StringIO()
    drawn.savefig(out, format="svg", metadata={"Date": None}, bbox_inches="tight")  # long names of bars stay whole
    return light(out.getvalue())


def _inside(x: float, y: float) -> tuple[float, float]:
    """Convert a place of Plotly's plot area to a share of the whole picture."""
    return 0.1 + 0.86 * x, 0.12 + 0.78 * y


def _axes(drawn: Figure, x: dict[str, Any], y: dict[str, Any]) -> Axes:
    (left, right), (low, high) = x.get("domain", (0, 1)), y.get("domain", (0, 1))
    (a, c), (b, d) = _inside(left, low), _inside(right, high)
    return drawn.add_axes((a, c, b - a, d - c))


def _finish(ax: Axes, x: dict[str, Any], y: dict[str, Any]) -> None:
    """Set titles, ranges, ticks and direction of both axes."""
    for axis, each in ((ax.xaxis, x), (ax.yaxis, y)):
        limits = ax.set_xlim if axis is ax.xaxis else ax.set_ylim
        if each.get("type") == "log":
            axis._set_axes_scale("log")
        if each.get("range"):
            limits(*(10.0**end if each.get("type") == "log" else end for end in each["range"]))
        if each.get("autorange") == "reversed":
            axis.set_inverted(True)
        if each.get("tickvals") is not None:
            names, ticks = each.get("ticktext"), _list(each["tickvals"])
            if each.get("type") == "log":
                plain_log(axis, ticks)
            else:
                axis.set_ticks(ticks, None if names is None else _list(names))
            axis.set_tick_params(labelsize=7, rotation=-(each.get("tickangle") or 0))
        if each.get("showticklabels") is False:
            axis.set_tick_params(labelleft=False, labelbottom=False)
        if each.get("visible") is False:
            axis.set_visible(False)
            ax.spines[["left", "right"] if axis is ax.yaxis else ["bottom", "top"]].set_visible(False)
        axis.set_label_text((each.get("title") or {}).get("text", ""))
    if y.get("scaleanchor"):
        ax.set_aspect("equal", adjustable="box")


def _list(values: Any) -> list[Any]:
    """Read the values of a trace, which Plotly may pack as an array."""
    if isinstance(values, dict):
        packed = np.frombuffer(base64.b64decode(values["bdata"]), dtype=np.dtype(values["dtype"]))
        return packed.reshape([int(n) for n in str(values.get("shape", packed.size)).split(",")]).tolist()
    return list(values)


def _numbers(values: Any) -> np.ndarray:
    return np.array([np.nan if each is None else each for each in _list(values)], dtype=float)


def _colour(trace: dict[str, Any], usual: str) -> Any:
    """Read the colour of a trace: one, or one per point."""
    found = [trace.get(part, {}).get("color") for part in ("line", "marker")]
    colour = next((each for each in found if isinstance(each, str | list)), usual)
    return [_paint(each) for each in colour] if isinstance(colour, list) else _paint(colour)


def _paint(colour: Any) -> Any:
    """Convert a colour for matplotlib: rgba(255,0,0,0.5) is (1, 0, 0, 0.5)."""
    if not (isinstance(colour, str) and colour.startswith("rgba(")):
        return colour
    *parts, opacity = (float(each) for each in colour[5:-1].split(","))
    return (*(each / 255 for each in parts), opacity)


def _scatter(ax: Axes, trace: dict[str, Any], style: dict[str, Any], place: tuple[int, int]) -> None:
    """Draw lines, points and words."""
    y = _numbers(trace["y"])
    x = _numbers(trace["x"]) if trace.get("x") is not None else np.arange(len(y))
    mode, line, marker = trace.get("mode", "lines"), trace.get("line", {}), trace.get("marker", {})
    if "lines" in mode:
        steps = {"hv": "steps-post", "vh": "steps-pre"}.get(line.get("shape"), "default")
        ax.plot(
            x,
            y,
            linewidth=0.7 * line.get("width", 2),
            linestyle=DASHES[line.get("dash", "solid")],
            drawstyle=steps,
            **style,
        )
    if "markers" in mode:
        name = marker.get("symbol", "circle")
        hollow = {"facecolors": "none", "edgecolors": style.pop("color")} if name.endswith("-open") else {}
        opacity = marker.get("opacity", 1)
        ax.scatter(
            x,
            y,
            (0.7 * marker.get("size", 6)) ** 2,
            marker=SYMBOLS[name],
            alpha=_list(opacity) if not np.isscalar(opacity) else opacity,
            zorder=3,
            **style,
            **hollow,
        )
    if "text" in mode:
        sides = trace.get("textposition", "middle center")
        words = [trace["text"]] * len(x) if isinstance(trace["text"], str) else _list(trace["text"])
        for number, word in enumerate(words):
            up, across = (sides if isinstance(sides, str) else sides[number]).split()
            shift = (6 * ((across == "right") - (across == "left")), 6 * ((up == "top") - (up == "bottom")))
            ax.annotate(
                word.replace("<br>", "\n"),
                (x[number], y[number]),
                shift,
                textcoords="offset points",
                ha=SIDES[across],
                va=SIDES[up],
                color=trace.get("textfont", {}).get("color", INK),
            )


def _bar(ax: Axes, trace: dict[str, Any], style: dict[str, Any], place: tuple[int, int]) -> None:
    """Draw bars, upright or lying, side by side unless they overlap."""
    lying = trace.get("orientation") == "h"
    length, along = ("x", "y") if lying else ("y", "x")
    ends = _list(trace[length])
    names = _list(trace[along]) if trace.get(along) is not None else list(range(len(ends)))
    at = np.arange(len(names)) if isinstance(names[0], str) else np.array(names, dtype=float)
    wide = trace.get("width")
    thick = _numbers(wide) if wide is not None else 0.8 * (np.diff(at).min() if len(at) > 1 else 1.0)
    number, count = place
    at = at + thick * ((number + 0.5) / count - 0.5)
    draw = ax.barh if lying else ax.bar
    begin = {"left" if lying else "bottom": _list(trace["base"])} if trace.get("base") is not None else {}
    bars = draw(at, ends, thick / count, alpha=trace.get("opacity", 1), **begin, **style)
    if isinstance(names[0], str):
        (ax.set_yticks if lying else ax.set_xticks)(np.arange(len(names)), names)
    if trace.get("text") is not None:
        ax.bar_label(bars, [f"{each}" for each in _list(trace["text"])], padding=3)


def _heatmap(ax: Axes, trace: dict[str, Any], style: dict[str, Any], place: tuple[int, int]) -> None:
    """Draw a heat map with its scale."""
    z = np.array([_numbers(row) for row in _list(trace["z"])])
    scale = trace.get("colorscale", "viridis")
    steps = [] if isinstance(scale, str) else [(at, _paint(colour)) for at, colour in scale]
    colours = LinearSegmentedColormap.from_list("", steps) if steps else scale.lower()
    x, y = (
        _numbers(trace[name]) if trace.get(name) is not None else np.arange(size)
        for name, size in zip("xy", z.shape[::-1], strict=True)
    )
    drawn = ax.pcolormesh(x, y, z, cmap=colours, vmin=trace.get("zmin"), vmax=trace.get("zmax"), rasterized=True)
    if trace.get("showscale", True):
        title = trace.get("colorbar", {}).get("title", {})
        ax.figure.colorbar(drawn, ax=ax, pad=0.02, label=title.get("text", "") if isinstance(title, dict) else title)


DRAW = {"scatter": _scatter, "bar": _bar, "heatmap": _heatmap}
