"""Rows, rings, doors and descriptions: what engines share, each against a plain way to say the same."""

import json
import math
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy import stats

from polyarm.errors import InvalidArgument, NumericalFailure
from polyarm.inference import ConjugateEngine, GibbsEngine, KindsEngine, RobustEngine
from polyarm.inference.arms import model_of_all, with_empty_arm
from polyarm.inference.door import (
    LONG,
    copied,
    described,
    difference,
    equal,
    require_settings,
    require_shape,
    require_sound,
)
from polyarm.inference.failure import LARGE, all_finite, backup_of, give_up, put_back
from polyarm.inference.franchise import redraw_concentration
from polyarm.inference.gibbs import FADES, prior_of, remaining_share, room_for_reward
from polyarm.inference.migration import fit_memory, memory_fits, with_components
from polyarm.inference.predictive import student_mixture
from polyarm.inference.shapes import shape_of
from polyarm.inference.slots import doubled_slots, slots_in_order
from polyarm.inference.state_checks import (
    require_above,
    require_numbers,
    require_permutation,
    require_range,
    require_roots,
)
from polyarm.kernels.mixture.component import COUNT, LOG_DET, MEAN, SCALE, n_rows
from polyarm.kernels.mixture.records import NEXT, ROWS
from polyarm.kernels.sticks import SEEN, SQUARES
from polyarm.models import LinearGaussian, LinearMixture, NormalInverseGamma, RobustMixture
from polyarm.types import Array
from tests.contracts.engines import ENGINES
from tests.contracts.states import fed, rewards


class Ring:
    """An arm's rewards as a list: the plain way to keep the latest `memory` of them."""

    def __init__(self, memory: int | None) -> None:
        self.memory, self.rows, self.frozen = memory, list[float](), list[float]()

    def add(self, y: float) -> None:
        self.rows.append(y)
        self.trim()

    def trim(self) -> None:
        while self.memory is not None and len(self.rows) > self.memory:
            self.frozen.append(self.rows.pop(0))


def laid_out(ring: Ring, capacity: int, turn: int) -> tuple[Array, Any, Any]:
    """Rows of a ring as engines keep them: oldest at `turn`, which is 0 unless the memory is full."""
    n = len(ring.rows)
    data, seats = np.zeros((capacity, 2)), np.zeros(capacity, np.int64)
    data[:n, 0] = np.roll(ring.rows, turn)
    seats[:n] = np.roll(np.arange(n), turn)
    return data, seats, np.array([1, n, turn if turn else n])


@pytest.mark.parametrize("memory", [None, 1, 3, 5, 8, 20])
@pytest.mark.parametrize(("n", "capacity", "full", "turn"), [(5, 5, 5, 2), (5, 5, 5, 0), (3, 8, None, 0), (0, 4, 4, 0)])
def test_another_memory_keeps_the_latest_rewards_in_their_order(
    memory: int | None, n: int, capacity: int, full: int | None, turn: int
) -> None:
    ring = Ring(full)
    for y in range(1, n + 1):
        ring.add(float(y))
    data, seats, size = laid_out(ring, capacity, turn)
    fits = memory_fits(seats, size, memory)
    assert fits == ((memory is None or capacity <= memory) and (turn == 0 or n == capacity == memory))
    sizes, frozen = size[None].copy(), []
    rows, labels = fit_memory(
        (data,), (seats,), sizes, memory, lambda arm, row: frozen.append((arm, float(data[row, 0])))
    )
    if fits:
        assert rows[0] is data
        assert frozen == []
        return
    ring.memory = memory
    ring.trim()
    kept = len(ring.rows)
    assert rows[0][:kept, 0].tolist() == ring.rows
    assert labels[0][:kept].tolist() == list(range(n - kept, n))
    assert frozen == [(0, y) for y in ring.frozen]
    assert sizes[0].tolist() == [1, kept, kept]
    assert len(rows[0]) == len(labels[0]) == max(kept, min(capacity, memory or capacity))
    assert memory_fits(labels[0], sizes[0], memory)
    assert not rows[0][kept:].any()


def test_sizes_without_components_have_none() -> None:
    assert with_components(np.array([[3, 2], [5, 0]])).tolist() == [[0, 3, 2], [0, 5, 0]]


