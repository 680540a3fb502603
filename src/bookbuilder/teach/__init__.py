"""Teach with the book: decks and plans in Markdown, homework, and two zips to take along."""
