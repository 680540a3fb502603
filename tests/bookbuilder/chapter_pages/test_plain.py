"""A notebook in plain Markdown: every construct of a chapter, and nothing of it left over."""

import re

import nbformat
import pytest
from bs4 import BeautifulSoup
from markdown_it import MarkdownIt
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from bookbuilder.chapter_pages.plain import Known, Place, Work, markdown, places, plain, values, works
from bookbuilder.paths import UserError

PAGE = """<article>
<div class="proof theorem ours admonition" id="t">
<p class="admonition-title"><span class="caption-number">Theorem 5.5 </span>
 (The price) <span class="whose">ours</span></p></div>
<div class="proof admonition"><p>No number.</p></div>
<div class="exercise admonition" id="x">
<p class="admonition-title"><span class="caption-number">Exercise 5.1 </span></p></div>
<div class="math notranslate" id="equation-e"><span class="eqno">(5.1)<a class="headerlink">#</a></span>\\[a\\]</div>
<figure id="f"><figcaption><span class="caption-number">Fig. 5.2 </span><span>A line.</span></figcaption></figure>
<section id="errata"><span id="s"></span>
<h3><span class="section-number">5.4. </span>Errata<a class="headerlink">#</a></h3></section>
</article>"""
KNOWN = Known(
    "toy",
    places(BeautifulSoup(PAGE, "html.parser"), "notebooks/toy.html"),
    {"a2026": Work("Ann and Bo", "2026", "https://a"), "b2025": Work("Cy *et al.*", "2025", "")},
    {"gap": "0.3125", "name": "'cpu'"},
)
CASES = {
    "```{prf:theorem} The price\n:label: t\n:class: ours\n\nAll $x$.\n```": (
        "**Theorem 5.5 (The price).** *[ours]* All $x$."
    ),
    "```{prf:lemma}\nAll.\n```": "**Lemma.** All.",
    "```{prf:theorem} Long\n:label: t\n\n- one\n```": "**Theorem 5.5 (Long).**\n\n- one",
    "```{prf:proof}\nBy {eq}`e`.\n```": "*Proof.* By (5.1). ∎",
    "```{prf:proof}\n$$\na\n$$\n```": "*Proof.*\n\n$$\na\n$$\n\n∎",
    "```{exercise} By hand\n:label: x\nShow it.\n```": "**Exercise 5.1 (By hand).** Show it.",
    "```{solution} x\n:label: y\n:class: dropdown\n\nSo.\n```": "**Solution to Exercise 5.1.** So.",
    ":::{admonition} The paper\n:class: paper\n\nIt says\n\n$$\na\n= b\n$$ (e)\n:::": (
        "> **The paper**\n>\n> It says\n>\n> $$ a = b \\tag{5.1} $$"
    ),
    "```{admonition} A nudge\n:class: hint dropdown\n\nSee {eq}`e`.\n```": (
        "<details><summary>A nudge</summary>\n\nSee (5.1).\n\n</details>"
    ),
    ":::{admonition} A\n$x =\ny$ and $z$\n:::": "> **A**\n>\n> $x = y$ and $z$",
    "$$\na\n$$ (e)": "$$\na\n\\tag{5.1}\n$$",
    "- item\n\n  $$\n  a\n  $$ (e)\n\n  more": "- item\n\n  $$\n  a\n  \\tag{5.1}\n  $$\n\n  more",
    "```{math}\n:label: e\na\n```": "$$\na\n\\tag{5.1}\n$$",
    "See {prf:ref}`t`, {numref}`f`, {ref}`s`, {ref}`there <x>`.": "See Theorem 5.5, Fig. 5.2, Errata, there.",
    "(s)=\n## Errata": "\n## Errata",
    "Go [up](#s), [out](https://o).": "Go up, [out](https://o).",
    "{glue:text}`gap:.2f` on {glue:text}`name`": "0.31 on cpu",
    "{cite:t}`a2026` and {cite:p}`a2026,b2025`": (
        "Ann and Bo ([2026](https://a)) and ([Ann and Bo, 2026](https://a); Cy *et al.*, 2025)"
    ),
    "```python\nx = {1: '{eq}`e`'}\n```": "```python\nx = {1: '{eq}`e`'}\n```",
    "$$\n\\{a\\}\n$$": "$$\n\\{a\\}\n$$",
}


@pytest.mark.parametrize("source", CASES)
def test_every_construct_has_its_plain_words(source):
    assert markdown(source, KNOWN) == CASES[source]


