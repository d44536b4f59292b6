"""Hostile input: a clear error that changes nothing, or the right answer."""

import io
import json
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import polyarm as pa
from polyarm.errors import BrokenFile, InvalidArgument, UnknownName, require_context, require_contexts
from polyarm.inference import ConjugateEngine, GibbsEngine, GibbsState, load_state, save_state
from polyarm.inference.state_file import HEADER
from polyarm.kernels.mixture.component import COUNT, SCALE
from polyarm.models import LinearGaussian, LinearMixture, NormalInverseGamma
from polyarm.types import AnyEngine, Array
from tests.contracts.states import bits
from tests.rational import assert_component, assert_exact, exact_moments

WIDE = NormalInverseGamma(2, [0.5, -1.0], [[4.0, 1.0], [1.0, 2.0]], 1.5, 0.25)


def told(engine: AnyEngine, X: Array, y: Array, seed: int = 0) -> Any:
    """State of the first arm after these rewards."""
    state, rng = engine.init(), np.random.default_rng(seed)
    for x, reward in zip(X, y, strict=True):
        state = engine.update(state, x, 0, reward, rng)
    return state


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"prior_covariance": [[1.0, 2.0], [2.0, 1.0]]}, "prior_covariance must be positive definite, got .*-1"),
        ({"prior_covariance": [[1.0, 1.0], [1.0, 1.0]]}, "prior_covariance must be positive definite"),
        ({"prior_covariance": 0.0}, "prior_covariance must be positive definite, got 0.0"),
        ({"prior_covariance": -1.0}, "prior_covariance must be positive definite, got -1.0"),
        ({"prior_covariance": [1.0, -1.0]}, "prior_covariance must be positive definite"),
        ({"prior_covariance": [[1.0, 0.5], [0.4, 1.0]]}, "prior_covariance must be symmetric"),
        ({"prior_covariance": np.eye(3)}, r"prior_covariance must be .*, got shape \(3, 3\)"),
        ({"prior_covariance": np.nan}, "prior_covariance must be finite, got nan"),
        ({"prior_covariance": np.inf}, "prior_covariance must be finite, got inf"),
        ({"prior_covariance": [[1.0, np.nan], [np.nan, 1.0]]}, "prior_covariance must be finite, got nan"),
        ({"prior_covariance": "wide"}, "prior_covariance must be an array of numbers, got 'wide'"),
        ({"prior_mean": [1.0, 2.0, 3.0]}, r"prior_mean must be .* of 2, got shape \(3,\)"),
        ({"prior_mean": np.inf}, "prior_mean must be finite"),
        ({"prior_mean": None}, "prior_mean must be"),
        ({"prior_shape": 0.0}, "prior_shape must be a finite number above 0, got 0.0"),
        ({"prior_scale": -1.0}, "prior_scale must be a finite number above 0, got -1.0"),
        ({"prior_scale": np.nan}, "prior_scale must be a finite number above 0, got nan"),
        ({"concentration": -0.1}, "concentration must be a finite number above 0, got -0.1"),
        ({"concentration": 0.0}, "concentration must be a finite number above 0, got 0.0"),
        ({"concentration": np.nan}, "concentration must be a finite number above 0, got nan"),
        ({"discount": 1.0}, "discount must be a number below 1, got 1.0"),
        ({"moves": -1}, "moves must be an integer of at least 0, got -1"),
        ({"moves": 2.5}, "moves must be an integer of at least 0, got 2.5"),
        ({"memory": 0}, "memory must be an integer of at least 1, got 0"),
        ({"learn_concentration": (1.0, -1.0)}, "learn_concentration must be two positive numbers"),
        ({"draws": "some"}, "draws must be one of exact, paper, weights, got 'some'"),
        ({"colour": "red"}, "options of engine 'budget' must be its settings, got .*colour"),
    ],
)
def test_impossible_settings_are_named(settings: dict[str, Any], match: str) -> None:
    with pytest.raises(InvalidArgument, match=match):
        pa.make_policy("dirichlet", 2, 2, **settings)


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"concentration": -0.1}, "concentration must be a finite number above 0, got -0.1"),
        ({"noise_shape": np.nan}, "noise_shape must be a finite number above 0, got nan"),
        ({"arm_scale": (1.0, -1.0)}, "arm_scale must be a finite number above 0, got -1.0"),
        ({"arm_scale": (1.0,)}, r"arm_scale must be a pair, got \(1.0,\)"),
        ({"arm_shape": 1.0}, r"arm_shape must be a pair, got 1.0"),
        ({"part_ratio": (1.0, 1.0, 1.0)}, "part_ratio must be a pair"),
        ({"part_shape": (1.0, 1.0, 1.0), "part_scale": (1.0, 1.0, 1.0)}, "part_shape must be a pair"),
        ({"part_scale": (1.0, 1.0, 1.0)}, "part_scale must be a pair"),
        ({"part_scale": (0.0, 1.0)}, "part_scale must be above 0 where part_shape is"),
        ({"part_scale": (np.nan, 1.0)}, "part_scale must be a finite number of at least 0"),
        ({"concentration_prior": ()}, "concentration_prior must be a pair"),
        ({"concentration_prior": (1.0, 1.0, 1.0)}, "concentration_prior must be a pair"),
        ({"moves": -1}, "moves must be an integer of at least 0, got -1"),
        ({"memory": 0}, "memory must be an integer of at least 1, got 0"),
        ({"half_life": -3.0}, "half_life must be a finite number above 0, got -3.0"),
        ({"explore": "some"}, "explore must be one of information, optimistic, thompson, got 'some'"),
        ({"colour": "red"}, "options of policy 'nonparametric' must be its settings, got .*colour"),
    ],
)
def test_impossible_settings_of_the_default_are_named(settings: dict[str, Any], match: str) -> None:
    with pytest.raises(InvalidArgument, match=match):
        pa.make_policy("nonparametric", 2, 2, **settings)


