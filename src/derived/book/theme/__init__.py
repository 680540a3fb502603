"""Dresses the site. In: the style sheet and the templates of a theme. Out: what of them the pages use, lighter."""
