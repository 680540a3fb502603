"""Generated sequences, speeches, and predictors that see only a part."""