@pytest.mark.parametrize(("n_arms", "dim"), [(0, 2), (-1, 2), (2, 0), (1.5, 2), (2, None), (True, 2)])
def test_impossible_sizes_are_named(n_arms: Any, dim: Any) -> None:
    with pytest.raises(InvalidArgument, match=r"(n_arms|context_dim) must be an integer of at least 1"):
        pa.make_policy("nonparametric", n_arms, dim)


def test_an_unknown_policy_is_named() -> None:
    with pytest.raises(UnknownName, match=r"policy must be one of nonparametric, .*, got 'nonparametrik'"):
        pa.make_policy("nonparametrik", 2, 2)


def test_an_engine_needs_arms_of_one_dimension() -> None:
    with pytest.raises(InvalidArgument, match="arms must be at least one model"):
        GibbsEngine([])
    with pytest.raises(InvalidArgument, match=r"arms must be models of one context dimension, got \[1, 2\]"):
        GibbsEngine([LinearMixture(NormalInverseGamma(d)) for d in (1, 2)])


SIZES = [(1.0, 1e-9), (1e6, 1e-9), (3e7, 1e-7)]  # a prior's say beside contexts of 3e7 lies in the sixteenth digit


def directions(kind: str, n: int, rng: np.random.Generator) -> Array:
    """N contexts of about unit length."""
    if kind == "identical":
        return np.tile([0.6, 0.8], (n, 1))
    if kind == "collinear":
        return np.outer(rng.standard_normal(n), [0.6, 0.8])
    if kind == "nearly collinear":
        return np.outer(rng.standard_normal(n), [0.6, 0.8]) + 1e-7 * rng.standard_normal((n, 2))
    if kind == "unlike scales":
        return np.column_stack([np.full(n, 1e-6), rng.standard_normal(n)])
    return rng.standard_normal((n, 2))


