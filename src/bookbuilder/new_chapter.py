"""Starts a chapter from the folder ``template/``: a small chapter that runs, whose name is ``new_paper``."""

import json
import keyword
import re
from pathlib import Path

from bookbuilder import contents
from bookbuilder.notebook.evidence import bibtex
from bookbuilder.paths import Repo, UserError, write_whole

SLUG, TITLE, LETTERS = "new_paper", "New paper", "NEW"  # in the names and texts of the template


def new(repo: Repo, slug: str, authors: str, bibkey: str) -> tuple[list[Path], str]:
    """Write the files of a new chapter and enter it last in book/chapters.yml; refuse a name in use.

    Returns the files, and the id of their claim.
    """
    if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", slug) or keyword.iskeyword(slug):
        raise UserError(
            f"{slug!r} is no slug: use small letters, digits and single underscores, like ols_attention, "
            "and no word of Python"
        )
    if not (authors.strip() and re.fullmatch(r"[\w:.-]+", bibkey)):
        raise UserError("a chapter needs the authors of its paper, and a key of book/references.bib, like tan2026ols")
    title, template = slug.replace("_", " ").capitalize(), repo.root / "template"
    files = {
        repo.root / str(path.relative_to(template)).replace(SLUG, slug): path.read_text("utf-8")
        for path in sorted(template.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }
    existing = [path.relative_to(repo.root) for path in files if path.exists()]
    if existing:
        raise UserError(f"there is a chapter {slug} already ({existing[0]}); take another name")
    contents.add(repo.root, slug)
    bibliography, words = repo.root / "book/references.bib", slug.split("_")
    letters = ("".join(word[0] for word in words) if len(words) > 1 else slug[:3]).upper()  # begin the ids of claims
    dashed = slug.replace("_", "-")  # in the names of figures
    for path, text in files.items():
        named = text.replace(SLUG, slug).replace(SLUG.replace("_", "-"), dashed).replace(TITLE, title)
        write_whole(path, named.replace(f"{LETTERS}-", f"{letters}-"))
    notebook = json.loads(repo.notebook(slug).read_text("utf-8"))
    notebook["metadata"]["derived"]["paper"] |= {"authors": authors.strip(), "bibkey": bibkey}
    write_whole(repo.notebook(slug), json.dumps(notebook, indent=1, ensure_ascii=False) + "\n")
    made = [*files, repo.root / contents.FILE]
    known = bibliography.read_text("utf-8") if bibliography.is_file() else ""
    if not bibtex(known, bibkey):
        people = authors.strip() if " and " in authors else re.sub(r",\s*", " and ", authors.strip())  # as BibTeX does
        entry = f"@misc{{{bibkey},\n  title = {{{title}}},\n  author = {{{people}}},\n  year = {{2026}}\n}}\n"
        write_whole(bibliography, known + entry)
        made.append(bibliography)
    return [path.relative_to(repo.root) for path in made], f"{letters}-1"
