"""The page of words and letters."""

import nbformat
import pytest
import toybook

from bookbuilder.index_pages import notation
from bookbuilder.paths import UserError

TABLE = r"""| symbol | shape | meaning |
|---|---|---|
| $d,\ n$ | integers | width, tokens |
| $\|x\|$; $A$ | | a norm |
| $x_n$ | iterate | |"""


def test_the_table_of_symbols_is_taken_as_it_is_written():
    cells = [nbformat.v4.new_markdown_cell("| symbols | x |\n|---|---|\n| a | b |"), nbformat.v4.new_code_cell(TABLE)]
    cells.append(nbformat.v4.new_markdown_cell(f"## Setup\n\n{TABLE}\n\nMore words."))
    assert notation.table(nbformat.v4.new_notebook(cells=cells)) == TABLE
    assert notation.table(nbformat.v4.new_notebook(cells=cells[:2])) == ""


def test_an_escaped_bar_parts_no_cells_and_an_empty_meaning_is_the_type():
    rows = notation.symbols(TABLE)
    assert [row.symbol for row in rows] == ["$d,\\ n$", "$\\|x\\|$; $A$", "$x_n$"]
    assert [row.meaning for row in rows] == ["width, tokens", "a norm", "iterate"]


@pytest.mark.parametrize(
    ("symbol", "heads"),
    [
        ("$d,n,H,L$", ["d", "n", "H", "L"]),
        ("$T,\\ d,\\ d_k$", ["T", "d"]),
        ("$\\Pi(\\mu,\\nu)$, $\\Pi(a,b)$", ["\\Pi"]),
        ("$\\tilde X,\\ \\tilde\\Sigma$", ["X", "\\Sigma"]),
        ("$J^{B,b},K^{B,b}$", ["J", "K"]),
        ("$\\mathrm{kl}(a\\|b)$", []),
        ("$\\beta_{\\min}$", ["\\beta"]),
        ("$\\operatorname{sym}(M)$", []),
    ],
)
def test_a_row_is_about_the_letters_that_head_its_formulas(symbol, heads):
    assert notation.letters(symbol) == heads


def chapters(count: int) -> list[tuple[int, str, str]]:
    head = "| symbol | type | meaning |\n|---|---|---|\n"
    return [(n, f"Title {n}", f"{head}| $h$ | | meaning {n} |\n| $q$ | | law |") for n in range(1, count + 1)]


def test_a_letter_is_listed_with_its_meaning_in_each_of_several_chapters():
    text = notation.shared([*chapters(3), (4, "Title 4", "")])
    lines = text.splitlines()
    assert [line.split("|")[1].strip() for line in lines[2:]] == ["$h$", "$q$"]
    assert "**2** $h$: meaning 2" in lines[2]
    assert "No letter" in notation.shared(chapters(2))


def test_greek_letters_follow_latin_ones_and_small_letters_come_first():
    found = sorted(["\\beta", "H", "\\Sigma", "h", "a", "\\varepsilon", "\\sigma"], key=notation._alphabetical)
    assert found == ["a", "h", "H", "\\beta", "\\varepsilon", "\\sigma", "\\Sigma"]


def test_each_chapters_letters_stand_under_its_heading():
    text = notation.notation([*chapters(1), (2, "None", "")])
    assert text.startswith("## Letters of chapter 1: Title 1\n\n| symbol")
    assert "None" not in text


def test_terms_are_sorted_and_lead_only_to_chapters_that_are_there(tmp_path):
    toybook.write_toc(tmp_path, "toy", "other", "gone")
    terms = "- {term: zeta, means: Last., at: [toy#b]}\n- {term: Alpha, means: First., at: [toy#a, gone#c]}\n"
    (tmp_path / "book/glossary.yml").write_text(terms + "- {term: lost, means: None., at: [gone#c]}\n")
    assert notation.glossary(tmp_path, ["toy"]).splitlines() == [
        *("```{glossary}", "Alpha", "  First. {prf:ref}`a`", "", "zeta", "  Last. {prf:ref}`b`", "", "```"),
    ]
    assert notation.glossary(tmp_path, ["other"]) == ""


@pytest.mark.parametrize(
    ("term", "words"),
    [
        ("{term: A, means: First., at: [typo#a]}", "glossary.yml: A: the book has no chapter typo; it has toy"),
        ("{term: A, means: First., at: [toy]}", "glossary.yml: A: an entry is slug#label; found 'toy'"),
        ("{term: A, means: First.}", "glossary.yml, entry 1: at is missing"),
    ],
)
def test_a_term_that_leads_nowhere_is_refused(tmp_path, term, words):
    toybook.write_toc(tmp_path, "toy")
    (tmp_path / "book/glossary.yml").write_text(f"- {term}\n")
    with pytest.raises(UserError, match=f"^{words}$"):
        notation.glossary(tmp_path, ["toy"])