@pytest.mark.parametrize("kind", ["identical", "collinear", "nearly collinear", "unlike scales", "general"])
@pytest.mark.parametrize(("size", "rtol"), SIZES)
@pytest.mark.parametrize("concentration", [1e-200, 1.0])
def test_posterior_is_exact_whatever_the_contexts(kind: str, size: float, rtol: float, concentration: float) -> None:
    rng = np.random.default_rng(1)
    X = size * directions(kind, 30, rng)
    y = X @ [1.0, 0.5] / size + rng.standard_normal(30)
    mixture = GibbsEngine([LinearMixture(WIDE, concentration)])
    assert_exact(mixture, told(mixture, X, y), np.array([1.0, -0.3]), rtol)


@pytest.mark.parametrize("kind", ["identical", "collinear", "nearly collinear", "unlike scales", "general"])
@pytest.mark.parametrize(("size", "rtol"), SIZES)
def test_conjugate_posterior_is_exact_whatever_the_contexts(kind: str, size: float, rtol: float) -> None:
    rng = np.random.default_rng(1)
    X = size * directions(kind, 30, rng)
    y = X @ [1.0, 0.5] / size + rng.standard_normal(30)
    line = ConjugateEngine([LinearGaussian(WIDE)])
    state = told(line, X, y)
    for x in (X[-1], np.array([1.0, -0.3])):
        exact = exact_moments(WIDE, X, y, x)
        assert_component(line.predictive(state, x, 0), 0, WIDE, 30, exact, rtol)
        spread = np.sqrt(exact.scale * (1 + exact.leverage))
        assert abs(line.expected_means(state, x)[0] - exact.mean) < rtol * (spread + abs(exact.mean))


@pytest.mark.parametrize("reward", [1e99, -1e99, 1e100, 1e12, 1e-300])
def test_posterior_is_exact_after_an_absurd_reward(reward: float) -> None:
    rng = np.random.default_rng(2)
    X, y = rng.standard_normal((25, 2)), rng.standard_normal(25)
    y[10] = reward
    for concentration in (1e-200, 1.0):
        engine = GibbsEngine([LinearMixture(WIDE, concentration)])
        state = told(engine, X, y)
        assert_exact(engine, state, np.array([1.0, 0.5]))
        assert np.isfinite(engine.draw_means(state, X[0], 200, rng)).all()
    if abs(reward) > 1e6:  # with a sane concentration the absurd reward sits alone and harms nobody
        assert (engine.assignments(state, 0) == engine.assignments(state, 0)[10]).sum() == 1
        others = engine.predictive(state, X[0], 0)
        assert (np.abs(others.location) < 10).sum() == len(others.location) - 1


@pytest.mark.parametrize("reward", [0.0, 2.5, 1e6])
def test_constant_rewards(reward: float) -> None:
    """Zero variance: only the prior's scale is left, and the posterior shrinks around the reward as it should."""
    n, base = 200, NormalInverseGamma(1, 0.0, 1.0, 1.0, 0.5)
    engine = GibbsEngine([LinearMixture(base, 1e-200)])
    state = told(engine, np.ones((n, 1)), np.full(n, reward))
    found = engine.predictive(state, np.ones(1), 0)
    scale = 0.5 + 0.5 * reward**2 * n / (n + 1)
    expected = stats.t(2 + n, reward * n / (n + 1), np.sqrt(scale / (1 + n / 2) * (1 + 1 / (n + 1))))
    grid = reward + np.linspace(-1, 1, 7)
    np.testing.assert_allclose(found.cdf(grid), expected.cdf(grid), rtol=1e-9)


def test_constant_rewards_at_the_prior_mean_keep_the_scale() -> None:
    engine = GibbsEngine([LinearMixture(NormalInverseGamma(2, 0.0, 1.0, 1.0, 0.5), 1.0)])
    state = told(engine, np.random.default_rng(0).standard_normal((300, 2)), np.zeros(300))
    used = state.tables[0][:, : state.sizes[0, 0]]
    assert (used[SCALE] == 0.5).all()
    assert used[COUNT].sum() == 300