@pytest.mark.parametrize(("length", "memory", "after"), [(4, None, 8), (4, 4, 4), (4, 6, 6), (4, 8, 8), (4, 99, 8)])
def test_a_full_arm_gets_twice_the_room_up_to_its_memory(length: int, memory: int | None, after: int) -> None:
    data = (np.ones((2, 3)), np.arange(3.0 * length).reshape(length, 3))
    seats = (np.zeros(2, np.int64), np.arange(length))
    sizes = np.array([[1, 2, 2], [1, length, length]])
    wider, longer = room_for_reward(data, seats, sizes, 1, memory)
    assert (len(wider[1]), len(longer[1])) == (after, after)
    assert wider[0] is data[0]
    np.testing.assert_array_equal(wider[1][:length], data[1])
    np.testing.assert_array_equal(longer[1][:length], seats[1])
    assert not wider[1][length:].any()
    assert sizes.tolist() == [[1, 2, 2], [1, length, 0 if length == memory else length]]


@pytest.mark.parametrize("half_life", [1.0, 3.9, 4.1, 15.0, 80.0, 1000.0])
def test_what_remains_after_many_half_lives_is_the_power_of_one_half(half_life: float) -> None:
    """The past fades FADES times in a half-life, at equal intervals of at least one step."""
    steps = math.ceil(20 * half_life)
    shares = np.array([remaining_share(step, half_life) for step in range(1, steps + 1)])
    due = np.flatnonzero(shares < 1.0) + 1
    interval = max(1, round(half_life / FADES))
    np.testing.assert_array_equal(due, np.arange(interval, steps + 1, interval))
    assert np.log2(shares).sum() == pytest.approx(-due[-1] / half_life)
    assert FADES == 8


def test_doubled_slots_carry_new_labels_and_rewards_are_told_oldest_first() -> None:
    slots = np.array([[2, 0, 1], [1, 2, 0]])
    assert doubled_slots(slots).tolist() == [[2, 0, 1, 3, 4, 5], [1, 2, 0, 3, 4, 5]]
    size = np.zeros(3, np.int64)
    size[ROWS], size[NEXT] = 4, 1
    labels = np.array([0, 1, 2, 0, 9, 9])
    assert slots_in_order(slots, size, labels).tolist() == [2, 0, 1, 1]  # rows 1, 2, 3, 0


class Part(NamedTuple):
    array: Any
    number: Any = 1.0
    inner: Any = ()
    made_with: str = ""


def test_a_new_arm_is_the_last_of_a_fresh_state_in_the_room_that_has_grown() -> None:
    old = Part(np.arange(12.0).reshape(2, 6), 7.0, (np.zeros(3), np.ones(3)), "two arms")
    fresh = Part(np.full((3, 4), 5.0), 0.0, (np.ones(2), np.ones(2), np.full(2, 4.0)), "three arms")
    wider = with_empty_arm(old, fresh)
    np.testing.assert_array_equal(wider.array, [*old.array.tolist(), [5.0] * 4 + [0.0] * 2])
    assert wider.number == 7.0
    assert [len(part) for part in wider.inner] == [3, 3, 2]
    assert wider.inner[2] is fresh.inner[2]
    assert wider.made_with == "three arms"
    assert with_empty_arm(old._replace(made_with=""), fresh).made_with == ""
    same = Part(np.ones(3))
    assert with_empty_arm(same, Part(np.zeros(3))).array.tolist() == [1.0] * 3  # what has no entry per arm stays
    assert model_of_all(["a", "a"]) == "a"
    with pytest.raises(InvalidArgument, match="arms must be of one model"):
        model_of_all(["a", "b"])


