"""Judges and records. In: findings and experiments. Out: the committed ledger, its history and the records."""
