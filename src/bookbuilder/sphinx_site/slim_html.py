"""Light pages: each loads the scripts that it uses, and its icons are a few lines of CSS.

scripts  a script that serves one kind of thing is left out of pages without one (`FOR`)
rules    that no page can use are left out of the style sheets of others, two thirds of 400 kB
code     names, operators and brackets have the ink of the text, so they are no elements: half of a chapter's were
icons    Font Awesome's script, 1.5 MB, is read here in place of in the browser: the icons that the finished pages
         show become masks in `_static/icons.css`, in the colour of the text around them
figures  are as large as they were drawn, so that all have one size of letters, and are loaded when they come near the
         window; those whose letters would be too small on a phone scroll there
roles    entries of the bibliography are items of their list, and an empty cell heads no column
heads    the names of a table's index go into the row of its other heads, where pandas gives them a second row
search   Sphinx's own index and scripts that the theme puts on every page are left out (`search.py`)

The templates in `theme/` are the theme's with these parts taken out.
"""

import math
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pydata_sphinx_theme
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.util import logging

from bookbuilder import theme

THEME = Path(pydata_sphinx_theme.__file__).parent / "theme/pydata_sphinx_theme/static"
# A script or style sheet, and what a page's text must hold for it to be of use. `None`: never, the book has its own.
FOR = {
    "tex-chtml.js": 'class="math',
    "togglebutton.js": "dropdown admonition|admonition dropdown|toggle",
    "clipboard.min.js": 'class="highlight',
    "copybutton.js": 'class="highlight',
    "design-tabs.js": 'class="sd-tab',
    "sphinx-design.min.css": r'class="[^"]*\bsd-',
    "explorer.js": r'class="explorer[" ]',
    "try.js": 'class="try[" ]',
    "filters.js": r'class="(?:ledger|theorems)[" ]',
    "evidence.js": 'class="copy-link',
    "doctools.js": None,
    "sphinx_highlight.js": None,
}
UNUSED = re.compile(r"(?:\.fa-[a-z0-9-]+::?before,?)+\{content:[^{}]*\}")  # the theme's rules for icons of its font
FONT = re.compile(r"@font-face\{[^}]*Font ?Awesome[^}]*\}")
GLYPH = re.compile(r'(--pst-icon-[a-z-]+):"[^"]*"')  # what the theme would draw with that font, 156 kB
COMMENT = re.compile(r"/\*.*?\*/", re.S)
IN_INK = re.compile(r'<span class="(?:n|o|p|w)">([^<]*)</span>|<span></span>')
FIGURE = re.compile(r'<img (?P<words>[^>]*?)src="(?P<address>[^"]*/_images/(?P<name>[^"/]+\.svg))"(?: style="[^"]*")?')
LETTERS = re.compile(r"font-size: ([\d.]+)px")
PHONE = 390  # pixels of a phone's window, which a figure fills
LEGIBLE = 9  # pixels of the smallest letters there; a figure whose letters would be smaller scrolls, a fifth above that
SIZE = re.compile(r'<svg [^>]*?width="([\d.]+)pt" height="([\d.]+)pt"')
ICON = re.compile(r'"?([a-z0-9-]+)"?:\[(\d+),(\d+),\[([^\]]*)\],"[0-9a-f]+","([^"]+)"\]')
SHOWN = re.compile(r'class="[^"]*\bfa-[^"]*"')
HEADS = re.compile(
    r"<tr(?: [^>]*)?>(?:\s*<th[^>]*>[^<]*</th>)+\s*</tr>\s*<tr>((?:\s*<th>[^<]*</th>)+)\s*</tr>(?=\s*</thead>)"
)
HEAD_CELL = re.compile(r"<th[^>]*>([^<]*)</th>")
STYLES = {"fa-solid", "fa-regular", "fa-brands", "fa-classic", "fa-lg", "fa-sm", "fa-fw"}
HEAD = """\
/* Font Awesome Free (fontawesome.com), icons under CC BY 4.0; made from the theme's script. */
:is(.fa-solid, .fa-regular, .fa-brands, .fas, .far, .fab) { display: inline-block; font-style: normal; line-height: 1; }
:is(.fa-solid, .fa-regular, .fa-brands, .fas, .far, .fab)::before { content: ""; display: inline-block; height: 1em; \
width: var(--wide, 1em); background: currentColor; \
mask: var(--icon) center / contain no-repeat; vertical-align: -0.125em; }
.fa-lg { font-size: 1.25em; }
@media print { [class*="fa-"]::before { print-color-adjust: exact; } }
"""


def use_theme(app: Sphinx, config: Config) -> None:
    """Put the book's templates before the theme's, and its page of search in place of Sphinx's."""
    config.templates_path.append(str(Path(__file__).parents[1] / "layouts"))
    config.html_additional_pages = {**config.html_additional_pages, "search": "search.html"}


def leave_index(app: Sphinx) -> None:
    """Switch off Sphinx's own index."""
    app.builder.search = False


def leave_scripts(app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree: object) -> None:
    """Remove scripts and style sheets that this page does not need."""
    body = context.get("body", "")

    def used(file: Any) -> bool:
        sign = FOR.get(Path(getattr(file, "filename", file) or "").name, "")
        return sign is not None and bool(re.search(sign, body))

    for kind in ("script_files", "css_files"):
        context[kind] = [file for file in context[kind] if used(file)]


def mend_roles(app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree: object) -> None:
    """Set the roles that a screen reader needs."""
    if "body" in context:
        body = context["body"].replace('role="doc-biblioentry"', 'role="listitem"')
        body = body.replace(' aria-label="Toggle hidden content"', "")  # the words of the fold say what it holds
        context["body"] = re.sub(r"<th([^>]*)>(?:<p></p>)?</th>", r"<td\1></td>", body)