def test_only_large_rewards_are_worth_a_copy_and_a_copy_brings_everything_back() -> None:
    state = Part(np.arange(3.0), 1.0, (np.ones(2),))
    for small in (0.0, 0.999 * LARGE, -0.999 * LARGE):
        assert backup_of(state, small) is None
    for large in (LARGE, -LARGE, 1e100):
        backup = backup_of(state, large)
        assert equal(backup, state)
        assert backup.array is not state.array
        state.array[:] = np.nan
        state.inner[0][:] = -1.0
        with pytest.raises(NumericalFailure, match=r"reward must be one whose sums are finite, got .*; rescale"):
            give_up(state, backup, large)
        assert equal(backup, state)
    put_back(state, Part(np.zeros(3), 1.0, (np.zeros(2),)))
    assert not state.array.any()
    with pytest.raises(NumericalFailure):
        give_up(state, None, 1.0)
    assert all_finite(np.ones(3), np.zeros((2, 2)))
    assert not all_finite(np.ones(3), np.array([[0.0, np.inf]]))
    assert not all_finite(np.array([np.nan, 1.0]))


def test_settings_are_told_by_name_and_long_arrays_by_their_content() -> None:
    short, long = np.arange(float(LONG)), np.arange(LONG + 1.0)
    assert described(short) == short.tolist()
    assert described(long).startswith(f"float64[{LONG + 1}] ")
    assert described(long) != described(long + 1)
    assert described(np.float64(2.0)) == 2.0
    engine = ConjugateEngine([LinearGaussian(NormalInverseGamma(2))] * 3)
    told = described(engine)
    assert told["kind"] == "ConjugateEngine"
    assert not any(name.startswith("_") for name in told)
    assert told["arms"]["count"] == 3
    assert told["arms"]["each"]["kind"] == "LinearGaussian"
    assert described(engine, ("arms",)) == {"kind": "ConjugateEngine"}
    assert described([1.0, 1.0]) == [1.0, 1.0]
    assert described((engine.arms[0],)) == [described(engine.arms[0])]
    assert described(len) == "len"
    assert described(None) is None

    class Plain:
        def __init__(self) -> None:
            self.b, self.a = 2, [1]

    assert described(Plain()) == {"kind": "Plain", "a": [1], "b": 2}
    assert json.loads(json.dumps(told)) == told


@pytest.mark.parametrize(
    ("ours", "theirs", "found"),
    [
        ({"a": 1}, {"a": 1}, None),
        ({"a": 1, "kind": "X"}, {"a": 2, "kind": "Y"}, ("kind", "X", "Y")),  # the kind comes first
        ({"b": 1, "a": 1}, {"b": 2, "a": 2}, ("a", 1, 2)),
        ({"a": 1}, {"a": 1, "b": 2}, ("b", None, 2)),
        ({"a": {"b": [1, 2]}}, {"a": {"b": [1, 3]}}, ("a.b[1]", 2, 3)),
        ([1, 2], [1, 2], None),
        ([1, 2], [1], ("", [1, 2], [1])),
        ({"a": [1]}, {"a": 1}, ("a", [1], 1)),
    ],
)
def test_the_first_setting_that_differs_is_named(ours: Any, theirs: Any, found: Any) -> None:
    assert difference(ours, theirs) == found


def test_settings_must_say_the_same_or_nothing() -> None:
    ours = json.dumps({"a": 1})
    require_settings("", ours, "state")
    require_settings(ours, ours, "state")
    require_settings('{"a":   1}', ours, "state")
    with pytest.raises(InvalidArgument, match="state must be made with a = 1, got one made with 2"):
        require_settings('{"a": 2}', ours, "state")
    with pytest.raises(InvalidArgument, match="state must be made with settings = "):
        require_settings("no settings at all", ours, "state")


def test_a_state_has_the_shape_of_another_or_its_part_is_named() -> None:
    like = Part(np.zeros((2, 3)), 1, (np.zeros(4),), "")
    expected = shape_of(like)
    require_shape(like, expected)
    require_shape(like._replace(array=np.ones((2, 3)), made_with="other"), expected)
    for wrong, told in (
        (
            like._replace(array=np.zeros((2, 4))),
            r"state\.array must be float64 of shape \(2, 3\), got ndarray float64 of",
        ),
        (like._replace(array=np.zeros((2, 3, 1))), r"state\.array must be"),
        (like._replace(array=np.zeros((2, 3), np.int64)), r"state\.array must be float64"),
        (like._replace(array=[[0.0] * 3] * 2), r"state\.array must be"),
        (like._replace(array=None), r"state\.array must be"),
        (like._replace(array=np.asfortranarray(np.zeros((2, 3)))), r"state\.array must be contiguous and writable"),
        (like._replace(number=1.0), r"state\.number must be int64"),
        (like._replace(inner=(np.zeros(4), np.zeros(4))), r"state\.inner must be a tuple of 1"),
        (like._replace(inner=(np.zeros(5),)), r"state\.inner\.0 must be"),
        (like._replace(inner=[np.zeros(4)]), r"state\.inner must be a tuple of 1"),
    ):
        with pytest.raises(InvalidArgument, match=told):
            require_shape(wrong, expected)
    frozen = np.zeros((2, 3))
    frozen.flags.writeable = False
    with pytest.raises(InvalidArgument, match=r"state\.array must be contiguous and writable"):
        require_shape(like._replace(array=frozen), expected)
    require_shape(Part(np.zeros((0, 3)).T, 1, (np.zeros(4),)), shape_of(Part(np.zeros((3, 0)), 1, (np.zeros(4),))))


