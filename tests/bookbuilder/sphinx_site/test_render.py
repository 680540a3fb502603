"""The builder on a toy book: the real pages around one small chapter that has everything a chapter may have."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
import yaml
from bs4 import BeautifulSoup
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from toybook import ROW

from bookbuilder.paths import UserError
from bookbuilder.sphinx_site import builder, render, stage

ROOT = Path(__file__).parents[3]
HEAD = '<svg xmlns="http://www.w3.org/2000/svg" width="40pt" height="20pt" viewBox="0 0 40 20">'
SVG = f'{HEAD}<path d="M1 19L39 1" stroke="#222222"/></svg>'
FACTS = {
    "paper": {
        "title": "Ordinary Least Squares is a Special Case of Transformer",
        "authors": "Xiaojun Tan and Yuchen Zhao",
        "arxiv": "2604.13656",
        "bibkey": "tan2026ols",
    },
    "claim": "One layer of linear attention has weights whose forward pass is $X\\hat B$, the least-squares fit.",
    "prerequisites": ["linear algebra: the singular value decomposition", "a first course in regression"],
    "objectives": ["derive the weights from the spectrum of $X^\\top X$", "say what such a layer cannot do"],
}


def row(claim: str, verdict: str, **changes) -> dict:
    """A ledger row of the toy chapter."""
    said = {"statement": "The forward pass equals the fitted values, $\\hat Y = X\\hat B$.", "source": "paper"}
    return ROW | said | {"id": claim, "verdict": verdict, "experiment": "Reach"} | changes


ROWS = [
    row("TOY-1", "holds", proof="toy-theorem"),
    row("TOY-2", "fails", kind="counterexample", reason="refuted by a witness"),
    row("TOY-3", "reported", kind="measured", value=1.28e-05, low=1.1e-05, high=1.4e-05, criterion="reported"),
    row("TOY-2.a", "holds", amends="TOY-2", source="ours", paper_value="–"),
    row("TOY-4", "fails", source="digest", reason="from a summary; the paper itself was not seen"),
    row("TOY-5", "not run", tier="gpu", value=None, n=None, device=None, reason="not recorded at gpu yet"),
    row("TOY-6", "undecided", kind="statistic", value=0.97, low=0.94, high=1.01, n=20),
    row("TOY-6", "holds", tier="cpu", kind="statistic", value=0.99, low=0.98, high=1.0, n=2000, headline=False),
]
RECORDS = [
    {
        "experiment": "Reach",
        "tier": "cpu",
        "date": "2026-11-02T08:00:00+00:00",
        "device": "a desktop CPU",
        "seconds": 412.0,
        "peak_memory_mb": 1210.0,
        "no_commit": "",
        "state": "unchanged",
        "reasons": [],
    },
    {
        "experiment": "Capacity",
        "tier": "gpu",
        "date": None,
        "device": None,
        "seconds": None,
        "peak_memory_mb": None,
        "no_commit": None,
        "state": "missing",
        "reasons": ["derived record toy Capacity --tier gpu"],
    },
]
FINDING = {
    "chapter": "toy",
    "key": "0123",
    "tier": "ci",
    "seed": 0,
    "device": "cpu",
    "device_name": "2 cores of an x86-64 CPU",
    "seconds": 41.3,
    "peak_memory_mb": 690.0,
    "date": "2026-11-20T09:30:00+00:00",
    "versions": {"python": "3.11.2", "torch": "2.13.0"},
    "rows": ROWS,
    "records": RECORDS,
}
PLOTLY = {
    "data": [{"type": "scatter", "x": [0, 1, 2], "y": [0, 1, 4], "name": "curve"}],
    "layout": {
        "meta": {"alt": "A parabola that widens as beta grows."},
        "template": {"layout": {"colorway": ["red"]}},
        "xaxis": {"title": {"text": "x"}},
        "sliders": [
            {
                "currentvalue": {"prefix": "beta = "},
                "steps": [
                    {"label": str(b), "method": "animate", "args": [[str(b)], {"mode": "immediate"}]} for b in (1, 2, 3)
                ],
            }
        ],
    },
    "frames": [{"name": str(b), "data": [{"y": [0, b, 4 * b]}]} for b in (1, 2, 3)],
}
THEOREM = """## The identity

