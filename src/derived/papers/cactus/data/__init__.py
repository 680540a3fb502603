"""Random pairs of distributions, a language whose faults can be found, and small models of it."""