@pytest.mark.parametrize("name", ["nonparametric", "dirichlet", "pitman-yor", "linear", "gaussian"])
def test_policies_tell_constant_arms_apart(name: str) -> None:
    policy, rng = pa.make_policy(name, 2, 1), np.random.default_rng(0)
    state = policy.init()
    for t in range(100):
        state = policy.update(state, np.ones(1), t % 2, float(1 + t % 2), rng)
    chosen = [policy.choose(state, np.ones(1), rng).arm for _ in range(200)]
    assert np.mean(chosen) > 0.95


@pytest.mark.parametrize("size", [1.0, 1e6])
def test_a_hundred_thousand_identical_contexts(size: float) -> None:
    n, x = 100_000, size * np.array([0.6, 0.8])
    engine = GibbsEngine([LinearMixture(NormalInverseGamma(2), 0.5)], pa.Budget(8))
    y = np.random.default_rng(0).standard_normal(n) + 3.0
    state = told(engine, np.tile(x, (n, 1)), y)
    assert state.sizes[0, 1] == n
    labels, found = engine.assignments(state, 0), engine.predictive(state, x, 0)
    for k in range(int(state.sizes[0, 0])):
        mine = y[labels == k]
        precision = 1 + len(mine) * size**2
        mean = size**2 * mine.sum() / precision
        scale = 1 + 0.5 * (((mine - mean) ** 2).sum() + (mean / size) ** 2)
        shape = 1 + 0.5 * len(mine)
        spread = np.sqrt(scale / shape * (1 + size**2 / precision))
        assert found.location[k] == pytest.approx(mean, rel=1e-9)
        assert found.scale[k] == pytest.approx(spread, rel=1e-9)
    assert engine.expected_means(state, x)[0] == pytest.approx(y.mean(), rel=1e-3)


def test_a_context_of_zeros_pays_noise_only() -> None:
    engine = GibbsEngine([LinearMixture(WIDE, 1.0)])
    rng = np.random.default_rng(3)
    X = np.where(rng.random((40, 1)) < 0.5, 0.0, rng.standard_normal((40, 2)))
    state = told(engine, X, rng.standard_normal(40))
    assert_exact(engine, state, np.zeros(2))
    assert engine.expected_means(state, np.zeros(2))[0] == 0
    assert (engine.draw_means(state, np.zeros(2), 5, rng) == 0).all()


def read_only(x: Array) -> Array:
    x = x.copy()
    x.flags.writeable = False
    return x


def unaligned(x: Array) -> Array:
    """The numbers at an odd address, as a packed record has them."""
    room = np.zeros(8 * len(x) + 1, np.uint8)
    room[1:] = x.view(np.uint8)
    found = room[1:].view(np.float64)
    assert not found.flags.aligned
    return found


FORMS: dict[str, Callable[[Array], Any]] = {
    "read-only": read_only,
    "unaligned": unaligned,
    "every second": lambda x: np.repeat(x, 2)[::2],
    "big-endian": lambda x: x.astype(">f8"),
    "single precision": lambda x: x.astype(np.float32),
    "list": lambda x: x.tolist(),
    "integers": lambda x: (4 * x).astype(np.int64) / 4,
    "row of a table": lambda x: np.stack([x, -x])[0],
}


def test_contexts_at_odd_addresses_are_copied() -> None:
    """Compiled code expects numbers at whole addresses; not every processor takes others."""
    x = np.array([0.5, -1.0, 2.0])
    for found in (require_context(unaligned(x), 3), require_contexts(unaligned(x).reshape(1, 3), 3)[0]):
        assert found.flags.aligned
        np.testing.assert_array_equal(found, x)
    assert require_context(x, 3) is x


