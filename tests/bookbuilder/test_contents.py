"""The file book/chapters.yml: what is in it, what cannot be, and how a chapter is entered."""

import pytest

from bookbuilder import contents
from bookbuilder.paths import Repo, UserError

BOOK = """\
# A comment.
chapters:
  toy: {surprise: It surprises.}
  other: {}

parts:
  - {caption: Begin, pages: [how_to_read, essay]}
  - caption: Chapters
# Another.
sphere: other
"""


def write(root, text: str):
    (root / "book").mkdir(exist_ok=True)
    (root / "book/chapters.yml").write_text(text)
    return root


def test_chapters_have_the_order_of_the_file_and_pages_that_are_notebooks_are_essays(tmp_path):
    repo = Repo(write(tmp_path, BOOK))
    (tmp_path / "book/essay.ipynb").touch()
    assert (repo.chapters(), repo.essays()) == (["toy", "other"], ["essay"])
    assert repo.number("other") == 2


CHAPTERS = "chapters: {toy: {}, other: {}}\n"
PARTS = "parts: [{caption: Chapters}]\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (f"{CHAPTERS}{PARTS}sphere: typo", "book/chapters.yml: the book has no chapter typo; it has toy, other"),
        (
            f"chapters: {{toy: words}}\n{PARTS}",
            "chapters.yml: chapters: toy: Input should be a valid dictionary or instance of Words; found 'words'",
        ),
        (
            f"chapters: {{toy: {{suprise: A.}}}}\n{PARTS}",
            "chapters.yml: chapters: toy: suprise: Extra inputs are not permitted; found 'A.'",
        ),
        (f"chapters:\n  toy: {{}}\n  toy: {{}}\n{PARTS}", "chapters.yml, line 3: the key toy is there twice"),
        (CHAPTERS, "chapters.yml: parts: Field required; found {'chapters': {'toy': {}, 'other': {}}}"),
        (
            f"{CHAPTERS}parts: [{{caption: A, pages: [intro]}}]",
            "book/chapters.yml: exactly one part has no `pages`; there the chapters stand",
        ),
        (
            f"{CHAPTERS}parts: [{{caption: A}}, {{caption: B, pages: [c, d]}}, {{caption: E, pages: [c]}}]",
            "book/chapters.yml: it names the page c more than once",
        ),
    ],
)
def test_a_file_that_cannot_be_is_one_line(tmp_path, text, words):
    with pytest.raises(UserError) as caught:
        contents.read(write(tmp_path, text))
    assert str(caught.value) == words


def test_a_chapter_is_entered_last_and_the_rest_stays_as_it_is_written(tmp_path):
    contents.add(write(tmp_path, BOOK), "mine")
    words = "".join(f"    {name}: {text}\n" for name, text in contents.ENTRY.items())
    entered = f"  other: {{}}\n  mine:\n{words}"
    assert (tmp_path / "book/chapters.yml").read_text() == BOOK.replace("  other: {}\n", entered)
    assert Repo(tmp_path).chapters() == ["toy", "other", "mine"]
    with pytest.raises(UserError, match="it names mine already"):
        contents.add(tmp_path, "mine")
