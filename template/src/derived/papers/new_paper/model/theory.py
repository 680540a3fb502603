"""Closed forms.

symbol  name  meaning  axes
x       x     a number
"""


def square(x: float) -> float:
    """The square x^2 of a number. Source: ours.

    >>> square(2.0)
    4.0
    """
    return x * x
