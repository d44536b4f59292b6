"""Clouds of particles against a plain list of weighted partitions, with fewer particles than partitions."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pytest

from polyarm.inference.gibbs import prior_of
from polyarm.kernels._jit import plain
from polyarm.kernels.mixture import particles
from polyarm.kernels.mixture.component import COEF, COUNT, LOG_DET, MEAN, SCALE
from polyarm.kernels.mixture.means import draw_exact, located
from polyarm.kernels.mixture.particles import PARTICLES, POOL, REWARDS, Cloud
from polyarm.kernels.mixture.records import Prior
from polyarm.models import LinearMixture, NormalInverseGamma
from polyarm.types import Array
from tests import reference
from tests.kernels.script import Script
from tests.statistics.exact import log_evidence

BASE = NormalInverseGamma(2, [0.5, -1.0], [[4.0, 1.0], [1.0, 2.0]], 1.5, 0.7)
N, KEPT = 9, 7
at = np.array([0.7, -1.3])


@pytest.fixture(autouse=True)
def words_wrap() -> Iterator[None]:
    """Compiled kernels do not warn where words wrap around."""
    with np.errstate(over="ignore"):
        yield


class Particle(NamedTuple):
    """A partition, its blocks in the order they were opened, and its weight."""

    weight: float
    blocks: tuple[tuple[int, ...], ...]


class Slow:
    """The cloud as a list."""

    def __init__(self, concentration: float, discount: float) -> None:
        self.c, self.d = concentration, discount
        rng = np.random.default_rng(6)
        self.X = rng.standard_normal((N, 2))
        self.X[2] *= 500.0
        self.y = self.X @ [1.0, -0.5] + rng.choice([0.0, 4.0], N) + 0.5 * rng.standard_normal(N)
        self.X[4], self.y[4] = self.X[1], self.y[1]  # a reward that comes twice
        self.particles, self.evidence = [Particle(1.0, ())], 0.0

    def log_gain(self, block: tuple[int, ...], i: int) -> float:
        rows, others = [*block, i], list(block)
        before = log_evidence(self.X[others], self.y[others], BASE) if block else 0.0
        return log_evidence(self.X[rows], self.y[rows], BASE) - before

    def content(self, particle: Particle) -> frozenset[tuple[tuple[float, ...], ...]]:
        """The partition, blind to which of two equal rewards is which."""
        return frozenset(tuple(sorted((*self.X[i], self.y[i]) for i in block)) for block in particle.blocks)

    def learn(self, i: int, u: float) -> None:
        children: dict[frozenset[tuple[tuple[float, ...], ...]], Particle] = {}
        for weight, blocks in self.particles:
            K = len(blocks)
            for j in range(K + 1):
                mass = len(blocks[j]) - self.d if j < K else self.c + K * self.d if i > 0 else 1.0
                if mass > 1e-12:
                    block = blocks[j] if j < K else ()
                    grown = (*blocks[:j], (*block, i), *blocks[j + 1 :])
                    child = Particle(weight * mass * np.exp(self.log_gain(block, i)), grown)
                    known = children.get(self.content(child))
                    children[self.content(child)] = (
                        known._replace(weight=known.weight + child.weight) if known else child
                    )
        total = sum(child.weight for child in children.values())
        self.evidence += float(np.log(total) - (np.log(i + self.c) if i > 0 else 0.0))
        kept = self.resampled(list(children.values()), u)
        total = sum(child.weight for child in kept)
        self.particles = [child._replace(weight=child.weight / total) for child in kept]

    def resampled(self, children: list[Particle], u: float) -> list[Particle]:
        """Fearnhead and Clifford's: weights of c and more stay, one of each stretch of length c of the others."""
        if len(children) <= KEPT:
            return children
        w = np.array([child.weight for child in children])
        low, high = 0.0, w.sum()
        for _ in range(200):
            c = 0.5 * (low + high)
            low, high = (c, high) if np.minimum(w / c, 1).sum() > KEPT else (low, c)
        kept, reached = [], u * c
        for child in children:
            if child.weight >= c * (1 - 1e-12):
                kept.append(child)
                continue
            reached -= child.weight
            if reached < 0:
                kept.append(child._replace(weight=c))
                reached += c
        return kept


def blank(prior: Prior) -> Cloud:
    C, L, rows = 64, N + 1, len(prior.column)
    cloud = Cloud(
        np.full((rows, C), np.nan),
        np.full((C, 3, 3), np.nan),
        np.zeros(C, np.uint64),
        np.full((KEPT, L), -1),
        np.zeros(KEPT, np.int64),
        np.zeros(KEPT),
        np.zeros(KEPT, np.uint64),
        np.array([1, 0, 0]),
        np.zeros(1),
    )
    cloud.weight[0] = 1.0
    return cloud


