"""Export the site and its chapters: the book as PDF, the packs of a course."""
