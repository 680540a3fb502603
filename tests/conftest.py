"""One profile for all property tests: the same examples in every run, however slow the machine."""

from hypothesis import settings

settings.register_profile("book", derandomize=True, max_examples=25, deadline=None, database=None)
settings.load_profile("book")
