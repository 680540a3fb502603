"""The command ``derived``: the book's builder in a checkout; without one, a line that says what it needs."""

import sys
from importlib.util import find_spec


def main() -> None:
    """Run the builder's command line; exit with one line where only the package is installed."""
    if find_spec("bookbuilder") is None:
        sys.exit("derived: this command builds the book and needs a clone of its repository; here is only the package")
    from bookbuilder.cli import main as build

    build()
