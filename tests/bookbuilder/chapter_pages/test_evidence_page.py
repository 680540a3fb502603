"""The page of evidence: the paper's claims first, and every test that a page names is shown on it."""

import nbformat
from bs4 import BeautifulSoup
from nbformat.v4 import new_markdown_cell, new_notebook
from toybook import ROW

from bookbuilder.chapter_pages import evidence, pages
from bookbuilder.chapter_pages.pages import Chapter
from bookbuilder.notebook.evidence import Entry, Evidence
from bookbuilder.notebook.reading import Minutes


def test_the_papers_claims_come_first_and_all_can_be_filtered():
    rows = [
        ROW | {"changed": [], "expected": "holds", "id": claim, "source": source, "verdict": verdict}
        for claim, source, verdict in (("T-1", "ours", "holds"), ("T-2", "repo", "fails"), ("T-3", "paper", "holds"))
    ]
    found = [Evidence(Entry(row, [], []), (), "", None, None, (), {}) for row in rows]
    chapter = Chapter("toy", {"paper": {"title": "A toy"}}, {}, 0, {}, Minutes(1, 2), (), "1. Toy")
    page = BeautifulSoup(pages.evidence(chapter, found, set(), {}, "", ""), "html.parser")
    shown = [(each["data-claim"], each["data-group"], each["data-verdict"]) for each in page.select("[data-text]")]
    assert shown == [("T-3", "paper", "holds"), ("T-2", "code", "fails"), ("T-1", "ours", "holds")]
    assert [[each["value"] for each in select.select("option")] for select in page.select("form select")] == [
        ["", "paper", "code", "ours"],
        ["", "holds", "fails"],
    ]


def test_a_test_is_shown_of_each_statement_and_of_those_that_no_claim_rests_on(tmp_path):
    """The foot of a statement links its tests, whether a claim rests on it or not."""
    theorem = "```{{prf:theorem}} A title\n:label: {}\nIt is so.\n```"
    cells = [new_markdown_cell(theorem.format(label)) for label in ("t-claimed", "t-alone")]
    notebook = new_notebook(cells=cells, metadata={"derived": {}})
    tests = "".join(f'def test_{name}():\n    "`t-{name}`"\n\n\n' for name in ("claimed", "alone", "other"))
    for name, text in {"book/references.bib": "", "tests/papers/toy/test_one.py": tests}.items():
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(text)
    for folder in ("notebooks", "stage/notebooks", "stage/claims"):
        (tmp_path / folder).mkdir(parents=True)
    nbformat.write(notebook, tmp_path / "notebooks/toy.ipynb")
    facts = {"paper": {"title": "A toy", "bibkey": "toy"}}
    rows = [ROW | {"id": "T-1", "proof": "t-claimed", "changed": [], "expected": "holds"}]
    chapter = Chapter("toy", facts, {"rows": rows, "records": []}, 0, {}, Minutes(1, 2), (), "1. Toy")
    staged, index = evidence.write(tmp_path, tmp_path / "stage", chapter, notebook, "")
    assert [[row["id"] for row in each["claims"]] for each in index] == [["T-1"], []]
    page = BeautifulSoup((tmp_path / "stage/claims/toy.md").read_text(), "html.parser")
    assert [each["id"] for each in page.select("details.test")] == ["test_one.test_claimed", "test_one.test_alone"]
    for label, name in (("t-claimed", "claimed"), ("t-alone", "alone")):
        foot = BeautifulSoup(staged["statements"][label]["foot"], "html.parser")
        assert foot.select_one(f"a[href='../claims/toy.html#test_one.test_{name}']")
