"""The book's own Sphinx extension: maths from the site itself, and links to a repository only where there is one.

mathjax     a subset of MathJax (the TeX input, CommonHTML output, its fonts) is copied from the installed package
maths       generated HTML counts as a page with equations, so that MathJax is loaded there too
repository  `repository.url` of _config.yml alone switches edit and issue buttons on
statements  each numbered statement bears its badge, a link to itself, and where it is checked; proofs fold
numbers     generated HTML says ``<!-- number label -->`` where a statement or a figure is named
"""

import functools
import importlib.metadata
import json
import re
import shutil
from pathlib import Path

import pybtex.plugin
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.util import logging
from sphinx_proof.nodes import NODE_TYPES, proof_node

from bookbuilder.chapter_pages.pages import PUNCTUATION
from bookbuilder.notebook.statements import proofs

logger = logging.getLogger(__name__)
REPEATED_IDS = ("proof", "proof-content", "exercise-content", "solution-content")
MATHJAX_PARTS = ("tex-chtml.js", "ui/lazy.js", "input/tex/extensions", "output/chtml/fonts/woff-v2")


def use_repository(app: Sphinx, config: Config) -> None:
    """Switch the buttons that need the repository's address."""
    options = config.html_theme_options
    if options.get("repository_url"):
        buttons = ("use_repository_button", "use_edit_page_button", "use_issues_button")
        options |= dict.fromkeys(buttons, True)


def mark_maths(app: Sphinx, doctree: nodes.document) -> None:
    """Load MathJax on pages whose only maths is in generated HTML."""
    if any('class="math' in node.astext() for node in doctree.findall(nodes.raw)):
        app.env.get_domain("math").data["has_equations"][app.env.docname] = True