def check(cloud: Cloud, slow: Slow, discount: float) -> None:
    """Raise unless particles, weights and components are those of the list."""
    H, P = cloud.size[PARTICLES], cloud.size[POOL]
    assert len(slow.particles) == H
    np.testing.assert_allclose(cloud.weight[:H], [particle.weight for particle in slow.particles], rtol=1e-6)
    assert cloud.evidence[0] == pytest.approx(slow.evidence)
    held = set()
    for i, particle in enumerate(slow.particles):
        assert cloud.length[i] == len(particle.blocks)
        for p, block in zip(cloud.member[i], particle.blocks, strict=False):
            rows, n = list(block), len(block)
            fresh, T = reference.fresh_component(BASE, slow.X[rows], slow.y[rows]), cloud.components[:, p]
            held.add(int(p))
            assert T[COUNT] == n
            assert T[SCALE] == pytest.approx(fresh["scale"], rel=1e-7)
            np.testing.assert_allclose(T[MEAN : MEAN + 2], fresh["mean"], rtol=1e-6, atol=1e-6)
            assert T[LOG_DET] == pytest.approx(np.linalg.slogdet(np.asarray(fresh["covariance"]))[1], abs=1e-7)
            step = float(reference.log_gamma_step(np.array(BASE.shape + n / 2)))
            assert T[COEF] == pytest.approx(np.log(n - discount) + step - 0.5 * np.log(2 * np.pi * T[SCALE]))
            R = cloud.R[p]
            assert BASE.scale + 0.5 * R[2, 2] ** 2 == pytest.approx(fresh["scale"], rel=1e-7)
    assert held == set(range(P))  # nothing in the pool that nobody holds
    marks = {int(cloud.mark[p]) for p in held}
    assert len(marks) == len(
        {tuple(sorted((*slow.X[i], slow.y[i]) for i in b)) for q in slow.particles for b in q.blocks}
    )


def learnt(concentration: float, discount: float, n: int) -> tuple[Cloud, Slow, Prior]:
    priors = prior_of([LinearMixture(BASE, concentration, discount)])
    prior = Prior(priors.columns[0], priors.sqrt_information[0, 0], priors.processes[0])
    cloud, slow, rng = blank(prior), Slow(concentration, discount), np.random.default_rng(7)
    for i in range(n):
        u = float(rng.random())
        data = np.array([[*slow.X[i], slow.y[i], np.nan]])
        words = data[0, :3].copy().view(np.uint64)
        plain(particles.learn)(cloud, prior, data, words, Script(uniforms=[u]))
        slow.learn(i, u)
        assert cloud.size[REWARDS] == i + 1
        check(cloud, slow, discount)
    return cloud, slow, prior


@pytest.mark.parametrize(("concentration", "discount"), [(0.8, 0.0), (0.8, 0.3), (1.5, -0.5)])
def test_a_cloud_is_a_list_of_weighted_partitions(concentration: float, discount: float) -> None:
    cloud, _, _ = learnt(concentration, discount, N)
    assert cloud.size[PARTICLES] > 3


def expectation(slow: Slow, x: Array) -> float:
    total = 0.0
    for weight, blocks in slow.particles:
        value = (slow.c + len(blocks) * slow.d) * float(x @ BASE.mean_vector)
        for block in blocks:
            rows = list(block)
            mean = reference.fresh_component(BASE, slow.X[rows], slow.y[rows])["mean"]
            value += (len(block) - slow.d) * float(x @ np.asarray(mean))
        total += weight * value / (sum(map(len, blocks)) + slow.c)
    return float(total)


def test_means_are_drawn_and_expected_over_the_particles() -> None:
    cloud, slow, prior = learnt(0.8, 0.3, 6)
    assert plain(particles.expected_mean)(cloud, prior, at) == pytest.approx(expectation(slow, at), rel=1e-6)
    ends = np.cumsum(cloud.weight[: cloud.size[PARTICLES]])
    uniforms = [0.0, 0.3, 0.6, 0.85, 0.999]
    for u in uniforms:
        found = plain(particles.draw_particle)(cloud.weight, cloud.size[PARTICLES], Script(uniforms=[u]))
        assert found == np.searchsorted(ends, u, side="right")
    assert plain(particles.draw_particle)(np.array([0.5, 0.4, 9.0]), 2, Script(uniforms=[0.95])) == 1
    numbers = np.linspace(-1, 2, 90), np.linspace(0.4, 2, 90), uniforms, [0.9] * 90
    out, script = np.empty(len(uniforms)), Script(*numbers)
    plain(particles.draw_means)(cloud, prior, at, out, Script(*numbers))
    for value, u in zip(out, uniforms, strict=True):
        i = int(np.searchsorted(ends, u, side="right"))
        K = int(cloud.length[i])
        held = np.ascontiguousarray(cloud.components[:, cloud.member[i, :K]])
        expected = plain(draw_exact)(held, K, prior.process, plain(located)(held, K, prior.column, at), True, script)
        assert value == pytest.approx(expected)