def test_references_lead_to_the_site_where_its_address_is_known():
    known = Known("toy", KNOWN.places, {}, {}, "https://book")
    assert markdown("{prf:ref}`t`, [up](#s)", known) == (
        "[Theorem 5.5](https://book/notebooks/toy.html#t), [up](https://book/notebooks/toy.html#s)"
    )


@pytest.mark.parametrize(
    ("source", "cause"),
    [
        ("{eq}`nowhere`", "refers to nowhere, which is not among the places"),
        ("{glue:text}`none:.2f`", "refers to none, which is not among the values"),
        ("{cite:t}`nobody`", "refers to nobody, which is not among the works"),
        ("```{mermaid}\na\n```", "no plain words for the directive {mermaid}"),
        ("{kbd}`a`", "no plain words for the role {kbd}"),
    ],
)
def test_what_cannot_be_said_plainly_stops_the_build_in_one_line(source, cause):
    with pytest.raises(UserError, match=f"^toy: [^\n]*{re.escape(cause)}"):
        markdown(source, KNOWN)


def test_a_notebook_keeps_its_code_and_gets_captions_paper_and_errata():
    erratum = {"said": "$a$.", "where": "§2", "right": "By {eq}`e`.", "who": "we", "checked": "T-1"}
    paper = {"title": "A title", "authors": "Ann", "arxiv": "1.2"}
    figure = {"mystnb": {"figure": {"caption": "The line $f$.", "name": "f"}}}
    cells = [
        new_markdown_cell("# Toy\n\n<!-- at a glance -->"),
        new_code_cell("x = '{eq}`e`'"),
        new_code_cell("show(figure)", metadata=figure, id="figure"),
        new_markdown_cell("<!-- errata -->"),
    ]
    notebook = new_notebook(cells=cells, metadata={"derived": {"paper": paper, "errata": [erratum]}})
    found = plain(notebook, KNOWN)
    nbformat.validate(found)
    assert [cell.source for cell in found.cells if cell.cell_type == "code"] == ["x = '{eq}`e`'", "show(figure)"]
    title, caption, errata = (cell for cell in found.cells if cell.cell_type == "markdown")
    assert title.source == "# Toy\n\n*A title*. Ann. [arXiv:1.2](https://arxiv.org/abs/1.2)"
    assert (caption.id, caption.source) == ("figure-caption", "**Fig. 5.2.** The line $f$.")
    assert errata.source == "- *Said* (§2): $a$.\n  *Right:* By (5.1).\n  *Found by* we. *Checked:* T-1."
    assert notebook.cells[0].source.endswith("<!-- at a glance -->"), "the source was changed"


def test_a_reader_of_plain_markdown_shows_no_mark_of_the_builder():
    """What VS Code and JupyterLab build upon, CommonMark with tables, leaves no directive in the text."""
    html = MarkdownIt("commonmark").enable("table").render("\n\n".join(markdown(source, KNOWN) for source in CASES))
    text = BeautifulSoup(html, "html.parser")
    for code in text.select("pre"):
        code.extract()
    words = re.sub(r"\$\$?[^$]+\$", "", text.get_text())
    assert not re.findall(r"\{[a-z:]+\}|:::|^\(\w+\)=", words, re.M)


def test_labels_works_and_values_are_read_where_they_stand(tmp_path):
    assert KNOWN.places["t"] == Place("Theorem 5.5", "notebooks/toy.html", "t")
    assert KNOWN.places["e"] == Place("(5.1)", "notebooks/toy.html", "equation-e")
    bibliography = tmp_path / "a.bib"
    bibliography.write_text(
        "@misc{one, author = {Fraiman, Demi{\\'a}n and von B, C}, year = {2026}, eprint = {2603.1}}\n"
        "@misc{three, author = {A, X and B, Y and C, Z}, year = {2020}, url = {https://u}, eprint = {1}}\n"
    )
    assert works(bibliography) == {
        "one": Work("Fraiman and von B", "2026", "https://arxiv.org/abs/2603.1"),
        "three": Work("A *et al.*", "2020", "https://u"),
    }
    output = nbformat.v4.new_output(
        "display_data", {"p/text/plain": "1"}, metadata={"scrapbook": {"name": "n", "mime_prefix": "p/"}}
    )
    assert values(new_notebook(cells=[new_code_cell(outputs=[output])])) == {"n": "1"}
