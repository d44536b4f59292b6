"""The decision service: a Bandit behind HTTP, on a log that loses nothing."""
