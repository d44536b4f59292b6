"""Sources of worlds."""
