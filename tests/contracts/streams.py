"""Rewards of every kind that people have: none may break an engine or a policy.  A new kind adds a line.

A stream gives contexts (n, dim) and rewards (n,) for whatever arm is played.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyarm.types import Array, Rng

Values = NDArray[Any]
Stream = Callable[[int, int, Rng], tuple[Array, Array]]


def rewards(draw: Callable[[int, Rng], Values]) -> Stream:
    """Rewards that do not look at normal contexts."""
    return lambda n, dim, rng: (rng.standard_normal((n, dim)), np.asarray(draw(n, rng), dtype=np.float64))


def contexts(draw: Callable[[int, int, Rng], Values]) -> Stream:
    """Contexts of one kind, with rewards on two noisy lines through their first column."""

    def stream(n: int, dim: int, rng: Rng) -> tuple[Array, Array]:
        x = np.asarray(draw(n, dim, rng), dtype=np.float64)
        return x, x[:, 0] * rng.choice([-1.0, 1.0], n) + rng.standard_normal(n)

    return stream


def normal(n: int, rng: Rng) -> Array:
    return rng.standard_normal(n)


def with_entry(values: Array, at: int, value: float) -> Array:
    values[at] = value
    return values


def line(noise: float) -> Stream:
    def stream(n: int, dim: int, rng: Rng) -> tuple[Array, Array]:
        x = rng.standard_normal((n, dim))
        return x, 1.0 + x.sum(axis=1) + noise * rng.standard_normal(n)

    return stream


def sticky(n: int, dim: int, rng: Rng) -> Array:
    return np.repeat(rng.standard_normal((n // 10 + 1, dim)), 10, axis=0)[:n]


def revenue(tail: Callable[[int, Rng], Values]) -> Stream:
    return rewards(lambda n, rng: np.where(rng.random(n) < 0.1, tail(n, rng), 0.0))


STREAMS: dict[str, Stream] = {
    "zeros": rewards(lambda n, rng: np.zeros(n)),
    "ones": rewards(lambda n, rng: np.ones(n)),
    "a large constant": rewards(lambda n, rng: np.full(n, 1e9)),
    "a small constant": rewards(lambda n, rng: np.full(n, -1e-9)),
    "a coin": rewards(lambda n, rng: rng.random(n) < 0.5),
    "a coin of one in twenty": rewards(lambda n, rng: rng.random(n) < 0.05),
    "a coin of one in a thousand": rewards(lambda n, rng: rng.random(n) < 0.001),
    "a coin in units of 1e9": rewards(lambda n, rng: 1e9 * (rng.random(n) < 0.3)),
    "a coin in units of 1e-9": rewards(lambda n, rng: 1e-9 * (rng.random(n) < 0.3)),
    "a coin around 1e9": rewards(lambda n, rng: 1e9 + (rng.random(n) < 0.3)),
    "three values": rewards(lambda n, rng: rng.choice([-2.0, 0.0, 7.0], n)),
    "counts": rewards(lambda n, rng: rng.poisson(3.0, n)),
    "stars": rewards(lambda n, rng: rng.integers(1, 6, n)),
    "zeros with a lognormal tail": revenue(lambda n, rng: np.exp(3 + rng.standard_normal(n))),
    "zeros with a Cauchy tail": revenue(lambda n, rng: rng.standard_cauchy(n)),
    "normal": rewards(normal),
    "two humps": rewards(lambda n, rng: rng.choice([-5.0, 5.0], n) + 0.1 * rng.standard_normal(n)),
    "Cauchy": rewards(lambda n, rng: rng.standard_cauchy(n)),
    "lognormal with sd 3": rewards(lambda n, rng: np.exp(3 * rng.standard_normal(n))),
    "Pareto without a mean": rewards(lambda n, rng: rng.pareto(0.5, n)),
    "steps of 1e12": rewards(lambda n, rng: 1e12 * rng.integers(-2, 3, n) + rng.standard_normal(n)),
    "units of 1e-9": rewards(lambda n, rng: 1e-9 * normal(n, rng)),
    "units of 1e9": rewards(lambda n, rng: 1e9 * normal(n, rng)),
    "units of 1e-40": rewards(lambda n, rng: 1e-40 * normal(n, rng)),
    "units of 1e40": rewards(lambda n, rng: 1e40 * normal(n, rng)),
    "an offset of 1e9": rewards(lambda n, rng: 1e9 + normal(n, rng)),
    "an offset of 1e15": rewards(lambda n, rng: 1e15 + normal(n, rng)),
    "alternating signs": rewards(lambda n, rng: (-1.0) ** np.arange(n)),
    "alternating signs that grow": rewards(lambda n, rng: (-1.0) ** np.arange(n) * np.arange(n) ** 3.0),
    "a late change of scale, up": rewards(lambda n, rng: normal(n, rng) * np.where(np.arange(n) < n // 2, 1, 1e6)),
    "a late change of scale, down": rewards(lambda n, rng: normal(n, rng) * np.where(np.arange(n) < n // 2, 1, 1e-6)),
    "a late shift": rewards(lambda n, rng: normal(n, rng) + np.where(np.arange(n) < n // 2, 0, 1e4)),
    "a trend": rewards(lambda n, rng: np.arange(n) + normal(n, rng)),
    "growth without end": rewards(lambda n, rng: 1.3 ** np.minimum(np.arange(n), 800.0)),
    "a first reward of 1e8": rewards(lambda n, rng: with_entry(normal(n, rng), 0, 1e8)),
    "a later reward of 1e8": rewards(lambda n, rng: with_entry(normal(n, rng), n // 2, 1e8)),
    "a first reward of 1e100": rewards(lambda n, rng: with_entry(normal(n, rng), 0, 1e100)),
    "a later reward of 1e100": rewards(lambda n, rng: with_entry(normal(n, rng), n // 2, -1e100)),
    "rewards of 1e100": rewards(lambda n, rng: 1e100 * rng.uniform(-1, 1, n)),
    "rewards of 1e-200": rewards(lambda n, rng: 1e-200 * normal(n, rng)),
    "denormal rewards": rewards(lambda n, rng: 1e-310 * normal(n, rng)),
    "few rewards near the smallest number": rewards(lambda n, rng: 1e-158 * rng.integers(0, 3, n)),
    "rounded to 0.01": rewards(lambda n, rng: np.round(normal(n, rng), 2)),
    "rounded to ones": rewards(lambda n, rng: np.round(3 * normal(n, rng))),
    "five per cent outliers of sd 100": rewards(
        lambda n, rng: normal(n, rng) * np.where(rng.random(n) < 0.05, 100.0, 0.3)
    ),
    "five per cent windfalls": rewards(lambda n, rng: normal(n, rng) + 100.0 * (rng.random(n) < 0.05)),
    "five per cent losses of many sizes": rewards(
        lambda n, rng: normal(n, rng) - np.where(rng.random(n) < 0.05, 50.0 * rng.standard_exponential(n), 0.0)
    ),
    "a line without noise": line(0.0),
    "a line with little noise": line(1e-10),
    "duplicated rows": contexts(sticky),
    "columns of zeros": contexts(lambda n, dim, rng: np.zeros((n, dim))),
    "columns of ones": contexts(lambda n, dim, rng: np.ones((n, dim))),
    "one column at a time": contexts(lambda n, dim, rng: np.eye(dim)[rng.integers(dim, size=n)]),
    "collinear columns": contexts(lambda n, dim, rng: np.repeat(rng.standard_normal((n, 1)), dim, axis=1)),
    "columns shifted by 5": contexts(lambda n, dim, rng: 5 + rng.standard_normal((n, dim))),
    "columns shifted by 1e7": contexts(lambda n, dim, rng: 1e7 + rng.standard_normal((n, dim))),
    "columns in units of 1e7": contexts(lambda n, dim, rng: 1e7 * rng.uniform(-1, 1, (n, dim))),
    "columns in units of 1e-9": contexts(lambda n, dim, rng: 1e-9 * rng.standard_normal((n, dim))),
    "columns of 1e-170": contexts(lambda n, dim, rng: 1e-170 * rng.standard_normal((n, dim))),
    "columns with a rare 1e7": contexts(lambda n, dim, rng: np.where(rng.random((n, dim)) < 0.02, 1e7, 0.1)),
}
