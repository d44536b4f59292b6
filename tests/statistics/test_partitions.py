"""The sampler against the exact posterior over every partition of a few rewards."""

import numpy as np
import pytest

from polyarm.inference import Budget, GibbsEngine
from polyarm.inference.gibbs import GibbsState
from polyarm.kernels._jit import RngHandle, kernel, rng_from, rng_handle
from polyarm.kernels.mixture import gibbs
from polyarm.kernels.mixture.records import Books
from polyarm.models import LinearMixture, NormalInverseGamma
from polyarm.types import Array, IntArray, Rng
from tests import reference
from tests.statistics.mutants import seated

CASES = [
    *[(dim, concentration, discount) for dim in (1, 2) for discount in (0.0, 0.4) for concentration in (0.1, 1.0, 5.0)],
    (2, 2 * 0.5, -0.5),  # finite mixtures: 2 and 3 components
    (1, 3 * 1.0, -1.0),
]


def problem(dim: int, concentration: float, discount: float, n: int = 6) -> tuple[LinearMixture, Array, Array]:
    covariance = [[1.0, 0.7], [0.7, 1.5]] if dim == 2 else 1.5
    model = LinearMixture(NormalInverseGamma(dim, 0.3, covariance, 1.5, 0.5), concentration, discount)
    rng = np.random.default_rng(17)
    X = np.column_stack([np.ones(n), rng.uniform(-2, 2, n)])[:, -dim:] if dim == 2 else np.ones((n, 1))
    y = X @ np.linspace(1, 2, dim) + np.where(np.arange(n) % 2 == 0, 1.0, -1.0) + 0.3 * rng.standard_normal(n)
    return model, X, y


def learnt(engine: GibbsEngine, X: Array, y: Array, rng: Rng) -> GibbsState:
    state = engine.init()
    for x, reward in zip(X, y, strict=True):
        state = engine.update(state, x, 0, float(reward), rng)
    return state


@kernel
def code(z: IntArray, n: int) -> int:
    """Partition of z[:n] as a number: labels by first appearance, base n."""
    total = 0
    seen = 0
    names = np.empty(n, np.int64)
    for i in range(n):
        name = -1
        for j in range(i):
            if z[j] == z[i]:
                name = names[j]
        if name < 0:
            name = seen
            seen += 1
        names[i] = name
        total = total * n + name
    return total


@kernel
def tally(books: Books, by_sweeps: bool, n_draws: int, counts: IntArray, handle: RngHandle) -> None:
    """Count the partitions visited by either update mode."""
    rng = rng_from(handle)
    n = books.sizes[0, 1]
    order = np.empty(n, np.int64)
    for _ in range(n_draws):
        if by_sweeps:
            gibbs.sweep(books, 0, order, n, rng)
        else:
            gibbs.random_moves(books, 0, 12, rng)
        counts[code(books.z, n)] += 1


def frequencies(counts: IntArray, n: int) -> dict[tuple[int, ...], float]:
    found = {}
    for number in np.flatnonzero(counts):
        digits = [int(number) // n**k % n for k in reversed(range(n))]
        found[tuple(digits)] = counts[number] / counts.sum()
    return found


def total_variation(p: dict[tuple[int, ...], float], q: dict[tuple[int, ...], float]) -> float:
    return 0.5 * sum(abs(p.get(key, 0.0) - q.get(key, 0.0)) for key in p.keys() | q.keys())


@pytest.mark.parametrize(
    ("dim", "concentration", "discount", "mode"),
    [(*case, "sweeps") for case in CASES] + [(*case, "budget") for case in CASES[1::4]],  # the moves are the same
)
def test_partition_frequencies_match_the_enumerated_posterior(
    dim: int, concentration: float, discount: float, mode: str
) -> None:
    model, X, y = problem(dim, concentration, discount)
    engine = GibbsEngine([model])
    state = learnt(engine, X, y, np.random.default_rng(1))
    counts = np.zeros(6**6, np.int64)
    handle = rng_handle(np.random.default_rng(2))
    tally(engine._books(state, 0), mode == "sweeps", 400_000, counts, handle)
    assert total_variation(frequencies(counts, 6), reference.posterior(model, X, y)) < 0.01


def test_a_stream_of_budget_updates_ends_in_the_posterior() -> None:
    model, X, y = problem(2, 1.0, 0.4, n=5)
    engine = GibbsEngine([model], Budget(64))
    exact = reference.posterior(model, X, y)
    found: dict[tuple[int, ...], float] = {}
    runs, rng = 6000, np.random.default_rng(3)
    for _ in range(runs):
        key = reference.canonical(learnt(engine, X, y, rng).seats[0][:5])
        found[key] = found.get(key, 0.0) + 1 / runs
    noise = 0.5 * sum(np.sqrt(2 * p * (1 - p) / (np.pi * runs)) for p in exact.values())
    assert total_variation(found, exact) < 1.5 * noise


@pytest.mark.parametrize(("dim", "concentration", "discount"), [CASES[1], CASES[7], CASES[10], CASES[12]])
def test_every_conditional_equals_the_ratio_of_joints(dim: int, concentration: float, discount: float) -> None:
    """No Monte Carlo: for all partitions and rewards, the weights a move draws from are the exact conditional."""
    model, X, y = problem(dim, concentration, discount, n=5)
    engine = GibbsEngine([model])
    joints = {labels: reference.log_joint(model, X, y, labels) for labels in reference.partitions(5)}
    for labels in joints:
        if model.n_components is not None and max(labels) >= model.n_components:
            continue
        for i in range(5):
            ours = move_weights(seated(engine, X, y, labels), engine, i)
            np.testing.assert_allclose(ours, exact_conditional(joints, labels, i), atol=1e-10)


def move_weights(state: GibbsState, engine: GibbsEngine, i: int) -> Array:
    """Probabilities of reward i joining each other reward's component, and a component of its own."""
    from tests.statistics.mutants import weights_of_move

    logw, k0, alone = weights_of_move(state, engine, i)
    n = int(state.sizes[0, 1])
    p = np.exp(logw - logw.max())
    p /= p.sum()
    places = state.labels[0, 1][state.seats[0][:n]]
    joined = np.array([p[places[j]] if not (alone and places[j] == k0) else 0.0 for j in range(n) if j != i])
    return np.append(joined, p[k0] if alone else p[-1])


def exact_conditional(joints: dict[tuple[int, ...], float], labels: tuple[int, ...], i: int) -> Array:
    others = [j for j in range(len(labels)) if j != i]
    options = {labels[j]: [*labels[:i], labels[j], *labels[i + 1 :]] for j in others}
    options[-1] = [*labels[:i], 99, *labels[i + 1 :]]
    logp = {key: joints[reference.canonical(option)] for key, option in options.items()}
    top = max(logp.values())
    total = sum(np.exp(value - top) for value in logp.values())
    return np.array([np.exp(logp[labels[j]] - top) / total for j in others] + [np.exp(logp[-1] - top) / total])
