"""polyarm: decisions under rewards whose distribution nobody knows."""

__version__ = "0.1.0"
