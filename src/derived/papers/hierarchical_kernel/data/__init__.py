"""Generated sequences, grammars, readers of real files, and predictors that see only a part."""
