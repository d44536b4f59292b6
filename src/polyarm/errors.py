"""Exceptions a caller can act on, and the checks that raise them.

Every message reads `<name> must be <rule>, got <value>`.
"""

import importlib
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeGuard

import numpy as np
from numpy.typing import ArrayLike

from polyarm.types import Array, Mask, Rng

REWARD_LIMIT = 1e100  # its square, summed over 1e8 rewards, is still far from overflow
REWARD_NOTHING = 1e-100  # smaller rewards are 0: the square of any other, and of their differences, is far above 0
COLUMN_NOTHING = (
    1e-80  # a column of a smaller mean square says nothing: in its unit any other context is beyond numbers
)
FLOAT64 = np.dtype(np.float64)
SHORT = 32  # numbers up to which Python adds up squares sooner than NumPy is called
CONTEXT_LIMIT = 1e8  # leverages x'Vx keep at least seven digits up to here


class PolyarmError(Exception):
    """Any error that polyarm raises on purpose.

    >>> from polyarm import make_policy
    >>> try:
    ...     make_policy("linear", n_arms=0, context_dim=2)
    ... except PolyarmError as error:
    ...     print(error)
    n_arms must be an integer of at least 1, got 0
    """


class InvalidArgument(PolyarmError, ValueError):
    """An argument breaks its rule; nothing was changed."""


class UnknownArm(InvalidArgument, IndexError):
    """There is no such arm."""


class UnknownName(InvalidArgument, KeyError):
    """No policy, scenario or option carries that name."""

    def __str__(self) -> str:
        return Exception.__str__(self)


class UnknownDecision(InvalidArgument, KeyError):
    """No open decision carries that id: it was never made, or it was dropped."""

    def __str__(self) -> str:
        return Exception.__str__(self)


class Conflict(InvalidArgument):
    """Something else is known under that id: another reward, or another decision."""


class BrokenFile(PolyarmError, OSError):
    """A file is missing, damaged, or written by another version or for other settings."""


class NumericalFailure(PolyarmError, ArithmeticError):
    """A reward cannot be learnt in floating point; the state is as it was, without it."""


class MissingExtra(PolyarmError, ImportError):
    """An optional part of polyarm is not installed."""


