"""Writes a chapter's page. In: an executed notebook and data about it. Out: Markdown and HTML for its cells."""