def join_punctuation(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Keep a comma or full stop on the line of the formula before it."""
    for formula in list(doctree.findall(nodes.math)):
        after = formula.next_node(descend=False, siblings=True)
        if isinstance(after, nodes.Text) and after.startswith(PUNCTUATION):
            together = nodes.inline("", "", classes=["nobreak"])
            parent, place = formula.parent, formula.parent.index(formula)
            together += [formula, nodes.Text(after[0])]
            # By place: docutils looks for a text by its words, and two texts of a sentence may be equal.
            parent[place : place + 2] = [together, nodes.Text(after[1:])]


def tidy_proofs(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Keep ids unique on a page, set off the first word of a proof, and give it the anchor of its result."""
    for box in doctree.findall(lambda node: isinstance(node, nodes.section | nodes.admonition)):
        box["ids"] = [name for name in box["ids"] if name not in REPEATED_IDS]
    boxes = list(doctree.findall(lambda node: isinstance(node, (*NODE_TYPES.values(), proof_node))))
    kinds = [("proof", "") if isinstance(box, proof_node) else (box["realtype"], box["label"]) for box in boxes]
    found = [box for box in boxes if isinstance(box, proof_node)]
    for proof, label in zip(found, proofs(kinds), strict=True):
        text = next(iter(proof.findall(nodes.Text)), "")
        if text.startswith("Proof. "):
            text.parent.replace(text, nodes.Text(text.removeprefix("Proof. ")))
        anchor = f' id="proof-{label}"' if label else ""
        proof.insert(0, _raw(f'<details class="proof-fold"{anchor}><summary>Proof</summary>'))
        proof.append(_raw("</details>"))


def _raw(html: str) -> nodes.raw:
    return nodes.raw("", html, format="html")


def mark_statements(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Add to each numbered statement its badge, check and claims; add anchors and feet to the cells of checks and
    runs."""
    said = _said(app, docname).get("statements", {})
    for cell in doctree.findall(nodes.container):
        facts = cell.get("cell_metadata", {})
        cell["ids"] += facts.get("derived_anchors", [])
        if "derived_foot" in facts:
            cell.append(_raw(facts["derived_foot"]))
    for box in doctree.findall(lambda node: isinstance(node, tuple(NODE_TYPES.values()))):
        words = said.get(box["label"], {"badge": "", "foot": ""})
        link = f'<a class="headerlink" href="#{box["ids"][0]}" title="Link to this statement">#</a>'
        box[0].append(_raw(f" {words['badge']}{link}"))
        if words["foot"]:
            box[-1].append(_raw(words["foot"]))


def _said(app: Sphinx, docname: str) -> dict[str, dict]:
    """Read what the stage wrote about a page's statements and claims."""
    path = Path(app.srcdir) / "statements.json"
    return json.loads(path.read_text("utf-8")).get(docname.removeprefix("notebooks/"), {}) if path.is_file() else {}


def fill_numbers(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Number statements and figures in generated HTML."""
    for html in list(doctree.findall(nodes.raw)):
        text = html.astext()
        if "<!-- number " in text:
            html.replace_self(_raw(_NUMBER.sub(lambda match: _numbered(app, docname, match[1]), text)))


_NUMBER = re.compile(r"<!-- number ([\w:.-]+) -->")


def _numbered(app: Sphinx, docname: str, label: str) -> str:
    """Return the number of a statement or figure, such as Theorem 1.4; warn about an unknown label."""
    stated = getattr(app.env, "proof_list", {}).get(label)
    page, anchor, _ = app.env.domains["std"].labels.get(label, ("", "", ""))
    if stated is not None:
        numbers, name = (
            app.env.toc_fignumbers.get(stated["docname"], {}).get(stated["countertype"], {}),
            stated["realtype"],
        )
        number = numbers.get(label, ())
    elif page:
        number, name = app.env.toc_fignumbers.get(page, {}).get("figure", {}).get(anchor, ()), "fig."
    else:
        logger.warning("no statement or figure is called %s", label, location=docname)
        return label
    return f"{name.capitalize()} {'.'.join(map(str, number))}".strip()


_SIGNS = re.compile(r"([*|`]|(?<=\w)_(?!\w))")


def escape_formulas(app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]) -> None:
    """Escape signs in formulas of docstrings that Sphinx would read as marks.

    Text in ``double backquotes`` and in examples is unchanged.
    """
    example = False
    for at, line in enumerate(lines):
        example = line.lstrip().startswith(">>>") or (example and bool(line.strip()))
        if not example:
            parts = re.split(r"(``.+?``)", line)
            lines[at] = "".join(part if odd % 2 else _SIGNS.sub(r"\\\1", part) for odd, part in enumerate(parts))


def copy_mathjax(app: Sphinx, error: Exception | None) -> None:
    """Copy the parts of MathJax that the book uses into the site."""
    if error is not None or app.builder.format != "html":
        return
    package = importlib.metadata.distribution("sphinx-mathjax-offline")
    source = Path(str(package.locate_file("sphinx-mathjax-offline/static/mathjax")))
    for part in MATHJAX_PARTS:
        target = Path(app.outdir) / "_static/mathjax" / part
        target.parent.mkdir(parents=True, exist_ok=True)
        if (source / part).is_dir():
            shutil.copytree(source / part, target, dirs_exist_ok=True, ignore=shutil.ignore_patterns("all-packages.js"))
        else:
            shutil.copyfile(source / part, target)


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect the parts."""
    pybtex.plugin.entry_points = functools.cache(pybtex.plugin.entry_points)  # otherwise read again for each citation
    app.setup_extension("sphinx.ext.autodoc")
    app.setup_extension("bookbuilder.sphinx_site.sharing")
    app.add_config_value("comments_config", {}, "html")  # Jupyter Book sets it even without sphinx-comments
    app.connect("config-inited", use_repository)
    app.connect("autodoc-process-docstring", escape_formulas)
    app.connect("doctree-read", mark_maths)
    app.connect("doctree-resolved", tidy_proofs)
    app.connect("doctree-resolved", mark_statements)
    app.connect("doctree-resolved", fill_numbers)
    app.connect("doctree-resolved", join_punctuation)
    app.connect("build-finished", copy_mathjax)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
