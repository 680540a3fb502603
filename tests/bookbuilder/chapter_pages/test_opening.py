"""How a chapter opens on the site."""

import nbformat

from bookbuilder.chapter_pages import opening


def text(source: str) -> nbformat.NotebookNode:
    return nbformat.v4.new_markdown_cell(source)


def code(source: str, *data: dict, tags: tuple = ()) -> nbformat.NotebookNode:
    outputs = [nbformat.v4.new_output("display_data", each) for each in data]
    return nbformat.v4.new_code_cell(source, outputs=outputs, metadata={"tags": [*tags]})


def figure(source: str = "show(f)") -> nbformat.NotebookNode:
    return code(source, {"image/svg+xml": "<svg/>", "text/plain": "alt"})


def arranged(*cells: nbformat.NotebookNode) -> list[str]:
    """The first line of each cell after the layout."""
    notebook = nbformat.v4.new_notebook(cells=list(cells))
    opening.arrange(notebook)
    nbformat.validate(notebook)
    return notebook.cells


def lines(cells: list) -> list[str]:
    return [cell.source.splitlines()[0] for cell in cells]


def test_a_chapter_without_an_opening_stays_as_it_is():
    cells = [text("# Title"), code("import a"), figure()]
    assert arranged(*cells) == cells


def test_an_opening_shows_its_picture_between_the_surprise_and_the_lines():
    shown = figure()
    shown.metadata["tags"] = ["opening"]
    head = text("# Title\n\nWhat was read.\n\n<!-- picture -->\n\nThree lines.")
    short = text("## In short\n\nIt is so.")
    cells = arranged(head, code("import a", tags=("hide-input",)), shown, short)
    assert [each for each in lines(cells) if not each.startswith(("`", "<"))] == [
        *("# Title", "show(f)", "Three lines.", "import a", "## In short"),
    ]
    assert "remove-input" in shown.metadata["tags"]
    assert any("1 cell of code" in cell.source for cell in cells), "the set-up is in a fold"
