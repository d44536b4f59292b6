"""A generator that draws what it is told, and notes what it was asked for: conditionals can be checked exactly."""

from collections.abc import Iterable, Iterator
from itertools import repeat
from typing import Any


class ScriptedGenerator:
    """Stands in for a NumPy generator in uncompiled kernels.

    Draws not given are 0 for normals, 1 for gammas and exponentials, 1/2 for uniforms and betas.
    """

    def __init__(
        self,
        normals: Iterable[float] = (),
        gammas: Iterable[float] = (),
        uniforms: Iterable[float] = (),
        betas: Iterable[float] = (),
        exponentials: Iterable[float] = (),
    ) -> None:
        self.asked: list[tuple[float, ...]] = []  # parameters of gammas and betas
        self._normals, self._gammas = _endless(normals, 0.0), _endless(gammas, 1.0)
        self._uniforms, self._betas = _endless(uniforms, 0.5), _endless(betas, 0.5)
        self._exponentials = _endless(exponentials, 1.0)

    def standard_normal(self) -> float:
        return next(self._normals)

    def standard_gamma(self, shape: float) -> float:
        self.asked.append((shape,))
        return next(self._gammas)

    def random(self) -> float:
        return next(self._uniforms)

    def standard_exponential(self) -> float:
        return next(self._exponentials)

    def beta(self, a: float, b: float) -> float:
        self.asked.append((a, b))
        return next(self._betas)


def _endless(given: Iterable[float], otherwise: float) -> Iterator[float]:
    yield from given
    yield from repeat(otherwise)


Script: Any = ScriptedGenerator  # it passes for a NumPy generator
