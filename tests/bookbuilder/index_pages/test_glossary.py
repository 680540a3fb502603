"""The glossary."""

import pytest
import toybook

from bookbuilder.index_pages.glossary import glossary
from bookbuilder.paths import UserError


def test_terms_are_sorted_and_lead_only_to_chapters_that_are_there(tmp_path):
    toybook.write_toc(tmp_path, "toy", "other", "gone")
    terms = "- {term: zeta, means: Last., at: [toy#b]}\n- {term: Alpha, means: First., at: [toy#a, gone#c]}\n"
    terms += "- {term: control, means: Does nothing.}\n- {term: lost, means: None., at: [gone#c]}\n"
    (tmp_path / "book/glossary.yml").write_text(terms)
    assert glossary(tmp_path, ["toy"]).splitlines() == [
        *(
            "```{glossary}",
            "Alpha",
            "  First. {prf:ref}`a`",
            "",
            "control",
            "  Does nothing.",
            "",
            "zeta",
            "  Last. {prf:ref}`b`",
            "",
            "```",
        ),
    ]
    assert "zeta" not in glossary(tmp_path, ["other"])


@pytest.mark.parametrize(
    ("term", "words"),
    [
        ("{term: A, means: First., at: [typo#a]}", "glossary.yml: A: the book has no chapter typo; it has toy"),
        ("{term: A, means: First., at: [toy]}", "glossary.yml: 0: at: 0: String should match pattern .*; found 'toy'"),
    ],
)
def test_a_term_that_leads_nowhere_is_refused(tmp_path, term, words):
    toybook.write_toc(tmp_path, "toy")
    (tmp_path / "book/glossary.yml").write_text(f"- {term}\n")
    with pytest.raises(UserError, match=f"^{words}$"):
        glossary(tmp_path, ["toy"])
