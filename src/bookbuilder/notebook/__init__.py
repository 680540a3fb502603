"""Reads source notebooks. In: a notebook, tests and findings. Out: sections, statements, evidence and faults."""
