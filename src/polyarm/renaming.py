"""Settings that were given better names: the old names are still taken, with a warning, and are those in files."""

import functools
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

from polyarm.errors import InvalidArgument

Target = TypeVar("Target", bound=Callable[..., Any])
NEW_NAMES: dict[tuple[str, str], str] = {}  # by class and old name


def renamed(**old: str) -> Callable[[Target], Target]:
    """A function or dataclass whose settings may still be given by their old names, as in `renamed(new="old")`.

    >>> @renamed(size="bigness")
    ... def double(size: int) -> int:
    ...     return 2 * size
    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     double(bigness=3)
    6
    """

    def decorate(target: Target) -> Target:
        if not isinstance(target, type):
            return translated(target, old)
        kind: Any = target
        kind.__init__ = translated(kind.__init__, old)
        kind.saved_names = old
        for new, name in old.items():
            setattr(kind, name, property(functools.partial(read, new, name)))
            NEW_NAMES[kind.__name__, name] = new
        return target

    return decorate


def translated(function: Target, old: dict[str, str]) -> Target:
    """The function with old names of its arguments turned into new ones."""

    @functools.wraps(function)
    def call(*given: Any, **options: Any) -> Any:
        for new, name in old.items():
            if name in options:
                if new in options:
                    raise InvalidArgument(f"{name} must be left out where {new}, its new name, is given")
                warn(new, name)
                options[new] = options.pop(name)
        return function(*given, **options)

    return call  # type: ignore[return-value]


def read(new: str, name: str, owner: object) -> Any:
    """A setting that was asked for by its old name."""
    warn(new, name)
    return getattr(owner, new)


def warn(new: str, name: str) -> None:
    """Say that a setting has a new name."""
    warnings.warn(f"`{name}` is now called `{new}`", DeprecationWarning, stacklevel=3)
