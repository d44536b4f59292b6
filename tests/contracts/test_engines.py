"""What every engine promises, whatever its method."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from polyarm.errors import PolyarmError
from polyarm.inference import GibbsEngine, load_state, save_state
from polyarm.kernels._jit import plain
from polyarm.kernels.robust.common_centre import common_of
from polyarm.kernels.robust.records import arms_of
from polyarm.types import AnyEngine
from tests.contracts.engines import ENGINES, IN_TURN, ROBUST, SHARING, process
from tests.contracts.states import BAD_ARMS, BAD_CONTEXTS, BAD_REWARDS, bits, fed, refusal, refuses, rewards, suited

X = np.array([0.8, -0.4])


@pytest.fixture(params=ENGINES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def engine(name: str) -> AnyEngine:
    return ENGINES[name](3, 2)


def learnt(engine: AnyEngine, n: int = 40, seed: int = 0) -> Any:
    data = rewards(n, engine.context_dim, engine.n_arms, seed)
    return fed(engine, data, np.random.default_rng(seed))


@pytest.mark.parametrize("n_arms", [1, 4])
@pytest.mark.parametrize("dim", [1, 2, 64])
def test_shapes(name: str, n_arms: int, dim: int) -> None:
    engine = ENGINES[name](n_arms, dim)
    assert (engine.n_arms, engine.context_dim) == (n_arms, dim)
    x = np.full(dim, 1 / np.sqrt(dim))
    for state in (engine.init(), learnt(engine, 20)):
        draws = engine.draw_means(state, x, 5, np.random.default_rng(0))
        assert draws.shape == (5, n_arms)
        assert draws.dtype == np.float64
        assert engine.expected_means(state, x).shape == (n_arms,)
        assert np.isfinite(draws).all()
        assert np.isfinite(engine.expected_means(state, x)).all()


def test_a_seed_fixes_the_future(engine: AnyEngine) -> None:
    one, same, other = (learnt(engine, 40, seed) for seed in (1, 1, 2))
    assert bits(one) == bits(same)
    assert bits(one) != bits(other)
    draws = [engine.draw_means(one, X, 4, np.random.default_rng(7)) for _ in range(2)]
    assert np.array_equal(draws[0], draws[1])


def test_questions_leave_the_state_alone(engine: AnyEngine) -> None:
    state = learnt(engine)
    before = bits(state)
    engine.draw_means(state, X, 10, np.random.default_rng(0))
    engine.expected_means(state, X)
    assert bits(state) == before


def test_init_is_fresh(engine: AnyEngine) -> None:
    before = bits(engine.init())
    learnt(engine)
    assert bits(engine.init()) == before


def test_expectation_is_the_mean_of_the_draws(engine: AnyEngine) -> None:
    state = learnt(engine)
    draws = engine.draw_means(state, X, 20_000, np.random.default_rng(1))
    error = draws.std(axis=0) / np.sqrt(len(draws))
    assert (np.abs(draws.mean(axis=0) - engine.expected_means(state, X)) < 4.5 * error).all()


@pytest.mark.parametrize("n", [0, 1, 100])
def test_a_file_continues_bit_for_bit(engine: AnyEngine, n: int, tmp_path: Path) -> None:
    state = learnt(engine, n)
    loaded = load_state(save_state(tmp_path / "state", state), engine.init())
    assert bits(loaded) == bits(state)
    more = rewards(60, 2, 3, seed=5)
    futures = [fed(engine, more, np.random.default_rng(6), s) for s in (state, loaded)]
    assert bits(futures[0]) == bits(futures[1])
    draws = [engine.draw_means(s, X, 4, np.random.default_rng(7)) for s in futures]
    assert np.array_equal(draws[0], draws[1])


def test_numbering_of_arms_is_free(name: str, engine: AnyEngine) -> None:
    """Rewards alone touch an arm, so that renumbered arms learn the very same; draws agree in distribution."""
    if name in IN_TURN or "profits" in name:  # an arm's cost goes by its number there
        return
    new_number = np.array([2, 0, 1])
    data = rewards(30, 2, 3, seed=3)
    renumbered = [(x, int(new_number[arm]), y) for x, arm, y in data]
    if name in SHARING:
        means = [
            np.array([engine.expected_means(fed(engine, d, np.random.default_rng(s)), X) for s in range(60)])
            for d in (data, renumbered)
        ]
        error = np.sqrt(sum(m.var(axis=0) for m in means) / 60)
        assert (np.abs(means[0].mean(axis=0) - means[1].mean(axis=0)[new_number]) < 5 * error + 1e-9).all()
        return
    one, other = (fed(engine, d, np.random.default_rng(4)) for d in (data, renumbered))
    np.testing.assert_array_equal(engine.expected_means(one, X), engine.expected_means(other, X)[new_number])
    draws = [engine.draw_means(s, X, 10_000, np.random.default_rng(8 + i)) for i, s in enumerate((one, other))]
    matched = [draws[0], draws[1][:, new_number]]
    for power in (1, 2):
        moments = [(d**power).mean(axis=0) for d in matched]
        error = np.sqrt(sum((d**power).var(axis=0) for d in matched) / 10_000)
        assert (np.abs(moments[0] - moments[1]) < 5 * error).all()


def test_arms_learn_apart(name: str, engine: AnyEngine) -> None:
    if name in SHARING:
        return
    state = learnt(engine)
    before = engine.expected_means(state, X)
    state = engine.update(state, X, 1, suited(engine, 50.0), np.random.default_rng(0))
    after = engine.expected_means(state, X)
    assert (before == after).tolist() == [True, False, True]


def test_bad_contexts(engine: AnyEngine) -> None:
    refuses(engine, full(engine), "context", {kind: (context, 0, 1.0) for kind, context in BAD_CONTEXTS.items()})
    state = learnt(engine, 5)
    for kind, context in BAD_CONTEXTS.items():
        asked = partial(engine.draw_means, state, context, 1, np.random.default_rng(0))
        for act in (asked, partial(engine.expected_means, state, context)):
            assert "context must be" in refusal(act), kind


def test_bad_arms(engine: AnyEngine) -> None:
    refuses(engine, full(engine), "arm", {kind: (X, arm, 1.0) for kind, arm in BAD_ARMS.items()})


def test_bad_rewards(engine: AnyEngine) -> None:
    refuses(engine, full(engine), "reward", {kind: (X, 0, reward) for kind, reward in BAD_REWARDS.items()})


def full(engine: AnyEngine) -> Any:
    """A state whose arrays are full, at 16 rewards: an update that failed late would have grown them."""
    return learnt(engine, 16)


def test_bad_numbers_of_draws(engine: AnyEngine) -> None:
    wrong: Any
    for wrong in (0, -1, 2.5, None, True):
        said = refusal(partial(engine.draw_means, engine.init(), X, wrong, np.random.default_rng(0)))
        assert "n_draws must be an integer of at least 1" in said, wrong


def test_an_added_arm_is_as_if_it_had_been_there_all_along(name: str, engine: AnyEngine) -> None:
    data = rewards(40, 2, 3, seed=0)
    wider, state = engine.with_arm(fed(engine, data, np.random.default_rng(1)))
    from_the_start = ENGINES[name](4, 2)
    assert bits(engine.with_arm(engine.init())[1]) == bits(from_the_start.init())
    assert wider.n_arms == 4
    if name not in ROBUST:  # whose arms take turns with each other
        assert bits(state) == bits(fed(from_the_start, data, np.random.default_rng(1)))
    before = engine.expected_means(fed(engine, data, np.random.default_rng(1)), X)
    assert wider.expected_means(state, X)[:3].tolist() == before.tolist()
    state = fed(wider, [(X, 3, 2.0)] * 20, np.random.default_rng(2), state)
    assert wider.expected_means(state, X)[3] > 0.5


def test_a_robust_arm_starts_from_what_the_arms_share() -> None:
    """Its mean reward is normal around the centre of all, with the arms' and their components' spread; the centre is
    known as well as the other arms' rewards tell.
    """
    engine = ENGINES["robust"](3, 2)
    wider: Any
    wider, state = engine.with_arm(learnt(engine, 200))
    f, shared, known = np.append(X - state.features.base[:2], 1.0), state.shared, state.features
    common = common_of(plain(arms_of)(wider._books(state)))
    centre = shared.origin + f @ (known.centre + common.shift)
    unknown = np.linalg.solve(np.tril(common.factor), f)
    spread = np.sqrt(f**2 @ (known.arm_var + known.part_var / (shared.concentration + 1)) + unknown @ unknown)
    np.testing.assert_allclose(wider.moments(state, X)[:, 3], [centre, spread], rtol=1e-9)


def test_arms_of_different_models_leave_a_new_one_without() -> None:
    engine = GibbsEngine([process(2), process(2, 0.7)])
    with pytest.raises(PolyarmError, match="arms must be of one model, so that a new arm can have it, got"):
        engine.with_arm(engine.init())
