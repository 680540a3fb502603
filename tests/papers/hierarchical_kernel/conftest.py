"""What the tests of this paper's figures share."""

import pytest
from matplotlib.figure import Figure


@pytest.fixture
def words_of():
    """The words of a figure, after a look at whether they are whole: long enough, and without formulas and NaN."""

    def words(figure: Figure) -> str:
        said = figure.get_label()
        assert len(said) > 50
        assert "nan" not in said.replace(",", " ").split()
        assert "$" not in said
        return said

    return words