def shown(value: object) -> str:
    """Value as an error message shows it: short, on one line."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else text[:77] + "..."


def require(holds: bool, name: str, rule: str, value: object, advice: str = "") -> None:
    """Raise unless the rule holds."""
    if not holds:
        raise InvalidArgument(f"{name} must be {rule}, got {shown(value)}" + (f"; {advice}" if advice else ""))


def is_vector(context: ArrayLike, n: int) -> TypeGuard[Array]:
    """Whether a context is laid out as kernels take it, whatever its numbers."""
    return (
        type(context) is np.ndarray
        and context.dtype == FLOAT64
        and context.shape == (n,)
        and (flags := context.flags).c_contiguous
        and flags.aligned
    )


def require_context(context: ArrayLike, context_dim: int, name: str = "context") -> Array:
    """Context as a float vector of the right length, finite and of sane size."""
    if is_vector(context, context_dim) and length_of(context) <= CONTEXT_LIMIT:  # no number fails the comparison
        return context
    x = require_array(context, name)
    if x.shape != (context_dim,):
        raise InvalidArgument(
            f"{name} must be a vector of {context_dim} numbers, got shape {x.shape}; "
            "use np.ones(1) where there is no context"
        )
    require_finite(x, name)
    require(
        length_of(x) <= CONTEXT_LIMIT,
        name,
        f"of length at most {CONTEXT_LIMIT:g}",
        context,
        "rescale it",
    )
    return x


def refuse_context(context: Array, context_dim: int) -> NoReturn:
    """Say what is wrong with a context that a kernel refused."""
    require_context(context, context_dim)
    raise AssertionError("what require_context accepts no kernel refuses")


def length_of(x: Array) -> float:
    """Length of a vector, without a warning where squares overflow."""
    return math.hypot(*x.tolist()) if len(x) < SHORT else math.sqrt(np.vdot(x, x))  # dot would warn


def require_contexts(contexts: ArrayLike, context_dim: int, name: str = "contexts") -> Array:
    """Contexts as a float matrix of the right width, finite and of sane size."""
    x = require_array(contexts, name)
    if x.ndim != 2 or x.shape[1] != context_dim:
        raise InvalidArgument(f"{name} must be a matrix of {context_dim} columns, got shape {x.shape}")
    require_finite(x, name)
    with np.errstate(over="ignore"):
        small = np.einsum("ij,ij->i", x, x) <= CONTEXT_LIMIT**2
    if not small.all():
        row = int(small.argmin())
        require(False, f"{name}[{row}]", f"of length at most {CONTEXT_LIMIT:g}", x[row], "rescale it")
    return x


def require_eligible(eligible: Mask | None, n_arms: int, name: str = "eligible") -> Mask | None:
    """Mask of the arms that may be played, at least one; None stands for all."""
    if eligible is None:
        return None
    mask = np.asarray(eligible)
    if mask.dtype != np.bool_ or mask.shape != (n_arms,) or not mask.any():
        raise InvalidArgument(f"{name} must be {n_arms} truth values, one or more of them true, got {shown(eligible)}")
    return mask


def require_array(value: ArrayLike, name: str) -> Array:
    """Value as a contiguous float array, as kernels want it."""
    require_no_mask(value, name)
    try:
        given = np.asarray(value)
        if given.dtype.kind in "cmM":  # NumPy would drop the imaginary part, or count days from 1970
            raise TypeError
        if given.dtype == object and any(isinstance(part, np.datetime64 | np.timedelta64) for part in given.flat):
            raise TypeError
        array = np.asarray(given, dtype=np.float64, order="C")
        return array if array.flags.aligned else array.copy()
    except (TypeError, ValueError, OverflowError):
        raise InvalidArgument(f"{name} must be an array of numbers, got {shown(value)}") from None


def require_vector(value: ArrayLike, name: str) -> Array:
    """Value as a contiguous float vector of any length."""
    vector = require_array(value, name)
    require(vector.ndim == 1, name, "a vector of numbers", value)
    return vector


def require_no_mask(value: object, name: str) -> None:
    """Raise for a masked array or value: NumPy would take what lies behind the mask, or NaN with a warning."""
    masked = isinstance(value, np.ma.MaskedArray) or (
        isinstance(value, list | tuple) and any(part is np.ma.masked for part in value)
    )
    require(not masked, name, "without a mask", value, "fill the gaps, or leave these rows out")


def require_generator(rng: Rng, name: str = "rng") -> Rng:
    """The random generator, if it is one of NumPy's."""
    if isinstance(rng, np.random.Generator):
        return rng
    raise InvalidArgument(f"{name} must be a numpy.random.Generator, got {shown(rng)}; np.random.default_rng makes one")


def require_pair(value: Sequence[float], name: str, rule: str, holds: Any) -> tuple[float, float]:
    """Value as two numbers for which the rule holds."""
    pair = require_array(value, name)
    require(pair.shape == (2,), name, "a pair", value)
    first, second = pair.tolist()
    return require_number(first, name, rule, holds), require_number(second, name, rule, holds)


def require_finite(values: Array, name: str) -> None:
    """Raise unless every entry is a finite number."""
    finite = np.isfinite(values)
    if not finite.all():
        where = tuple(int(i) for i in np.argwhere(~finite)[0])
        place = f" at {where[0] if len(where) == 1 else where}" if where else ""
        raise InvalidArgument(f"{name} must be finite, got {values[where]}{place}")


def _as_number(reward: float, name: str) -> float:
    if isinstance(reward, np.ma.MaskedArray):
        require_no_mask(reward, name)
    try:
        return float(reward)
    except (TypeError, ValueError, OverflowError):
        raise InvalidArgument(f"{name} must be a number, got {shown(reward)}") from None


def require_reward(reward: float, name: str = "reward") -> float:
    """Reward as a finite float of sane size; one that is smaller than 1e-100 is 0."""
    y = reward if type(reward) is float else _as_number(reward, name)
    if REWARD_NOTHING <= y <= REWARD_LIMIT or -REWARD_LIMIT <= y <= -REWARD_NOTHING:
        return y
    if -REWARD_NOTHING < y < REWARD_NOTHING:
        return 0.0
    rule = f"at most {REWARD_LIMIT:g} in size" if math.isfinite(y) else "finite"
    raise InvalidArgument(f"{name} must be {rule}, got {y}")


