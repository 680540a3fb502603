"""What the chapter's claims say of their source."""

from derived.papers.homogenized import claims


def test_statements_of_version_one_are_worded_as_retold():
    for claim in claims.CLAIMS:
        assert claim.source != "digest" or claim.where.startswith("version 1")
        assert claim.source != "paper" or claim.where.startswith("abstract")
