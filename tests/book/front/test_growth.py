"""How the book grows: medians of seconds and bytes over chapters, and where a build's time goes."""

import re
from types import SimpleNamespace

from derived.book.front import growth
from derived.book.page.pages import Chapter
from derived.book.source.reading import Minutes


def test_a_chapter_adds_what_the_median_chapter_has(tmp_path):
    (tmp_path / "executed/notebooks").mkdir(parents=True)
    chapters = []
    for place, slug in enumerate(("a", "b", "c"), start=1):
        (tmp_path / f"executed/notebooks/{slug}.ipynb").write_bytes(bytes(place**2 * 1_000_000))
        (tmp_path / f"results/{slug}/E/ci").mkdir(parents=True)
        (tmp_path / f"results/{slug}/E/ci/rows.parquet").write_bytes(bytes(place * 200_000))
        chapters.append(Chapter(slug, {}, {"seconds": 10.0 * place}, 0, {}, Minutes(1, 2), (), slug))
    told = growth.sentence(tmp_path, tmp_path, chapters)
    assert "adds 20 s to a build from nothing (10 to 30)" in told
    assert "4 MB (1 to 9) of executed notebook" in told
    assert "0.4 MB (0.2 to 0.6) of records" in told


def test_a_build_tells_on_its_status_page_where_its_time_went():
    sections = {"Start": 0.2, "Patterns & more": 20.0, "Last": 0.1, "Middle": 9.0, "Long": 1.0}
    of = {"sections": sections, "functions": {"draws.normal": 0.1, "nets.run": 0.254}}
    runs = {"1 One": {"seconds": 4.04} | of, "2 Two": {"seconds": 30.4} | of}
    chapters = [SimpleNamespace(name=name, finding=each) for name, each in runs.items()]
    told = growth.told(f"<p>before</p>{growth.TIMES}<p>after</p>", chapters, {"Sphinx: start": 31.26})
    assert growth.TIMES not in told
    rows = re.findall(r"<tr>(.*?)</tr>", told)[1:]
    assert [re.findall(r"<td.*?>(.*?)</td>", row) for row in rows] == [
        ["1 One", "4.0&nbsp;s", "", ""],
        ["2 Two", "30.4&nbsp;s", "Patterns &amp; more: 20.0; Middle: 9.0; Long: 1.0", "nets.run 25%; draws.normal 10%"],
        ["Sphinx: start", "31.3&nbsp;s", "", ""],
    ]
    assert told.startswith("<p>before</p>")
    assert told.endswith("<p>after</p>")
