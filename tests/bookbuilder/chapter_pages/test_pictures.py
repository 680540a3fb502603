"""Figures of the site: light, and in the ink of the page."""

import xml.etree.ElementTree as xml
from pathlib import Path

import numpy as np
import pytest

from bookbuilder.chapter_pages import pictures
from derived.lab.plot import COLOURS

ROOT = Path(__file__).parents[3]


def test_a_light_figure_keeps_its_places_to_hundredths_and_its_styles():
    svg = '<g><!-- x -->\n  <path d="M 1.23456 -0.001 L 3e2 4.005e-1" style="stroke-width: 0.123456"/> </g>'
    assert pictures.light(svg) == '<g><path d="M 1.23 0 L 3e2 0.4" style="stroke-width: 0.123456"/></g>'
    assert pictures.light('<g transform="scale(0.015625 -0.015625)"/>') == '<g transform="scale(0.015625 -0.015625)"/>'


def test_words_of_a_figure_are_text_in_the_type_of_the_page_and_formulas_keep_their_places():
    span = '<tspan x="{}" y="{}" style="font-size: 10px; font-family: \'DejaVu Sans\'">{}</tspan>'.format
    word = "".join(span(x, 0, letter) for x, letter in enumerate("slope\xa0"))
    svg = pictures.lettered(f"<svg ><g><text>{word}{span(9, -4, 2)}{span(12, 0, '=')}</text></g></svg>")
    assert "DejaVu" not in svg
    assert f"font-family:{pictures.TYPE}" in svg
    pieces = xml.fromstring(svg).findall("g/text")
    assert [(each.text, each.get("x"), each.get("textLength")) for each in pieces] == [
        ("slope", "0", "5"),
        ("2", "9", None),
        ("=", "12", None),
    ]


def test_the_type_of_figures_is_that_of_the_pages_headings():
    style = (ROOT / "book/_static/book.css").read_text("utf-8")
    stack = style.split("--pst-font-family-heading:")[1].split(";")[0].replace('"', "").replace("'", "")
    names = [name.strip() for name in stack.split(",")]
    assert [name.strip("'") for name in pictures.TYPE.split(",") if name.strip("'") not in names] == []


DRAWN = (
    '<svg width="9pt"><g style="stroke: #440154"/><path style="fill: #440154"/><path style="fill: #fde725"/>'
    '<path style="fill: #ffffff; stroke: #222222"/><g id="text"/></svg>'
)


def test_the_ink_of_a_figure_follows_the_page_and_its_surfaces_do_not():
    found = pictures.inked(DRAWN)
    day, night = (
        dict(part.split(":") for part in rules.split(";") if part.startswith("--"))
        for rules in (
            found.split("fill:var(")[1].split("}")[0].partition(";")[2],
            found.split("dark){svg{")[1].split("}")[0],
        )
    )
    [line] = [name for name, colour in day.items() if colour == "#440154"]
    assert f'stroke: var({line})"/><path style="fill: var({line})' in found, "what fills a line's colour goes with it"
    assert night[line] == pictures.lifted("#440154")
    [ink] = [name for name, colour in day.items() if colour == "#222222"]
    assert f'style="fill: #ffffff; stroke: var({ink})"' in found
    assert night[ink] == "#d6dde3"
    assert 'style="fill: #fde725"' in found
    assert found.startswith('<svg width="9pt"><style>svg{fill:var(--c0);--c0:#000000;')


def test_a_picture_with_ink_over_a_map_keeps_its_colours_on_a_light_ground():
    line = '<path clip-path="url(#p)" style="fill: none; stroke: #222222"/>'
    over = f'<svg width="9pt"><image/>{line}</svg>'
    assert line in pictures.inked(over)
    assert f"dark){{svg{{background:{pictures.CARD}}}}}" in pictures.inked(over)
    assert line not in pictures.inked(over.replace("<image/>", ""))
    assert "#777777" not in pictures.inked(over.replace("#222222", "#777777")).split("</style>")[1]


@pytest.mark.parametrize("colour", [*COLOURS, "#000000", "#440154", "#39568c", "#67001f"])
def test_a_line_is_seen_on_a_dark_page(colour):
    light, ground = (
        pictures._luminance(np.array(list(bytes.fromhex(c[1:]))))
        for c in (pictures.lifted(colour.lower()), pictures.DARK)
    )
    assert (light + 0.05) / (ground + 0.05) >= 4.49
