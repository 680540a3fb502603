"""Theory and mechanism: Gaussian kernels, the mean-field engine, its asymptotics; networks and their Jacobian norms."""
