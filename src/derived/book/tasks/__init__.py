"""Tasks for one student each: forecasts, mutants, oral cards."""
