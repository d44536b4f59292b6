"""SciPy's special functions, loaded when the first of them is called: most decisions need none, and SciPy takes a fifth
of a second.
"""

from typing import Any


def __getattr__(name: str) -> Any:
    """The function of that name."""
    from scipy import special

    found = globals()[name] = getattr(special, name)
    return found