def thin_code(app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree: object) -> None:
    """Remove the elements of code that have no colour of their own."""
    if "body" in context:
        context["body"] = IN_INK.sub(r"\1", context["body"])


def join_heads(app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree: object) -> None:
    """Merge the two header rows of a pandas table with a named index."""
    if "body" in context:
        context["body"] = HEADS.sub(_one_row, context["body"])


def _one_row(rows: re.Match[str]) -> str:
    names = HEAD_CELL.findall(rows[1])
    heads = HEAD_CELL.findall(rows[0])[: -len(names)]
    if len(heads) != len(names) or any(name and head for name, head in zip(names, heads, strict=True)):
        return rows[0]
    cells = "".join(f"<th>{name or head}</th>" for name, head in zip(names, heads, strict=True))
    return f'<tr style="text-align: right;">{cells}</tr>'


def wait_for_figures(app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree: object) -> None:
    """Set the sizes of figures, load all but the first lazily, and mark figures that no phone may shrink."""
    if "body" not in context:
        return
    sources = {name: Path(app.srcdir) / source for source, name in app.builder.images.items()}
    first = FIGURE.search(context["body"])

    def sized(figure: re.Match[str]) -> str:
        wide, high = size(sources[figure["name"]])
        least = wide * LEGIBLE / letters(sources[figure["name"]])
        kind = f'class="wide" style="--least: {1.2 * least:.0f}px" ' if least > PHONE else ""
        wait = "" if first is not None and figure.start() == first.start() else 'loading="lazy" '
        return f'<img {kind}{wait}width="{wide:.0f}" height="{high:.0f}" {figure["words"]}src="{figure["address"]}"'

    context["body"] = FIGURE.sub(sized, context["body"])


def size(picture: Path) -> tuple[float, float]:
    """Return width and height of a figure in CSS pixels, 4/3 of its points."""
    found = SIZE.search(picture.read_text("utf-8")[:2000])
    if found is None:
        raise ValueError(f"{picture}: an SVG that does not say its size in points")
    return float(found[1]) * 4 / 3, float(found[2]) * 4 / 3


def letters(picture: Path) -> float:
    """Return the height in pixels of a figure's smallest words, infinite without words; an index is as large as its
    formula."""
    groups = (LETTERS.findall(part) for part in picture.read_text("utf-8").split("<g "))
    return min((max(map(float, sizes)) * 4 / 3 for sizes in groups if sizes), default=math.inf)


def write_icons(app: Sphinx, error: Exception | None) -> None:
    """Write the style sheet of the icons that the finished pages use."""
    if error is not None or app.builder.format != "html":
        return
    pages = (path.read_text("utf-8") for path in Path(app.outdir).rglob("*.html"))
    names = {n for page in pages for found in SHOWN.findall(page) for n in re.findall(r"\bfa-[a-z0-9-]+", found)}
    shape_of, static = shapes(), Path(app.outdir) / "_static"
    for name in sorted(names - STYLES - {f"fa-{name}" for name in shape_of}):
        logging.getLogger(__name__).warning("the theme's script has no icon %s", name)
    rules = [
        rule(name.removeprefix("fa-"), *shape_of[name.removeprefix("fa-")])
        for name in sorted(names)
        if name[3:] in shape_of
    ]
    (static / "icons.css").write_text(HEAD + "\n".join(rules) + "\n", "utf-8")
    text = FONT.sub("", UNUSED.sub("", (THEME / "styles/pydata-sphinx-theme.css").read_text("utf-8")))
    known = theme.classes(Path(app.outdir).rglob("*.html"), [*static.glob("*.js"), *static.glob("scripts/*.js")])
    (static / "styles/pydata-sphinx-theme.css").write_text(theme.of_use(GLYPH.sub(r'\1:""', text), known), "utf-8")
    foreign = ("mystnb.*.css", "basic.css", "pygments.css", "sphinx-design.min.css", "styles/sphinx-book-theme.css")
    for sheet in (path for name in foreign for path in static.glob(name)):
        sheet.write_text(theme.of_use(COMMENT.sub("", sheet.read_text("utf-8")), known), "utf-8")
    book = static / "styles/sphinx-book-theme.css"
    book.write_text(book.read_text("utf-8").replace(r'content:"\f107"', 'content:"▾"'), "utf-8")
    for script in ("fontawesome.js", "fontawesome.js.map", "fontawesome.js.LICENSE.txt"):
        (static / "scripts" / script).unlink(missing_ok=True)


def shapes() -> dict[str, tuple[int, int, str]]:
    """Read width, height and outline of each icon in the theme's script, by its name and its aliases.

    If an icon has a regular and a solid form, the solid one comes last.
    """
    found = {}
    for name, wide, high, others, outline in ICON.findall((THEME / "scripts/fontawesome.js").read_text("utf-8")):
        for each in [name, *re.findall(r'"([a-z0-9-]+)"', others)]:
            found[each] = int(wide), int(high), outline
    return found


def rule(name: str, wide: int, high: int, outline: str) -> str:
    """Write the CSS rule of one icon."""
    picture = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}"><path d="{outline}"/></svg>'
    address = f'url("data:image/svg+xml,{quote(picture, safe=" /:=")}")'
    return f".fa-{name} {{ --icon: {address}; --wide: {wide / high:.4g}em; }}"


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect the parts."""
    app.connect("config-inited", use_theme)
    app.connect("builder-inited", leave_index)
    app.connect("html-page-context", join_heads)
    app.connect("html-page-context", mend_roles)
    app.connect("html-page-context", thin_code)
    app.connect("html-page-context", wait_for_figures)
    app.connect("html-page-context", leave_scripts, priority=900)  # after the handlers that add scripts
    app.connect("build-finished", write_icons)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