:::{admonition} The construction
:class: paper
Put the inverse square root of the covariance into all three weights {cite}`tan2026ols`.
:::

:::{admonition} Rank
:class: ours
Full column rank is not needed: a pseudo-inverse does.
:::

```{prf:theorem} Attention is a projection
:label: toy-theorem
:class: retold
With $L = V\\Lambda^{-1/2}$ the attention matrix is the hat matrix, $A = H$.
```

```{prf:proof}
By {eq}`toy-eq`, $A = \\tfrac1n X L L^\\top X^\\top = X(X^\\top X)^{-1}X^\\top$.
```

$$
A = \\frac1n (XL)(XL)^\\top = \\frac1n \\sum_{i=1}^{r} \\lambda_i^{-1} X v_i v_i^\\top X^\\top
$$ (toy-eq)

```{prf:proof}
Again, by {prf:ref}`toy-theorem`.
```

{prf:ref}`toy-theorem` is checked below
(TOY-2, `TOY-2.a`, not TOY-2.b nor `x = TOY-1`
nor [*TOY-1* elsewhere](https://example.org)), and {numref}`toy-figure` shows both.
"""
EXERCISE = """## Exercises

```{exercise} Trace
:label: toy-exercise
Show that $\\operatorname{tr} A = p$.
```
"""
SOLUTION = """```{solution} toy-exercise
:label: toy-solution
:class: dropdown
The trace of a projector is its rank.
```"""


def cells() -> list:
    """A chapter's cells as papermill leaves them."""
    prefix = "application/papermill.record/"
    glued = new_output("display_data", {f"{prefix}text/plain": "0.3125"})
    glued.metadata["scrapbook"] = {"name": "toy-gap", "mime_prefix": prefix}
    figure = new_output("display_data", {"image/svg+xml": SVG, "text/plain": "a line"})
    figure.metadata["image/svg+xml"] = {
        "alt": "A rising line,\nfrom 0 to 1.",
        "provenance": "live at tier ci, run_1 [seed 0]",
    }
    caption = {"figure": {"caption": "The attention matrix, $A$.", "name": "toy-figure"}}
    install = 'try:\n    import derived\nexcept ModuleNotFoundError:\n    print("pip install -e .")'
    return [
        new_markdown_cell("# Least squares in one layer\n\n<!-- at a glance -->"),
        new_code_cell(install),
        new_code_cell('tier = "ci"\nseed = 0\ndevice = "auto"', metadata={"tags": ["parameters"]}),
        new_code_cell(
            '# Parameters\ntier = "ci"\nseed = 7\ndevice = "cpu"\n',
            metadata={"tags": ["injected-parameters", "remove-cell"]},
        ),
        new_markdown_cell(THEOREM),
        new_code_cell("glue('toy-gap', gap)", outputs=[glued], metadata={"tags": ["remove-output"]}),
        new_code_cell("show(figure)", outputs=[figure], metadata={"mystnb": caption}),
        new_markdown_cell("The worst gap is {glue:text}`toy-gap:.2f` bounds."),
        new_code_cell(
            "explorer(figure)", outputs=[new_output("display_data", {"application/vnd.plotly.v1+json": PLOTLY})]
        ),
        new_markdown_cell(EXERCISE),
        new_markdown_cell(SOLUTION, metadata={"tags": ["solution"]}),
        new_code_cell("assert True  # the check", execution_count=7),
        new_markdown_cell("## Claims"),
        new_code_cell(
            "report(claims)",
            outputs=[new_output("display_data", {"text/html": '<table class="chapter-ledger"></table>'})],
        ),
    ]


def write_chapter(root: Path, more: str = "") -> None:
    """The toy chapter: source, executed copy, findings. ``more`` is a last markdown cell, the 14th of the source."""
    notebook = new_notebook(cells=[*cells(), *([new_markdown_cell(more)] if more else [])])
    notebook.metadata |= {
        "derived": FACTS,
        "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"},
    }
    for path in (root / "_build/executed/notebooks/toy.ipynb", root / "notebooks/toy.ipynb"):
        path.parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(notebook, path)
        notebook.cells = [c for c in notebook.cells if "injected-parameters" not in c.metadata.get("tags", [])]
    (root / "_build/findings").mkdir(exist_ok=True)
    (root / "_build/findings/toy.json").write_text(json.dumps(FINDING), "utf-8")


SLIDES = """# Toys ★

![A figure](toy-figure)

Note:
Rank first, by {prf:ref}`toy-theorem`.

---

## More

$a<b$ & it's live

![An explorer](explorer-1)
"""
PLAN = "# Plan: Toys\n\nProve {prf:ref}`toy-theorem`.\n"


def write_essay(root: Path) -> None:
    """In place of One block, a page that runs, as source and as executed."""
    text = new_markdown_cell(
        "# One block\n\nOf [toys](../notebooks/toy.ipynb) and [absent ones](../notebooks/absent.ipynb).", id="text"
    )
    said = new_output("stream", name="stdout", text="worst gap 1.0e-16, 0.5 of its bound, n = 3\n")
    for folder, outputs in (("book", []), ("_build/executed/book", [said])):
        (root / folder).mkdir(parents=True, exist_ok=True)
        code = new_code_cell("check(gap, bound)", id="code", outputs=outputs)
        notebook = new_notebook(cells=[text, code], metadata={"language_info": {"name": "python"}})
        nbformat.write(notebook, root / folder / "one_block.ipynb")


def write_book(root: Path) -> Path:
    """A checkout in small: the real pages and settings, one chapter, a package of one file."""
    shutil.copytree(ROOT / "book", root / "book")
    shutil.copyfile(ROOT / "_config.yml", root / "_config.yml")
    book = yaml.safe_load((root / "book/chapters.yml").read_text("utf-8"))
    (root / "book/chapters.yml").write_text(yaml.safe_dump({"chapters": {"toy": {}}, "parts": book["parts"]}), "utf-8")
    (root / "src/derived").mkdir(parents=True)
    (root / "src/derived/__init__.py").write_text('"""Toy."""\n', "utf-8")
    (root / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n'
        '[project]\nname = "toy-derived"\nversion = "0.1"\n'
        '[tool.hatch.build.targets.wheel]\npackages = ["src/derived"]\n',
        "utf-8",
    )
    (root / "book/glossary.yml").unlink()  # it names the book's chapters
    write_chapter(root)
    write_essay(root)
    (root / "book/teach/toy").mkdir()
    for name, text in (("slides.md", SLIDES), ("plan.md", PLAN)):
        (root / "book/teach/toy" / name).write_text(text, "utf-8")
    (root / "tests/papers/toy").mkdir(parents=True)
    (root / "tests/papers/toy/test_one.py").write_text("# `toy-theorem`\ndef test_it():\n    pass\n")
    return root


@pytest.fixture
def rendered(book: Path, tmp_path: Path) -> Path:
    """A copy of it, with its site, that a test may change."""
    return shutil.copytree(book, tmp_path / "rendered", symlinks=True)


@pytest.fixture
def fresh(tmp_path: Path) -> Path:
    """A toy book that a test may change; it has no site yet."""
    return write_book(tmp_path)


def page(root: Path, name: str) -> str:
    return (root / "_build/html" / name).read_text("utf-8")


def test_the_card_is_filled_from_data(book: Path):
    text = page(book, "notebooks/toy.html")
    assert "at a glance -->" not in text
    for expected in ("3 min to read", "41 s to run", "690 MB", "1 holds", "a desktop CPU", "make site CHAPTERS=toy"):
        assert expected in text, expected
    assert 'href="../downloads/toy-student.zip"' in text
    assert "Tan and Zhao, 2026" in text


def test_an_essay_is_shown_as_it_ran_and_links_to_the_chapters_of_this_build(book: Path):
    article = BeautifulSoup(page(book, "book/one_block.html"), "html.parser").article
    assert article.select_one(".checked").text == "worst gap of 3: 1.0e-16, 0.5 of its bound"
    links = [link["href"] for link in article.select("p > a.reference")]
    assert links == ["../notebooks/toy.html"]
    assert "toys and absent ones." in article.text


def test_computed_alt_text_and_provenance_reach_the_figure(book: Path):
    text = page(book, "notebooks/toy.html")
    assert 'alt="A rising line, from 0 to 1."' in text
    assert '<span class="provenance">live at tier ci, run_1 [seed 0]</span>' in text


def test_proofs_have_no_id_in_common(book: Path):
    text = page(book, "notebooks/toy.html")
    proofs = BeautifulSoup(text, "html.parser").select(".proof-fold:has(> summary)")
    assert [proof.get("id") for proof in proofs] == ["proof-toy-theorem", None]  # the second proves nothing new
    assert "Proof. " not in text
    assert 'id="proof"' not in text
    assert 'id="proof-content"' not in text


def test_a_statement_says_whose_it_is_and_where_it_is_checked(book: Path):
    soup = BeautifulSoup(page(book, "notebooks/toy.html"), "html.parser")
    box = soup.find(id="toy-theorem")
    assert box.select_one(".admonition-title .whose").get_text() == "from a summary"
    assert box.select_one(".admonition-title .headerlink")["href"] == "#toy-theorem"
    foot = box.select_one(".statement-links")
    assert foot.select_one("a[title='tests/papers/toy/test_one.py::test_it']")
    links = [link["href"] for link in foot.select("a")]
    assert " ".join(foot.get_text().split()).startswith("✓ proved cell test 1 TOY-1")
    assert links == [
        "#proof-toy-theorem",
        "#check-toy-theorem",
        "../claims/toy.html#test_one.test_it",
        "../claims/toy.html#TOY-1",
    ]
    evidence = BeautifulSoup(page(book, "claims/toy.html"), "html.parser")
    assert "def test_it" in evidence.find(id="test_one.test_it").pre.get_text()
    assert "glue" in soup.find(id="check-toy-theorem").get_text()
    assert soup.find(id="check-toy-theorem")["class"][0] == "cell"


def test_the_place_of_a_claim_names_the_statement_that_it_rests_on(book: Path):
    pages = {name: BeautifulSoup(page(book, name), "html.parser") for name in ("claims/toy.html", "book/theorems.html")}
    place = pages["claims/toy.html"].select_one("[data-claim='TOY-1']")
    stated = place.select_one("a[href='../notebooks/toy.html#toy-theorem']")
    assert stated.get_text() == "Theorem 1.1"
    assert "@misc{tan2026ols," in pages["claims/toy.html"].select_one("#bibtex + pre").get_text()
    row = pages["book/theorems.html"].select_one("tr.statement")
    assert row.th.a.get_text() == "Theorem 1.1"
    assert row.select_one("td a")["href"] == "../claims/toy.html#TOY-1"


def test_the_parameters_are_those_of_the_run(book: Path):
    text = page(book, "notebooks/toy.html")
    assert '<span class="mi">7</span>' in text
    assert "# Parameters" not in text
    assert "seed = 0" in (book / "_build/html/downloads/toy.ipynb").read_text("utf-8")


def test_an_explorer_needs_nothing_from_outside(book: Path):
    text = page(book, "notebooks/toy.html")
    assert 'data-plotly="../vendor/plotly.min.js"' in text
    assert "A parabola that widens as beta grows." in text
    scripts = [file.read_text("utf-8") for file in (book / "_build/html").rglob("*.js")]
    (figure,) = [script for script in scripts if script.startswith("(window.EXPLORERS")]
    assert '"template"' not in figure
    assert (book / "_build/html/vendor/plotly.min.js").stat().st_size > 1e6
    assert not (book / "_build/html/_static/plotly.min.js").exists()


def test_downloads_are_clean_and_say_how_to_install(book: Path):
    folder = book / "_build/html/downloads"
    (wheel,) = folder.glob("*.whl")
    full, student = (nbformat.read(folder / name, as_version=4) for name in ("toy.ipynb", "toy-student.ipynb"))
    nbformat.validate(full)
    assert f"pip install ./{wheel.name}" in full.cells[1].source
    assert "at a glance" not in full.cells[0].source
    assert all(not cell.get("outputs") and cell.get("execution_count") is None for cell in full.cells)
    assert len(full.cells) - len(student.cells) == 1
    assert "trace of a projector" in str(full)
    assert "trace of a projector" not in str(student)
    assert len(json.loads((folder / "ledger.json").read_text("utf-8"))) == len(ROWS)


def test_without_an_address_nothing_points_to_a_repository(book: Path):
    for name in ("notebooks/toy.html", "book/intro.html"):
        text = page(book, name)
        assert "colab" not in text
        assert "mybinder" not in text
        assert "github.com" not in text


def test_addresses_bring_launch_edit_and_issue_links_and_make_shared_links_absolute(fresh: Path, book: Path):
    config = (fresh / "_config.yml").read_text("utf-8")
    address = "https://some.where/book/"
    assert '  url: ""' in config
    assert 'ogp_site_url: ""' in config
    config = config.replace('  url: ""', "  url: https://github.com/some/where")
    (fresh / "_config.yml").write_text(config.replace('ogp_site_url: ""', f'ogp_site_url: "{address}"'), "utf-8")
    with (fresh / "book/chapters.yml").open("a", encoding="utf-8") as file:
        file.write("sphere: toy\n")
    render.render(fresh)
    text = page(fresh, "notebooks/toy.html")
    for expected in (
        "https://colab.research.google.com/github/some/where/blob/downloads/toy-student.ipynb",
        "https://github.com/some/where/edit/main/notebooks/toy.ipynb",
        "https://github.com/some/where/issues/new",
    ):
        assert expected in text, expected
    tested = "https://github.com/some/where/blob/main/tests/papers/toy/test_one.py#L2"
    assert tested in page(fresh, "claims/toy.html")
    clean = (fresh / "_build/html/downloads/toy.ipynb").read_text("utf-8")
    assert "pip install git+https://github.com/some/where" in clean
    for name in ("book/intro.html", "notebooks/toy.html", "book/ledger.html"):
        assert shared(fresh, name)["og:url"] == [address + name]
        assert "og:url" not in shared(book, name)


def shared(root: Path, name: str) -> dict[str, list[str]]:
    """What a shared link to a page shows, by the name of its tag."""
    found: dict[str, list[str]] = {}
    for tag in BeautifulSoup(page(root, name), "html.parser").select("meta[property^='og:']"):
        found.setdefault(tag["property"], []).append(tag["content"])
    return found


def test_nothing_changed_means_nothing_done(book: Path):
    before = os.readlink(book / "_build/html")
    assert not render.render(book).built
    assert os.readlink(book / "_build/html") == before


@pytest.mark.parametrize(
    "changed",
    [
        "book/intro.md",
        "book/_static/book.css",
        "_config.yml",
        "results/toy/Reach/cpu/record.json",
        "src/derived/__init__.py",
        "notebooks/toy.ipynb",
        "tests/papers/toy/test_one.py",
        "_build/executed/notebooks/toy.ipynb",
        "_build/findings/toy.json",
    ],
)
def test_the_key_follows_every_input(fresh: Path, changed: str):
    before = render.site_key(fresh, fresh / "_build", ["toy"])
    path = fresh / changed
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write("\n")
    assert render.site_key(fresh, fresh / "_build", ["toy"]) != before


BROKEN = {
    "no-such-equation": "See {eq}`no-such-equation`.",
    "no-such-theorem": "See {prf:ref}`no-such-theorem`.",
    "no-such-figure": "See {numref}`no-such-figure`.",
    "no-such-number": "The gap is {glue:text}`no-such-number`.",
    "nobody1900": "As shown {cite}`nobody1900`.",
    "no-such-place": "See [there](#no-such-place).",
    "no_such_page": "See [there](no_such_page.md).",
    "no-such-directive": "```{no-such-directive}\n```",
}


def test_broken_references_name_page_cell_and_cause_and_leave_the_good_site(rendered: Path):
    good = page(rendered, "notebooks/toy.html")
    text = "\n\n".join(BROKEN.values())
    write_chapter(rendered, more=text)
    with pytest.raises(UserError) as caught:
        render.render(rendered)
    assert "Traceback" not in str(caught.value)
    said = str(caught.value).splitlines()
    for cause in BROKEN:
        lines = [line for line in said if cause in line]
        assert lines, (cause, said)
        assert all(line.startswith("notebooks/toy.ipynb") for line in lines), lines
    line = 1 + text[: text.index("no-such-place")].count("\n")
    assert any(each.startswith(f"notebooks/toy.ipynb, cell 14, line {line}: ") for each in said), said
    assert page(rendered, "notebooks/toy.html") == good


def test_a_killed_build_leaves_the_good_site(rendered: Path):
    """Killed at the last moment, before the new site takes the place of the old one."""
    good = page(rendered, "notebooks/toy.html")
    write_chapter(rendered, more="A new last line.")
    code = (
        "import os, signal, sys; from pathlib import Path; from bookbuilder.sphinx_site import render\n"
        "render.swap = lambda *a: os.kill(os.getpid(), signal.SIGKILL)\n"
        "render.render(Path(sys.argv[1]))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(rendered)], cwd=ROOT)
    assert done.returncode == -signal.SIGKILL
    assert page(rendered, "notebooks/toy.html") == good
    render.render(rendered)
    assert "A new last line." in page(rendered, "notebooks/toy.html")
    assert len(list((rendered / "_build/sites").iterdir())) == 1


def test_the_swap_never_leaves_a_gap(tmp_path: Path):
    """The link is replaced, not removed and made again."""
    inodes = []
    for name in ("1", "2"):
        (tmp_path / "sites" / name).mkdir(parents=True)
        (tmp_path / "sites" / name / "index.html").write_text(name, "utf-8")
        render.swap(tmp_path, tmp_path / "sites" / name)
        inodes.append((tmp_path / "html").lstat().st_ino)
    assert (tmp_path / "html/index.html").read_text("utf-8") == "2"
    assert inodes[0] != inodes[1]
    assert [path.name for path in (tmp_path / "sites").iterdir()] == ["2"]
    assert os.readlink(tmp_path / "html") == "sites/2"  # relative: the folder can be moved


def test_the_table_of_contents_lists_the_chapters_of_the_build_where_a_part_has_no_pages(tmp_path: Path):
    (tmp_path / "book").mkdir()
    (tmp_path / "book/chapters.yml").write_text(
        "chapters: {toy: {name: Toys}, absent: {}, other: {}}\n"
        "parts: [{caption: Begin, pages: [start]}, {caption: Chapters}, {caption: The record, pages: [ledger]}]"
    )
    stage._stage_toc(tmp_path, tmp_path / "toc.yml", ["toy", "other"])
    evidence = [{"file": f"claims/{slug}", "title": f"Evidence, chapter {n}"} for n, slug in ((1, "toy"), (2, "other"))]
    chapters = [{"file": "notebooks/toy", "title": "Toys"}, {"file": "notebooks/other"}]
    assert yaml.safe_load((tmp_path / "toc.yml").read_text()) == {
        "format": "jb-book",
        "root": "book/intro",
        "parts": [
            {"caption": "Begin", "chapters": [{"file": "book/start"}]},
            {"caption": "Chapters", "numbered": True, "chapters": chapters},
            {"caption": "The record", "chapters": [{"file": "book/ledger", "sections": evidence}]},
        ],
    }


def test_missing_facts_and_card_are_named(fresh: Path):
    path = fresh / "_build/executed/notebooks/toy.ipynb"
    notebook = nbformat.read(path, as_version=4)
    del notebook.metadata["derived"]["objectives"]
    nbformat.write(notebook, path)
    with pytest.raises(UserError, match=r"toy: the notebook's metadata \"derived\" lacks objectives"):
        render.render(fresh)
    notebook.metadata["derived"]["objectives"] = ["o"]
    notebook.cells[0].source = "# Title"
    nbformat.write(notebook, path)
    with pytest.raises(UserError, match="exactly one markdown cell, found 0"):
        render.render(fresh)


ERRATUM = {"said": "$A = I$", "where": "§2", "right": "$A = H$", "who": "we", "checked": "TOY-2.a"}


def change_metadata(root: Path, **facts) -> None:
    path = root / "_build/executed/notebooks/toy.ipynb"
    notebook = nbformat.read(path, as_version=4)
    notebook["metadata"]["derived"].update(facts)
    nbformat.write(notebook, path)


def test_errata_have_a_place_and_are_whole(fresh: Path):
    change_metadata(fresh, errata=[ERRATUM])
    with pytest.raises(UserError, match=r"the line <!-- errata --> must be in one markdown cell"):
        render.render(fresh)
    change_metadata(fresh, errata=[ERRATUM | {"who": ""}])
    with pytest.raises(UserError, match=r"lacks errata\[0\].who"):
        render.render(fresh)


def test_an_explorer_without_words_is_refused(fresh: Path):
    path = fresh / "_build/executed/notebooks/toy.ipynb"
    notebook = nbformat.read(path, as_version=4)
    del notebook.cells[8].outputs[0].data["application/vnd.plotly.v1+json"]["layout"]["meta"]
    nbformat.write(notebook, path)
    with pytest.raises(UserError, match="toy: cell 8: an explorer has no description"):
        render.render(fresh)


def test_warnings_are_read_line_by_line(tmp_path: Path):
    stderr = (
        f"{tmp_path}/notebooks/x.ipynb:30003: WARNING: undefined label: 'a' [ref.ref]\n"
        f"\x1b[91m{tmp_path}/book/intro.md:7: ERROR: Unknown directive\x1b[39;49;00m\n"
        "WARNING: the whole site\nDeprecationWarning: never mind\nbuild finished with problems, 3 warnings.\n"
    )
    assert builder.read_warnings(stderr, tmp_path) == [
        "notebooks/x.ipynb, cell 3, line 2: undefined label: 'a' [ref.ref]",
        "book/intro.md, line 7: Unknown directive",
        "site: the whole site",
    ]


def test_a_builder_that_stops_says_why_in_one_line(fresh: Path):
    config = (fresh / "_config.yml").read_text("utf-8")
    (fresh / "_config.yml").write_text(config.replace("sphinx_design", "no_such_extension"), "utf-8")
    with pytest.raises(UserError, match=r"^[^\n]*no_such_extension[^\n]*$"):
        render.render(fresh)
    assert not (fresh / "_build/html").exists()


def test_settings_that_are_no_yaml_are_named(fresh: Path):
    with (fresh / "_config.yml").open("a") as file:
        file.write("      no_such_folder: {\n")
    with pytest.raises(UserError, match=r"^_config.yml, line \d+: mapping values are not allowed in this"):
        render.render(fresh)


def test_formulas_of_docstrings_are_no_marks_of_sphinx():
    from bookbuilder.sphinx_site.sphinx_ext import escape_formulas

    lines = ["a * b and |x| with ``s * t`` and q_", "", ">>> 2 * 3", "6", "", "x_1 * y"]
    escape_formulas(None, "function", "f", None, None, lines)
    assert lines == [r"a \* b and \|x\| with ``s * t`` and q\_", "", ">>> 2 * 3", "6", "", r"x_1 \* y"]