def test_states_without_a_check_of_their_own_are_finite() -> None:
    require_sound(Part(np.zeros(2), math.inf, (np.zeros(1, np.int64),)))  # infinite bounds of nothing seen
    for wrong, told in (
        (Part(np.array([0.0, np.nan])), r"state\.array must be finite, got .*nan"),
        (Part(np.array([0.0, -np.inf])), r"state\.array must be finite, got .*inf"),
        (Part(np.zeros(1), math.nan), r"state\.number must be a number, got nan"),
        (Part(np.zeros(1), 0.0, (np.zeros(1), np.array([np.inf]))), r"state\.inner\.1 must be finite"),
    ):
        with pytest.raises(InvalidArgument, match=told):
            require_sound(wrong)


def test_equal_states_hold_the_same_numbers_and_copies_share_none() -> None:
    state = Part(np.arange(3.0), 2.0, (np.ones(2),))
    same = copied(state)
    assert type(same) is Part
    assert equal(same, state)
    assert not np.shares_memory(same.array, state.array)
    assert not np.shares_memory(same.inner[0], state.inner[0])
    for other in (
        state._replace(array=np.arange(4.0)),
        state._replace(array=np.zeros(3)),
        state._replace(number=3.0),
        state._replace(inner=(np.zeros(2),)),
        state._replace(inner=(np.ones(2), np.ones(2))),
    ):
        assert not equal(other, state)


def test_checks_of_numbers_take_what_is_on_their_limits() -> None:
    require_range(np.array([0, 3]), 0, 3, "n")
    require_range(np.zeros(0, np.int64), 1, 0, "n")
    for wrong, got in (([-1, 2], -1), ([0, 4], 4), ([2, 5, 1], 5)):
        with pytest.raises(InvalidArgument, match=f"n must be from 0 to 3, got {got}"):
            require_range(np.array(wrong), 0, 3, "n")
    require_numbers(np.array([-2.0, 2.0]), "v", 2.0)
    require_numbers(np.array([1e300]), "v")
    for values, limit, told in (
        ([1.0, np.inf], np.inf, "v must be finite, got inf"),
        ([2.0, -2.1], 2.0, "v must be at most 2 in size, got -2.1"),
        ([np.nan], 2.0, "v must be at most 2 in size, got nan"),
    ):
        with pytest.raises(InvalidArgument, match=told):
            require_numbers(np.array(values), "v", limit)
    require_above(np.array([1e-300]), 0.0, "v")
    for wrong_number in (0.0, -1.0, np.inf, np.nan):
        with pytest.raises(InvalidArgument, match="v must be finite and above 0, got"):
            require_above(np.array([1.0, wrong_number]), 0.0, "v")
    require_permutation(np.array([2, 0, 1]), np.array([1, 2, 0]), "p")
    for labels, places in (([2, 0, 0], [1, 2, 0]), ([2, 0, 1], [1, 2, 2]), ([3, 0, 1], [1, 2, 0]), ([0, 1], [1, 0])):
        with pytest.raises(InvalidArgument, match="p must be"):
            require_permutation(np.array(labels), np.array(places), "p")
    sqrt_information = np.eye(3)
    sqrt_information[-1, -1] = 0.0  # the last diagonal entry is a residual, and may be none
    require_roots(sqrt_information)
    sqrt_information[1, 1] = 0.0
    with pytest.raises(InvalidArgument, match=r"state\.roots must be without zeros on its diagonal"):
        require_roots(sqrt_information)


