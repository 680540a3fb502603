"""Chapter eleven in a book of its own: what ``derived new`` makes is a whole page after one build, and nothing else."""

import shutil

import pytest
import toybook
import yaml
from bs4 import BeautifulSoup


@pytest.fixture
def shelf(repo):
    """A checkout with the book's own pages and one chapter that the new one is entered after."""
    shutil.copytree(toybook.ROOT / "book", repo / "book", dirs_exist_ok=True)
    for name in ("_config.yml", "hatch_build.py", "README.md", "LICENSE"):
        shutil.copy(toybook.ROOT / name, repo)
    (repo / "book/glossary.yml").unlink()  # it names the book's chapters
    (repo / "book/one_block.ipynb").rename(repo / "book/one_block.md").write_text("# One block\n")  # it takes no time
    for page in (repo / "book/intro.md", repo / "book/teaching.md"):
        page.write_text(page.read_text().replace("one_block.ipynb", "one_block.md"))
    keep_chapters(repo, "ols_attention")
    return repo


def keep_chapters(repo, *slugs: str) -> None:
    """Leave no other chapters in the book, and no paths through them."""
    path = repo / "book/chapters.yml"
    written = yaml.safe_load(path.read_text())
    few = {slug: written["chapters"][slug] for slug in slugs}
    path.write_text(yaml.safe_dump({"chapters": few, "parts": written["parts"]}, sort_keys=False))


def test_a_new_chapter_is_a_page_after_one_build(shelf):
    made = toybook.derived(shelf, "new", "my_paper", "--authors", "Some One", "--bibkey", "someone2026mine")
    assert made.returncode == 0, made.stderr
    keep_chapters(shelf, "my_paper")
    assert toybook.derived(shelf, "register", "my_paper", "holds", "MP-1").returncode == 0
    built = toybook.process(shelf, "site")
    assert built.returncode == 0, built.stderr
    page, evidence = (
        BeautifulSoup((shelf / f"_build/html/{name}/my_paper.html").read_text(), "html.parser")
        for name in ("notebooks", "claims")
    )
    assert page.find(id="my_paper-square").select_one(".statement-links a[href='#check-my_paper-square']")
    assert page.select_one("figure#fig-my-paper-gaps img, figure svg")
    assert page.select_one("#claim-MP-1")
    assert evidence.select_one("[data-claim='MP-1']")["data-verdict"] == "holds"
    assert page.select_one(".opening-surprise").find_next("figure")["id"] == "fig-my-paper-gaps"
    assert toybook.derived(shelf, "claims").returncode == 1, "no ledger holds it yet"
