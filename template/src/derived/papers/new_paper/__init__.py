"""New paper.

>>> from derived.papers.new_paper import square
>>> square(3.0)
9.0
"""

from derived.lab import face

# What a stranger imports: 2 to 20 names, each loaded on first use.
__getattr__, __dir__, __all__ = face.attach(__name__, submod_attrs={"model.theory": ["square"]})
