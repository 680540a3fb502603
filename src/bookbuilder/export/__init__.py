"""Packs what leaves the repo. In: the site and its chapters. Out: the book as PDF, the packs of a course."""
