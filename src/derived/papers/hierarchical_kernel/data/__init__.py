"""Generated sequences, grammars, real pictures and speeches, and predictors that see only a part."""
