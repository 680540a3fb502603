"""What a claim rests on, and where a notebook shows it."""

import pytest
from bs4 import BeautifulSoup
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from toybook import ROW

from bookbuilder.chapter_pages import pages
from bookbuilder.chapter_pages.evidence import mark_cells
from bookbuilder.notebook import evidence, statements

THEOREM = "```{{prf:theorem}} A title\n:label: {}\nIt is so.\n```\n"
PROOF = "```{prf:proof}\nSee above.\n```\n"


def row(claim: str, **changes) -> dict:
    """A row of the ledger."""
    return ROW | {"id": claim, "experiment": "Draws"} | changes


def notebook(*cells) -> dict:
    """A chapter of two theorems, and these cells."""
    stated = [new_markdown_cell(THEOREM.format(label)) for label in ("t-one", "t-two")]
    return new_notebook(cells=[*stated, *cells], metadata={"derived": {}})


def test_a_claim_rests_on_the_proof_that_it_names():
    assert evidence.resting(notebook(), [row("T-1", proof="t-one"), row("T-2")]) == {"t-one": ["T-1"]}


def figure(name: str) -> dict:
    return {"mystnb": {"figure": {"name": name, "caption": "It rises."}}}


def test_an_experiment_is_where_it_runs_and_in_the_figures_that_read_its_rows():
    cells = [
        new_code_cell("a, b = run(Draws), run(place.Walks)\ncheck(a)"),
        new_code_cell("c = run(Blur)\nshow(blurred(c.rows), c)", metadata=figure("fig-blur")),
        new_code_cell("show(both(a.rows, b.rows), a)", metadata=figure("fig-both")),
        new_code_cell("show(other(a.rows))"),
        new_code_cell("rows = run(Three).best.groupby('n').mean()"),
        new_code_cell("show(third(rows))", metadata=figure("fig-third")),
        new_code_cell("%timeit a"),
        new_code_cell("d = run(Unseen)", metadata={"tags": ["remove-cell"]}),
    ]
    assert evidence.seen(cells) == {
        "Draws": evidence.Seen(0, ("fig-both",)),
        "Walks": evidence.Seen(0, ("fig-both",)),
        "Blur": evidence.Seen(1, ("fig-blur",)),
        "Three": evidence.Seen(4, ("fig-third",)),
    }


def test_a_name_of_the_rows_of_two_experiments_is_of_neither():
    cells = [
        new_code_cell("both = joined(run(Draws), run(Walks))"),
        new_code_cell("show(two(both))", metadata=figure("fig-two")),
    ]
    assert evidence.seen(cells) == {"Draws": evidence.Seen(0, ()), "Walks": evidence.Seen(0, ())}


def test_a_proof_is_of_the_last_result_that_is_not_proved_yet():
    one, two, proof = (new_markdown_cell(text) for text in (THEOREM.format("a"), THEOREM.format("b"), PROOF))
    assert statements.proved([one, two, proof]) == {"b"}
    assert statements.proved([one, two, proof, proof]) == {"a", "b"}
    assert statements.proved([proof, one]) == set()


@pytest.mark.parametrize(
    ("changes", "command"),
    [
        ({}, "derived run toy --tier ci --seed 0"),
        ({"tier": "cpu"}, "derived record toy Draws --tier cpu"),
        ({"tier": "gpu"}, "derived record toy Draws --tier gpu --device cuda"),
        ({"experiment": None}, "derived run toy --tier ci --seed 0"),  # a check cell
        ({"experiment": None, "configuration": None}, ""),
    ],
)
def test_one_command_makes_the_rows_again(tmp_path, changes, command):
    entry = pages.Entry(row("T-1", proof="t-two", **changes), [], [])
    (found,) = evidence.gather(tmp_path, "toy", notebook(), [entry], [])
    assert found.rerun == command
    assert [each.label for each in found.rests] == ["t-two"]


def test_tests_are_those_of_the_statement_and_of_the_experiment(tmp_path):
    bodies = {"a": "'`t-one`'", "b": "Draws()", "c": "Drawsy()"}
    files = {
        "tests/papers/toy/test_one.py": "\n".join(f"def test_{name}():\n    {body}" for name, body in bodies.items()),
        "src/derived/papers/toy/one.py": "import x\n\nclass Draws:\n    pass\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(text)
    entry = pages.Entry(row("T-1", proof="t-one"), [], [])
    (found,) = evidence.gather(tmp_path, "toy", notebook(), [entry], [])
    assert [test.name for test in found.tests] == ["test_a", "test_b"]
    assert (found.source.file, found.source.line) == ("src/derived/papers/toy/one.py", 3)


def test_the_entry_of_a_bibliography_is_whole():
    entries = "@misc{other,\n  title = {A}\n}\n\n@misc{wanted,\n  title = {{B} b},\n}\n"
    assert evidence.bibtex(entries, "wanted") == "@misc{wanted,\n  title = {{B} b},\n}"
    assert evidence.bibtex(entries, "other") == "@misc{other,\n  title = {A}\n}", "and no more than it"
    assert evidence.bibtex(entries, "want") == ""


def test_an_explorer_s_cell_leads_to_the_claims_of_the_rows_that_it_reads():
    html = {
        "output_type": "display_data",
        "data": {"text/html": '<div class="explorer tex2jax_ignore">'},
        "metadata": {},
    }
    ran, other = new_code_cell("rows, rest = run(Draws), run(Other)"), new_code_cell("show(rows)")
    cells = [
        ran,
        other,
        new_code_cell("explorer(draw(rows))", outputs=[html]),
        new_code_cell("explorer(1)", outputs=[html]),
    ]
    assert evidence.explored(cells) == {2: ["Draws"], 3: []}
    found = [evidence.Evidence(pages.Entry(row("T-1"), [], []), (), "", None, None, (), {})]
    mark_cells("toy", cells, found)
    assert 'href="../claims/toy.html#T-1"' in cells[2]["metadata"]["derived_foot"]
    assert "derived_foot" not in cells[1]["metadata"]
    cells[1]["metadata"] |= figure("fig-one")
    cells[3]["metadata"] |= figure("fig-other")
    mark_cells("toy", cells, found)
    captions = [cells[place]["metadata"]["mystnb"]["figure"]["caption"] for place in (1, 3)]
    assert captions == ["It rises. [Evidence of T-1]{.evidence-of}", "It rises."]
    assert "derived_foot" not in cells[3]["metadata"]


def test_a_check_cell_and_the_evidence_of_its_claim_lead_to_each_other(tmp_path):
    cells = [new_markdown_cell(THEOREM.format("t-one")), new_code_cell('check(a, b, "T-1")')]
    whole = new_notebook(cells=cells, metadata={"derived": {}})
    rows = [row("T-1", experiment=None)]
    (found,) = evidence.gather(tmp_path, "toy", whole, [pages.Entry(rows[0], [], [])], [])
    assert (found.decided, [each.label for each in found.rests]) == ("t-one", ["t-one"])
    mark_cells("toy", cells, [found])
    foot = BeautifulSoup(cells[1].metadata["derived_foot"], "html.parser")
    assert [link["href"] for link in foot.select("a")] == ["#t-one", "../claims/toy.html#T-1"]
