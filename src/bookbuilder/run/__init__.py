"""Executes chapters. In: source notebooks and their parameters. Out: executed notebooks and findings under _build."""