@pytest.mark.parametrize("rewards", ["continuous", "clicks", "counts", "revenue"])
def test_the_form_of_a_context_does_not_matter(rewards: str) -> None:
    """Kernels trust what was checked, so whatever form numbers come in, the state after them is the same to the bit."""
    policy = pa.make_policy("nonparametric", 2, 3)
    states: dict[str, Any] = {}
    for name, form in {"": lambda x: x, **FORMS}.items():
        rng, data = np.random.default_rng(5), np.random.default_rng(6)
        state = policy.init()
        for _ in range(40):
            x, size = data.integers(-8, 9, 3) / 4, float(data.gamma(2.0))
            paid = {"continuous": size, "clicks": float(size > 1), "counts": float(data.poisson(3))}
            reward: Any = np.float32(paid.get(rewards, size if size > 2 else 0.0))
            arm: Any = np.int32(policy.choose(state, form(x), rng).arm)
            state = policy.update(state, form(x), arm, reward, rng)
        states[name] = state
    for name, state in states.items():
        assert bits(state) == bits(states[""]), name


@pytest.mark.parametrize(("concentration", "discount"), [(1e6, 0.0), (1.0, 0.99), (-0.49, 0.5)])
def test_as_many_components_as_it_takes(concentration: float, discount: float) -> None:
    engine = GibbsEngine([LinearMixture(NormalInverseGamma(1), concentration, discount)] * 2)
    state = told(engine, np.ones((300, 1)), np.linspace(-50, 50, 300))
    assert state.sizes[0, 0] > 60 or concentration < 1e6
    assert state.tables[0][COUNT, : state.sizes[0, 0]].sum() == 300
    assert not state.sizes[1].any()
    draws = engine.draw_means(state, np.ones(1), 50, np.random.default_rng(0))
    assert np.isfinite(draws).all()


def saved(tmp_path: Path, n_arms: int = 2, dim: int = 2) -> tuple[Path, GibbsState]:
    """A file with a state in it."""
    engine = GibbsEngine([LinearMixture(NormalInverseGamma(dim))] * n_arms)
    rng = np.random.default_rng(0)
    state = told(engine, rng.standard_normal((20, dim)), rng.standard_normal(20))
    return save_state(tmp_path / "state", state), state


def other_state(n_arms: int = 2, dim: int = 2) -> GibbsState:
    return GibbsEngine([LinearMixture(NormalInverseGamma(dim))] * n_arms).init()


def rewritten(path: Path, change: Callable[[str, bytes], bytes | None]) -> None:
    """The file with its members changed, each with a right checksum; None drops one."""
    with zipfile.ZipFile(path) as archive:
        members = {name: change(name, archive.read(name)) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            if content is not None:
                archive.writestr(name, content)


def with_header(**changes: Any) -> Callable[[str, bytes], bytes]:
    def change(name: str, content: bytes) -> bytes:
        return json.dumps(json.loads(content) | changes).encode() if name == HEADER else content

    return change


DAMAGE: dict[str, Callable[[str, bytes], bytes | None]] = {
    "no header": lambda name, content: None if name == HEADER else content,
    "header that is no JSON": lambda name, content: b"\xff{" if name == HEADER else content,
    "header that is a list": lambda name, content: b"[]" if name == HEADER else content,
    "future format": with_header(format=99),
    "no shapes": with_header(shape=None),
    "array missing": lambda name, content: None if name == "state.sizes.npy" else content,
    "array whose header is no Python": lambda name, content: content.replace(
        b"'fortran_order'", b"'fortran_or<\x19\xc2"
    ),
    "array whose header never ends": lambda name, content: content.replace(b"}", b"("),
    "array cut short": lambda name, content: content[:-8] if name == "state.tables.npy" else content,
    "array of another": lambda name, content: npy(np.zeros((2, 3, 4))) if name == "state.tables.npy" else content,
    "array of objects": lambda name, content: npy(np.array([{}], object)) if name == "state.sizes.npy" else content,
}


def npy(array: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=True)
    return file.getvalue()


@pytest.mark.parametrize("kind", DAMAGE)
def test_changed_files_are_refused(kind: str, tmp_path: Path) -> None:
    path, _ = saved(tmp_path)
    rewritten(path, DAMAGE[kind])
    with pytest.raises(BrokenFile, match="path must "):
        load_state(path, other_state())


def test_compressed_files_are_refused(tmp_path: Path) -> None:
    """A small file must not unfold to any size."""
    path, _ = saved(tmp_path)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    with pytest.raises(BrokenFile, match="must be stored as it is"):
        load_state(path, other_state())


@pytest.mark.parametrize(
    "content", [b"", b"hello", pickle.dumps({"a": 1}), b"PK\x03\x04", b"\x93NUMPY", b"PK\x05\x06" + b"\0" * 18]
)
def test_foreign_files_are_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "foreign"
    path.write_bytes(content)
    with pytest.raises(BrokenFile, match="path must be a readable polyarm state"):
        load_state(path, other_state())


def test_missing_files_and_folders_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "nothing", tmp_path):
        with pytest.raises(BrokenFile):
            load_state(path, other_state())
    with pytest.raises(InvalidArgument, match="path must be in a folder that exists"):
        save_state(tmp_path / "no" / "state", other_state())