def test_a_forecast_of_components_is_a_mixture_of_students() -> None:
    """Weights m_k / sum m, dof 2 a_k, location x'U_k and scale sqrt(b_k/a_k (1 + x'V_k x)), with a_k = a + n_k / 2."""
    rng, dim = np.random.default_rng(0), 2
    columns, mass, x = np.zeros((n_rows(dim), 3)), np.array([2.0, 0.5, 1.0]), np.array([0.8, -0.4])
    columns[COUNT], columns[SCALE] = [0.0, 3.0, 7.0], [1.0, 2.0, 0.5]
    columns[MEAN : MEAN + dim] = rng.standard_normal((dim, 3))
    factors = rng.standard_normal((3, dim, dim))
    for k in range(3):
        columns[MEAN + dim :, k] = np.tril(factors[k])[np.tril_indices(dim)]
    found = student_mixture(columns, mass, 1.5, x)
    a = 1.5 + 0.5 * columns[COUNT]
    spread = [float(np.sum((x @ factor_of(columns[MEAN + dim :, k], dim)) ** 2)) for k in range(3)]
    np.testing.assert_allclose(found.weights, mass / 3.5)
    laws = [
        stats.t(2 * a[k], x @ columns[MEAN : MEAN + dim, k], np.sqrt(columns[SCALE, k] / a[k] * (1 + spread[k])))
        for k in range(3)
    ]
    for y in (-2.0, 0.1, 3.0):
        wanted = sum(w * law.pdf(y) for w, law in zip(mass / 3.5, laws, strict=True))
        assert float(found.pdf(y)) == pytest.approx(wanted, rel=1e-10)


def factor_of(packed: Array, dim: int) -> Array:
    """Upper factor M with V = M M', packed by the columns of its triangle."""
    M = np.zeros((dim, dim))
    M.T[np.tril_indices(dim)] = packed
    return M


def test_an_empty_component_is_its_prior() -> None:
    base = NormalInverseGamma(2, [0.3, -0.2], [[2.0, 0.4], [0.4, 1.0]], 1.5, 0.7)
    columns, sqrt_information, processes = prior_of([LinearMixture(base, 0.6, 0.1)])
    V = base.covariance_matrix
    assert columns[0, SCALE] == 0.7
    assert columns[0, LOG_DET] == pytest.approx(math.log(np.linalg.det(V)))
    np.testing.assert_allclose(columns[0, MEAN : MEAN + 2], [0.3, -0.2])
    M = factor_of(columns[0, MEAN + 2 :], 2)
    np.testing.assert_allclose(M @ M.T, V)
    np.testing.assert_allclose(sqrt_information[0, 0, :2, :2].T @ sqrt_information[0, 0, :2, :2], np.linalg.inv(V))
    assert processes.tolist() == [[1.5, 0.7, 0.6, 0.1]]


