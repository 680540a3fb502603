"""How a chapter opens on the site."""

import nbformat
from bs4 import BeautifulSoup

from derived.book.page import explorer, opening

PLOT = {"data": [], "layout": {"meta": {"alt": "Two bars."}}, "frames": []}


def text(source: str) -> nbformat.NotebookNode:
    return nbformat.v4.new_markdown_cell(source)


def code(source: str, *data: dict, tags: tuple = ()) -> nbformat.NotebookNode:
    outputs = [nbformat.v4.new_output("display_data", each) for each in data]
    return nbformat.v4.new_code_cell(source, outputs=outputs, metadata={"tags": [*tags]})


def figure(source: str = "show(f)") -> nbformat.NotebookNode:
    return code(source, {"image/svg+xml": "<svg/>", "text/plain": "alt"})


def dial() -> nbformat.NotebookNode:
    html = str(explorer.placeholder(PLOT, "../p.js", "explorer-1", "../explorers/toy"))
    return code("explorer(e)", {"text/html": html})


def arranged(*cells: nbformat.NotebookNode) -> list[str]:
    """The first line of each cell after the layout."""
    notebook = nbformat.v4.new_notebook(cells=list(cells))
    opening.arrange(notebook)
    nbformat.validate(notebook)
    return notebook.cells


def lines(cells: list) -> list[str]:
    return [cell.source.splitlines()[0] for cell in cells]


SHORT = "## In ten minutes\n\nA question.\n\nMore words.\n\n:::{admonition} A result\n:class: result\nIt holds.\n:::"


def test_the_picture_follows_the_first_paragraph_and_the_set_up_folds_above():
    cells = arranged(
        text("# Title\n\ncard"),
        code("import a", tags=("hide-input",)),
        code("tier = 1", tags=("parameters",)),
        text(SHORT),
        code("rows = b"),
        figure(),
        text("Last words.\n\n## The question\n\nWhy?"),
        code("print(1)"),
    )
    assert lines(cells) == [
        *("# Title", "```````{raw} html", "import a", "tier = 1", "rows = b", "```````{raw} html"),
        *("## In ten minutes", "show(f)", "More words.", "Last words.", "## The question", "print(1)"),
    ]
    assert "3 cells" in cells[1].source
    assert cells[2].metadata["tags"] == []


def test_a_title_and_the_short_path_in_one_cell_are_parted():
    cells = arranged(text(f"# Title\n\ncard\n\n{SHORT}"), code("import a"), figure(), text("## The question\n\nWhy?"))
    assert lines(cells)[:1] == ["# Title"]
    assert lines(cells).index("import a") < lines(cells).index("## In ten minutes") < lines(cells).index("show(f)")


def test_without_a_figure_the_explorer_is_shown_a_second_time_and_its_data_once():
    cells = arranged(text("# Title"), text(SHORT), text("## The question\n\nWhy?"), dial())
    soup = BeautifulSoup(cells[2].source, "html.parser")
    again = soup.select_one(".explorer")
    assert (again["id"], again["data-figure"]) == ("explorer-1-again", "../explorers/toy.js")
    assert soup.select_one("noscript img")["src"] == "../explorers/toy.svg"
    assert soup.select_one("a")["href"] == "#explorer-1"
    first = BeautifulSoup(cells[-1].outputs[0]["data"]["text/html"], "html.parser").select_one("#explorer-1")
    assert first["data-figure"] == again["data-figure"]


def test_cells_that_show_something_and_hidden_ones_stay_where_they_are():
    said = nbformat.v4.new_output("stream", name="stdout", text="2\n")
    printed = nbformat.v4.new_code_cell("print(2)", outputs=[said])
    kept = code("glue(n)", tags=("remove-cell",))
    cells = arranged(text("# Title"), kept, text(SHORT), figure(), printed, text("## The question\n\nWhy?"))
    assert lines(cells) == [
        *("# Title", "glue(n)", "## In ten minutes", "show(f)", "More words.", "print(2)", "## The question"),
    ]


def test_a_section_that_begins_with_a_box_is_not_torn():
    box = "## In ten minutes\n\n:::{admonition} One\n\nText.\n:::"
    cells = arranged(text("# Title"), text(box), figure(), text("## The question\n\nWhy?"))
    assert cells[1].source == box


def test_a_chapter_without_the_section_stays_as_it_is():
    cells = [text("# Title"), code("import a"), figure()]
    assert arranged(*cells) == cells


def test_an_opening_shows_its_picture_between_the_surprise_and_the_lines():
    shown = figure()
    shown.metadata["tags"] = ["opening"]
    head = text("# Title\n\nWhat was read.\n\n<!-- picture -->\n\nThree lines.")
    short = text("## In short\n\nIt is so.")
    cells = arranged(head, code("import a"), shown, short)
    assert [each for each in lines(cells) if not each.startswith(("`", "<"))] == [
        *("# Title", "show(f)", "Three lines.", "import a", "## In short"),
    ]
    assert "remove-input" in shown.metadata["tags"]
