"""Ecologies, languages and corpora: generated, read, or typed from the paper."""