@pytest.mark.parametrize("noise_var", [None, 0.3])
def test_linear_posteriors_are_the_dense_ones(noise_var: float | None) -> None:
    base = NormalInverseGamma(2, [0.3, -0.2], [[2.0, 0.4], [0.4, 1.0]], 1.5, 0.7)
    engine = ConjugateEngine([LinearGaussian(base, noise_var)] * 2)
    data = rewards(15, 2, 2, seed=0)
    state, x = fed(engine, data, np.random.default_rng(0)), np.array([0.8, -0.4])
    for arm in range(2):
        X = np.array([row for row, a, _ in data if a == arm])
        y = np.array([value for _, a, value in data if a == arm])
        V0 = np.linalg.inv(base.covariance_matrix)
        V = np.linalg.inv(V0 + X.T @ X)
        U = V @ (V0 @ base.mean_vector + X.T @ y)
        a = 1.5 + len(y) / 2
        b = 0.7 + 0.5 * (y @ y + base.mean_vector @ V0 @ base.mean_vector - U @ np.linalg.inv(V) @ U)
        shape, scale = engine.noise(state)
        assert (shape[arm], scale[arm]) == (pytest.approx(a), pytest.approx(b))
        variance = noise_var or b / (a - 1)
        assert engine.noise_variances(state)[arm] == pytest.approx(variance)
        np.testing.assert_allclose(engine.predictors(state, x)[:, arm], [x @ U, x @ V @ x])
        np.testing.assert_allclose(engine.moments(state, x)[:, arm], [x @ U, np.sqrt(variance * (x @ V @ x))])
        width = np.sqrt((noise_var or b / a) * (1 + x @ V @ x))
        law = stats.t(2 * a, x @ U, width) if noise_var is None else stats.norm(x @ U, width)
        found = engine.predictive(state, x, arm)
        for at in (-1.0, 0.2, 4.0):
            assert float(found.pdf(at)) == pytest.approx(float(law.pdf(at)), rel=1e-9)
        drawn = engine.draw_densities(state, x, arm, np.array([0.2]), 20_000, np.random.default_rng(1))
        error = drawn.std() / np.sqrt(len(drawn))
        assert drawn.mean() == pytest.approx(float(law.pdf(0.2)), abs=4.5 * error)
    young = engine.init()
    assert engine.noise_variances(young)[0] == pytest.approx(noise_var or 0.7 / 0.5)  # a - 1 is taken for 1/2
    assert engine.n_components(state).tolist() == [1, 1]
    assert engine.n_components(young).tolist() == [0, 0]


@pytest.mark.parametrize("kind", ["gibbs", "robust", "kinds"])
def test_memory_is_kept_as_a_ring_of_the_latest_rewards(kind: str) -> None:
    """Rewards that can still move are the latest ones, oldest first, whatever the memory."""
    engines: dict[str, Any] = {
        "gibbs": lambda m: GibbsEngine([LinearMixture(NormalInverseGamma(2))] * 2, memory=m),
        "robust": lambda m: RobustEngine(RobustMixture(2, 2), 4, 2, memory=m),
        "kinds": lambda m: KindsEngine(RobustEngine(RobustMixture(2, 2), 4, 2, memory=m)),
    }
    data = rewards(60, 2, 2, seed=1)
    for memory in (5, 16, 17, None):
        engine = engines[kind](memory)
        state = fed(engine, data, np.random.default_rng(0))
        for arm in range(2):
            latest = [y for _, a, y in data if a == arm][-(memory or 99) :]
            if kind == "kinds":
                contexts, found = engine._rewards(state, arm)
                np.testing.assert_allclose(contexts, [x for x, a, _ in data if a == arm][-len(latest) :], atol=1e-9)
            else:
                sizes, rows = state.sizes[arm], state.data[arm]
                assert len(rows) <= (memory or 64)
                column = 2 if kind == "gibbs" else -1
                found = np.roll(rows[: sizes[ROWS], column], -sizes[NEXT])
                found = found if kind == "gibbs" else found + float(state.shared.origin)
            np.testing.assert_allclose(found, latest, atol=1e-9)


@pytest.mark.parametrize(
    "name", ["dirichlet, budget", "bounded memory", "hierarchical", "particles", "robust", "variational"]
)
def test_components_in_use_are_those_that_hold_rewards(name: str) -> None:
    engine: Any = ENGINES[name](3, 2)
    data = [row for row in rewards(60, 2, 3, seed=2) if row[1] != 2]  # the last arm has no rewards
    state = fed(engine, data, np.random.default_rng(0))
    found = engine.n_components(state)
    assert found[2] == 0
    for arm in range(2):
        if name == "hierarchical":
            arms, _, dishes = engine.seating(state)
            held = len(set(dishes[arms == arm].tolist()))
        elif name == "particles":
            cloud = state.clouds[arm]
            best = max(range(int(cloud.size[0])), key=lambda i: float(cloud.weights[i]))
            held = int(cloud.lengths[best])
        elif name == "variational":
            held = sum(count > 1e-6 for count in state.seatings[arm].table[COUNT])
        else:
            held = int((state.tables[arm, COUNT] > 0)[: state.sizes[arm, 0]].sum())
            seats = engine.assignments(state, arm)
            assert len(seats) == min(10 if name == "bounded memory" else 99, sum(a == arm for _, a, _ in data))
            assert set(seats.tolist()) <= set(range(held))
        assert found[arm] == held
    assert found[:2].max() > 1


