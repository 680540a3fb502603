"""Random pairs of laws, a language whose faults can be found, and small models of it."""
