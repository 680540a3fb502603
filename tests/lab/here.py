"""Skips a test whose real weights or data are not here, and says how to fetch them: ``@needs("rxnmapper")``."""

import pytest

from derived.lab.real import pinned


def needs(*names: str) -> pytest.MarkDecorator:
    missing = pinned.missing(names)
    return pytest.mark.skipif(bool(missing), reason=pinned.not_here(missing) if missing else "all are here")
