"""A replication report: its numbers and its table of claims come from the rows of the build."""

from toybook import ROW

from bookbuilder.chapter_pages.pages import Chapter
from bookbuilder.index_pages import reports
from bookbuilder.notebook.reading import Minutes

TEXT = "# Replication report: Toy\n\n<!-- results -->\n\nIt is {claim}`T-1:.2f`.\n"


def chapter(**changes) -> Chapter:
    row = ROW | {"id": "T-1", "paper": "toy", "source": "paper", "value": 0.5, "headline": True} | changes
    return Chapter("toy", {}, {"chapter": "toy", "rows": [row]}, 0, {}, Minutes(1, 2), (), "1. Toy")


def test_numbers_and_the_table_of_claims_are_filled_in(tmp_path):
    reports.source(tmp_path, "toy").parent.mkdir(parents=True)
    reports.source(tmp_path, "toy").write_text(TEXT)
    reports.write(tmp_path, tmp_path, chapter())
    text = (tmp_path / "reports/toy.md").read_text()
    assert "It is 0.50." in text
    assert 'data-claim="T-1"' in text
    assert reports.RESULTS not in text


def test_a_chapter_without_a_report_has_no_page(tmp_path):
    reports.write(tmp_path, tmp_path, chapter())
    assert not (tmp_path / "reports").exists()
