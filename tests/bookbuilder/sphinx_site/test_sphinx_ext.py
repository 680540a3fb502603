"""What the book's Sphinx extension does to a page, on small trees."""

from docutils import nodes

from bookbuilder.sphinx_site import sphinx_ext


def test_punctuation_moves_to_its_own_formula_even_where_two_texts_are_equal():
    parts = [nodes.Text("solves "), nodes.reference("", "(5.1)"), nodes.Text(". If "), nodes.math(text="d")]
    parts += [nodes.Text(". If "), nodes.math(text="e"), nodes.Text(", yes.")]
    text = nodes.paragraph("", "", *parts)
    sphinx_ext.join_punctuation(None, text, "page")
    assert text.astext() == "solves (5.1). If d. If e, yes."
    assert [inline.astext() for inline in text.findall(nodes.inline)] == ["d.", "e,"]
