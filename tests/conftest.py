"""One profile for all property tests: the same examples in every run, however slow the machine."""

from hypothesis import settings

settings.register_profile("book", derandomize=True, max_examples=25, deadline=None, database=None)
settings.load_profile("book")


def pytest_configure(config):
    """Let torch say that Python 3.13.0 is slower than its next patch; every other warning is an error."""
    config.addinivalue_line("filterwarnings", "ignore:Guards may run slower on Python 3.13.0:RuntimeWarning")
