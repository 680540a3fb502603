"""Export the site: the book and its figures as PDF."""
