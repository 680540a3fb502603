"""Transformers, Derived: the tested package behind an executable book.

Three layers; imports go down only:
    bookbuilder    the builder: runs, stages and renders the chapters, and the command line
    derived.papers  one folder per paper: theory, mechanism, experiments, figures, claims
    derived.lab     the instruments that papers share: randomness, records, claims, statistics, plots
"""

__version__ = "0.1.0"