def require_arm(arm: int, n_arms: int, name: str = "arm") -> int:
    """Arm as an index of an existing arm."""
    if type(arm) is int and 0 <= arm < n_arms:
        return arm
    try:
        index = arm.__index__()
    except (AttributeError, TypeError):
        raise UnknownArm(f"{name} must be an integer from 0 to {n_arms - 1}, got {shown(arm)}") from None
    if 0 <= index < n_arms and not isinstance(arm, bool):
        return index
    raise UnknownArm(f"{name} must be an integer from 0 to {n_arms - 1}, got {arm}")


def require_count(value: int, name: str, at_least: int = 1, at_most: int | None = None) -> int:
    """Value as an integer that is large enough, and not too large."""
    if type(value) is int and value >= at_least and at_most is None:
        return value
    rule = f"an integer of at least {at_least}" if at_most is None else f"an integer from {at_least} to {at_most}"
    try:
        count = value.__index__()
    except (AttributeError, TypeError):
        raise InvalidArgument(f"{name} must be {rule}, got {shown(value)}") from None
    fits = count >= at_least and (at_most is None or count <= at_most)
    require(fits and not isinstance(value, bool), name, rule, value)
    return count


def require_positive(value: float, name: str) -> float:
    """Value as a finite float above zero."""
    return require_number(value, name, "a finite number above 0", lambda v: v > 0)


def require_share(value: float, name: str) -> float:
    """Value as a float above 0 and at most 1."""
    return require_number(value, name, "a number above 0 and at most 1", lambda v: 0 < v <= 1)


def require_number(value: float, name: str, rule: str, holds: Any = lambda v: True) -> float:
    """Value as a finite float for which the rule holds."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidArgument(f"{name} must be {rule}, got {shown(value)}") from None
    require(math.isfinite(number) and bool(holds(number)), name, rule, value)
    return number


def require_name(name: str, known: Sequence[str], kind: str) -> str:
    """Name, if it is a known one."""
    if name not in known:
        raise UnknownName(f"{kind} must be one of {', '.join(known)}, got {shown(name)}")
    return name


def refused_option(error: TypeError) -> str:
    """The option that a function was given and does not know, or what else it did not like.

    >>> refused_option(TypeError("Model.__init__() got an unexpected keyword argument 'colour'"))
    "'colour'"
    """
    _, found, option = str(error).partition(" got an unexpected keyword argument ")
    return option if found else str(error)


def require_extra(module: str, extra: str) -> Any:
    """Module that an optional part of polyarm brings."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise MissingExtra(f"{error.name} must be installed: pip install 'polyarm[{extra}]'") from None


def require_covariance(value: ArrayLike, dim: int, name: str) -> Array:
    """Value as a positive definite (dim, dim) matrix; a number multiplies the identity, a vector is the diagonal."""
    matrix = require_array(value, name)
    require_finite(matrix, name)
    if matrix.ndim == 0:
        matrix = float(matrix) * np.eye(dim)
    elif matrix.shape == (dim,) and dim > 1:
        matrix = np.diag(matrix)
    matrix = matrix.reshape(1, 1) if dim == 1 and matrix.size == 1 else matrix
    if matrix.shape != (dim, dim):
        raise InvalidArgument(
            f"{name} must be a number, a vector of {dim} or a ({dim}, {dim}) matrix, got shape {matrix.shape}"
        )
    require(bool(np.allclose(matrix, matrix.T, rtol=1e-10, atol=0)), name, "symmetric", value)
    eigenvalues = np.linalg.eigvalsh(matrix)
    require(
        bool(eigenvalues[0] > 1e-14 * eigenvalues[-1]),
        name,
        "positive definite",
        value,
        f"its smallest eigenvalue is {eigenvalues[0]:.3g}",
    )
    return matrix


def require_writable_parent(path: str | Path, name: str = "path") -> Path:
    """Path of a file that can be written: its folder exists, and it is no folder itself."""
    target = Path(path)
    require(target.parent.is_dir(), name, "in a folder that exists", str(path))
    require(not target.is_dir(), name, "a file, not a folder", str(path))
    require(
        os.access(target if target.exists() else target.parent, os.W_OK), name, "one that can be written", str(path)
    )
    return target