def test_truncated_files_are_refused(tmp_path: Path) -> None:
    path, _ = saved(tmp_path)
    whole = path.read_bytes()
    for end in np.linspace(0, len(whole) - 1, 60).astype(int):
        path.write_bytes(whole[:end])
        with pytest.raises(BrokenFile):
            load_state(path, other_state())


def test_a_flipped_bit_is_refused_or_harmless(tmp_path: Path) -> None:
    path, state = saved(tmp_path)
    whole = path.read_bytes()
    places = np.random.default_rng(0).choice(len(whole), 400, replace=False)
    names = [i for i in range(len(whole)) if whole[i : i + 2] == b"PK"]  # where zip keeps its own records
    refused = 0
    for place in [*places, *(i + k for i in names for k in range(0, 46, 3))]:
        if place >= len(whole):
            continue
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x41]) + whole[place + 1 :])
        try:
            loaded = load_state(path, other_state())
        except BrokenFile:
            refused += 1
        else:
            assert bits(loaded) == bits(state)
    assert refused > 300


@pytest.mark.parametrize(
    "like",
    [
        other_state(n_arms=3),
        other_state(dim=3),
        pa.make_policy("linear", 2, 2).init(),
        pa.make_policy("linear-showdown", 2, 2).init(),
        pa.make_policy("uniform", 2, 2).init(),
        pa.BayesUCB(GibbsEngine([LinearMixture(NormalInverseGamma(2))] * 2)).init(),
    ],
)
def test_states_of_another_policy_are_refused(like: Any, tmp_path: Path) -> None:
    path, _ = saved(tmp_path)
    with pytest.raises(BrokenFile, match="state of this policy and these arms, got another's"):
        load_state(path, like)
    mine = save_state(tmp_path / "other", like)
    with pytest.raises(BrokenFile):
        load_state(mine, other_state())


def test_linear_states_of_another_size_are_refused(tmp_path: Path) -> None:
    path = save_state(tmp_path / "state", pa.make_policy("linear", 2, 3).init())
    for n_arms, dim in ((2, 1), (4, 3), (2, 7)):
        with pytest.raises(BrokenFile):
            load_state(path, pa.make_policy("linear", n_arms, dim).init())


def test_an_interrupted_save_leaves_the_old_file_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, state = saved(tmp_path)

    def full(*_: Any, **__: Any) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(np.lib.format, "write_array", full)
    with pytest.raises(OSError, match="No space left"):
        save_state(path, other_state())
    assert bits(load_state(path, other_state())) == bits(state)
    assert [file.name for file in tmp_path.iterdir()] == ["state"]
