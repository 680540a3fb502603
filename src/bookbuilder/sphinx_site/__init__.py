"""Builds the site. In: executed chapters and the pages of book/. Out: _build/html, searchable and offline."""
