"""Learned baselines in JAX: seven networks and a Gaussian process.  Needs the extra `polyarm[neural]`."""