@pytest.mark.parametrize("discount", [0.0, 0.3])
def test_a_concentration_is_drawn_given_all_restaurants(discount: float) -> None:
    """Gamma(2, 1) times, for every restaurant with n guests at K tables, prod_{k<K} (c + k d) / prod_{i<n} (c + i)."""
    counts = [np.array([5, 2, 1]), np.array([8]), np.array([3, 3, 1, 1])]
    rule, rng, drawn = np.array([1.0, discount]), np.random.default_rng(0), []
    for _ in range(4000):
        redraw_concentration(counts, rule, (2.0, 1.0), rng)
        drawn.append(float(rule[0]))
    assert rule[1] == discount
    grid = np.linspace(1e-4, 30.0, 60_000)
    log_p = stats.gamma(2.0).logpdf(grid)
    for sitting in counts:
        log_p += sum(np.log(grid + k * discount) for k in range(len(sitting)))
        log_p -= sum(np.log(grid + i) for i in range(int(sitting.sum())))
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    for power in (1, 2):
        values = np.array(drawn) ** power
        blocks = values.reshape(40, -1).mean(axis=1)  # draws of a chain are not independent
        assert values.mean() == pytest.approx(p @ grid**power, abs=4.5 * blocks.std() / np.sqrt(40))


@pytest.mark.parametrize("dim", [1, 2, 4])
def test_sums_of_rows_have_a_number_for_all_that_they_count_and_no_more(dim: int) -> None:
    """A count, a vector and the triangle of a matrix; sticks keep each of the latter two twice."""
    engine, rng, D = KindsEngine(RobustEngine(RobustMixture(2, dim), 4, 2)), np.random.default_rng(0), dim + 1
    state, triangle = engine.init(), D * (D + 1) // 2
    for t in range(40):
        y = 0.0 if t % 3 == 0 else float(np.exp(rng.standard_normal()))
        state = engine.update(state, rng.standard_normal(dim), t % 2, y, rng)
    assert state.amounts.model.sums.shape == (2, 1 + D + triangle)
    assert state.amounts.model.fits.shape == (2, D, D + 1)
    assert state.sticks.sums.shape == (2, 1, 1 + 2 * D + 2 * triangle)
    assert state.sticks.fits.shape == (2, 1, D, D + 2)
    assert {rows.shape[1] for rows in state.data} == {D + 2 + 2}
    assert {rows.shape[1] for rows in state.amounts.data} == {D + 3}
    counted = engine.init()
    for t in range(40):
        counted = engine.update(counted, rng.standard_normal(dim), t % 2, float(rng.integers(1, 7)), rng)
    assert counted.links.models.sums.shape == (2, 2, 1 + D + triangle)
    assert counted.links.models.fits.shape == (2, 2, D, D + 1)
    for part in (state.sticks, state.amounts.model, counted.links.models):
        assert part.kept.shape == part.sums.shape
        assert part.columns.shape == (6, D)
        assert part.sizes.shape == (2, 2)


@pytest.mark.parametrize("fixed_units", [False, True])
def test_every_context_is_looked_at_once_however_often_kinds_change(fixed_units: bool) -> None:
    engine, rng = (
        KindsEngine(RobustEngine(RobustMixture(2, 2), 4, 2, fixed_units=fixed_units)),
        np.random.default_rng(0),
    )
    values = [5.0, 5.0, *[0.0] * 3, *[1.0] * 5, 0.0, 0.0, 2.5, 3.5, *[0.0] * 9]  # other kinds five times
    state, squares, changes, before = engine.init(), np.zeros(2), 0, ()
    for n, y in enumerate(values, 1):
        x = rng.standard_normal(2)
        squares += x**2
        state = engine.update(state, x, n % 2, y, rng)
        changes += tuple(state.values) != before
        before = tuple(state.values)
        if len(state.values) and not fixed_units:
            assert state.sticks.columns[SEEN, 0] == n
            np.testing.assert_allclose(state.sticks.columns[SQUARES, :2], squares)
    assert changes > 2
    assert (state.sticks.columns[SEEN, 0] == 0) == fixed_units
