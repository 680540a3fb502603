"""Claims that a check cell decides: what of them stands in the notebook, and what is wrong where it does not."""

import ast

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from toybook import ROW

from bookbuilder.notebook import notebook_claims

THEOREM = "```{{prf:theorem}} The {0}\n:label: t-{0}\n:class: ours\n\nSo it is:\n\n$$\n{0}=1 .\n$$ (t-eq-{0})\n```\n"
PROOF = "```{prf:proof}\nSee above.\n```\n"


def page(*cells: str, text: str = THEOREM.format("one")) -> dict:
    return new_notebook(cells=[new_markdown_cell(text), *map(new_code_cell, cells)])


def test_sentence_kind_and_place_of_a_claim_stand_on_the_page():
    found = notebook_claims.decided(page('check(gap, bound, "T-1")'))["T-1"]
    assert (found["label"], found["statement"], found["kind"]) == ("t-one", "So it is: $one=1 .$", "identity")
    assert (found["proof"], found["accept"]) == ("", [None, 1.0])


@pytest.mark.parametrize(
    ("calls", "kind"),
    [
        ('check(a, b, "T-1")', "identity"),
        ('check(a, b, "T-1"); at_most(a, b, "T-1")', "bound"),
        ('refute(a, b, "T-1")', "counterexample"),
    ],
)
def test_the_kind_is_that_of_the_calls(calls, kind):
    assert notebook_claims.decided(page(calls))["T-1"]["kind"] == kind


def test_terms_hold_the_code_of_every_cell_of_the_claim_and_not_its_comments():
    def terms(*cells: str, text: str = THEOREM.format("one")) -> str:
        return notebook_claims.decided(page(*cells, text=text))["T-1"]["terms"]

    first = terms('check(a, b, "T-1")', "x = 1")
    assert terms("# The gap.\ncheck(a,  b,\n  'T-1')", "x = 2") == first
    assert terms('check(a, b, "T-1", control=2 * a)', "x = 1") == first
    others = {
        terms('check(a, 2 * b, "T-1")'),
        terms('at_most(a, b, "T-1")'),
        terms('check(a, b, "T-1")', 'check(c, b, "T-1")'),
        terms('check(a, b, "T-1")', text=THEOREM.format("two")),
    }
    assert len(others | {first}) == 5


def test_terms_hold_what_a_check_cell_takes_its_values_from():
    def terms(
        *before: str, cell: str = 'for n in sizes:\n    check(gap(x, n), b, "T-1")', tags: tuple[str, ...] = ()
    ) -> str:
        notebook = page(cell)
        notebook.cells[:0] = map(new_code_cell, before)
        notebook.cells[0].metadata["tags"] = [*tags]
        return notebook_claims.decided(notebook)["T-1"]["terms"]

    def gap(sizes: str = "sizes = [4]", of: str = "return x - n") -> str:
        return f"from somewhere import b\ndef gap(x, n):\n    {of}\nwith quiet():\n    {sizes}"

    first = terms("k = 3", "x = draw(k)", gap())
    alike = {
        terms("k = 3", "x = 0", "x = draw(k)  # drawn anew", gap()),
        terms("k = 3", "x = draw(k)", gap(), "n = 7\nfor y in x:\n    y += 1", "%matplotlib inline"),
        terms(
            "k = 3", "x = draw(k)", gap(), "z = 5", cell='for n in sizes:\n    check(gap(x, n), b, "T-1", control=z)'
        ),
    }
    others = {
        terms("k = 4", "x = draw(k)", gap()),
        terms("k = 3", "x = draw(k)\nx += 1", gap()),
        *(terms("k = 3", f"x = {either}\nif k:\n    x = draw(k)", gap()) for either in (0, 1)),
        terms("k = 3", "x = [draw(k) for n in 'ab']", gap()),
        terms("k = 3", "x = draw(k)", gap(sizes="sizes = [5]")),
        terms("k = 3", "x = draw(k)", gap(of="return x + n")),
        *(terms(f"k = {size}", "x = draw(3)", gap(of="return x - n - k")) for size in (3, 4)),
    }
    assert alike == {first}
    assert len(others | {first}) == 10
    runs = {terms(f"k = {seed}", "x = draw(k)", gap(), tags=("parameters",)) for seed in (0, 1)}
    assert len(runs) == 1  # a seed belongs to a run


def test_a_row_is_filled_from_the_page():
    row = ROW | {"kind": "bound", "statement": "see T-1"}
    notebook_claims.fill(page('at_most(a, b, "T-1")', text=THEOREM.format("one") + PROOF), [row])
    assert (row["proof"], row["statement"]) == ("t-one", "So it is: $one=1 .$")
    assert {*row} == {*ROW}


@pytest.mark.parametrize(
    ("cells", "fault"),
    [
        (["check(a, b, name)"], "cell 2 (check(a, b, name)): give check the id of a claim as its third argument"),
        (['at_most(a, b, "T-1")'], "T-1: a bound needs a proof, and t-one has none on the page"),
        (["x = 1", 'check(a, b, "T-1")'], "is the check cell of no statement"),
        (['check(a, b, "T-1"); refute(a, b, "T-1")'], "T-1: it is both checked and refuted"),
        (['check(a, b, "T-1"); check(a, b, "T-2")'], "T-2: t-one is the statement of T-1"),
    ],
)
def test_what_cannot_decide_a_claim_is_named_with_its_cell(cells, fault):
    (said,) = notebook_claims.faults(page(*cells))
    assert fault in said
    assert said.startswith("cell ")


def test_a_cell_that_checks_two_statements_decides_no_claim():
    notebook = page('check(a, b, "T-1")', text=THEOREM.format("one") + "\n" + THEOREM.format("two"))
    notebook.cells[1].metadata["derived"] = {"checks": ["t-one", "t-two"]}
    (said,) = notebook_claims.faults(notebook)
    assert "T-1: its cell checks theorem t-one, theorem t-two" in said


def test_a_statement_that_only_the_page_can_show_is_refused():
    text = "```{prf:lemma} A\n:label: t-one\n\nBy {eq}`t-eq` it is.\n```\n"
    (said,) = notebook_claims.faults(page('check(a, b, "T-1")', text=text))
    assert "T-1: its statement cannot be read alone: it has {eq}`t-eq`" in said


def test_claims_and_check_cells_name_each_other():
    notebook = page('check(a, b, "T-1")')
    assert notebook_claims.unmatched(notebook, ["T-1"]) == []
    lost, strange = notebook_claims.unmatched(notebook, ["T-2"])
    assert lost == "claim T-2 is on_page, and no check cell names it"
    assert strange == 'cell 2 (check(a, b, "T-1")): T-1 is no claim that is on_page'


@pytest.mark.parametrize(
    "code",
    [
        "print(f\"{a['b']:.2f} of {f'{c:.2g}'}, {{d}}\\n\")",
        "f'{(a if b else c)!r:>{width}}'",
        "f'''{x['y']} \"said\"'''",
        "f''",
    ],
)
def test_code_is_written_alike_in_every_python(code):
    """As 3.11 writes it, whose terms are in the ledger."""
    assert notebook_claims._written(ast.parse(code)) == code


@pytest.mark.parametrize("listed", ["[f(i) for i in x]", "{f(i) for i in x}", "{i: f(i) for i in x}"])
def test_the_names_of_a_comprehension_are_its_own(listed):
    [line] = notebook_claims._statements(f"y = {listed}")
    assert (line.reads, line.gives) == ({"f", "x"}, {"y"})
