"""Density regression by the same mixtures, with scikit-learn's interface."""
