"""Writes the book's own pages. In: the Markdown of book/ and data of all chapters. Out: whole pages."""
