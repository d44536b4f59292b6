"""Mixtures of linear-Gaussian components under a Dirichlet or Pitman-Yor process, and their samplers."""
