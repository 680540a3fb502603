"""Starts a chapter. In: a slug. Out: its notebook, package, tests and lectures in the right shape."""
