"""A state fits its engine or is refused, by name and without a crash; so does a file."""

import copy
import json
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import polyarm as pa
from polyarm.errors import BrokenFile, InvalidArgument, PolyarmError
from polyarm.inference import (
    ConjugateEngine,
    GibbsEngine,
    RobustEngine,
    VariationalEngine,
    load_state,
    save_state,
)
from polyarm.inference.door import NOTHING, copied
from polyarm.kernels.robust.records import SHARED
from polyarm.models import LinearGaussian, LinearMixture, NormalInverseGamma, RobustMixture
from polyarm.types import AnyEngine, AnyPolicy
from tests.contracts.corruptions import corrupted, replaced, survives
from tests.contracts.engines import ENGINES
from tests.contracts.policies import POLICIES
from tests.contracts.states import bits, fed, rewards, suited

X = np.array([0.8, -0.4])


PARTS = {  # an array of states whose first part is none
    "clouds": ["clouds", "1", "weights"],
    "seatings": ["seatings", "1", "data"],
    "hurdle": ["hurdle", "centres"],
    "rest": ["rest", "tables"],
}


@pytest.fixture(params=ENGINES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def engine(name: str) -> AnyEngine:
    return ENGINES[name](3, 2)


def learnt(engine: AnyEngine, n: int = 40, seed: int = 0) -> Any:
    data = rewards(n, engine.context_dim, engine.n_arms, seed)
    return fed(engine, data, np.random.default_rng(seed))


def refused(engine: AnyEngine, state: Any, match: str = "must be") -> None:
    """Check that every question and every reward is refused, and that the state stays as it was."""
    rng, x = np.random.default_rng(0), np.ones(engine.context_dim)
    before = bits(state) if isinstance(state, tuple) else None
    with pytest.raises(InvalidArgument, match=match):
        engine.draw_means(state, x, 1, rng)
    with pytest.raises(InvalidArgument, match=match):
        engine.expected_means(state, x)
    with pytest.raises(InvalidArgument, match=match):
        engine.update(state, x, 0, 1.0, rng)
    assert before is None or bits(state) == before


@pytest.mark.parametrize(("n_arms", "dim"), [(2, 2), (4, 2), (3, 1), (3, 5)])
def test_states_of_other_arms_and_contexts_are_refused(name: str, n_arms: int, dim: int) -> None:
    if name == "without context" and n_arms == 3:
        return  # it never looks at the context
    refused(ENGINES[name](3, 2), learnt(ENGINES[name](n_arms, dim), 20))


def test_states_of_other_engines_are_refused(engine: AnyEngine) -> None:
    kind = type(engine.init())
    for other in ("conjugate", "student", "dirichlet, budget", "particles", "variational", "hierarchical", "robust"):
        state = ENGINES[other](3, 2).init()
        if type(state) is not kind:
            refused(engine, state, f"state must be a {kind.__name__}, got ")
    refused(engine, None, f"state must be a {kind.__name__}")


@pytest.mark.parametrize(
    ("ours", "theirs", "named"),
    [
        (
            GibbsEngine([LinearMixture(NormalInverseGamma(2), 0.5)]),
            GibbsEngine([LinearMixture(NormalInverseGamma(2), 0.7)]),
            "concentration = 0.5, got one made with 0.7",
        ),
        (
            ConjugateEngine([LinearGaussian(NormalInverseGamma(2, 1.0))]),
            ConjugateEngine([LinearGaussian(NormalInverseGamma(2, 2.0))]),
            "mean",
        ),
        (
            VariationalEngine([LinearMixture(NormalInverseGamma(2, scale=2.0))]),
            VariationalEngine([LinearMixture(NormalInverseGamma(2, scale=3.0))]),
            "scale = 2.0, got one made with 3.0",
        ),
        (
            RobustEngine(RobustMixture(2, 2)),
            RobustEngine(RobustMixture(2, 2, concentration=0.7)),
            "model.concentration = 0.5, got one made with 0.7",
        ),
        (RobustEngine(RobustMixture(2, 2)), RobustEngine(RobustMixture(2, 2), fixed_units=True), "fixed_units = False"),
    ],
)
def test_states_of_other_settings_are_refused(ours: AnyEngine, theirs: AnyEngine, named: str, tmp_path: Path) -> None:
    state = learnt(theirs, 10)
    refused(ours, state, f"must be made with .*{named}")
    with pytest.raises(BrokenFile, match=named):
        load_state(save_state(tmp_path / "state", state), ours.init())


def test_what_the_sampler_does_is_free_to_change() -> None:
    arms = [LinearMixture(NormalInverseGamma(2), 0.5)] * 2
    state = learnt(GibbsEngine(arms, pa.Budget(4)), 30)
    learnt_more = GibbsEngine(arms, pa.Sweeps(1), "paper").update(state, X, 0, 1.0, np.random.default_rng(0))
    assert learnt_more.sizes[0, 3] + learnt_more.sizes[1, 3] == 31


def test_a_state_that_an_update_used_up_is_checked_again(engine: AnyEngine) -> None:
    """Older states share arrays with newer ones: those that no longer agree are refused, and none crashes."""
    rng = np.random.default_rng(0)
    states = [engine.init()]
    for x, arm, y in rewards(70, 2, 3, seed=1):
        states.append(engine.update(states[-1], x, arm, suited(engine, y), rng))
    for state in states[::5]:
        try:
            engine.update(state, X, 0, 1.0, rng)
        except InvalidArgument:
            continue


def test_copies_of_an_engine_trust_nothing(engine: AnyEngine) -> None:
    state = learnt(engine)
    for other in (pickle.loads(pickle.dumps(engine)), copy.deepcopy(engine)):
        held: Any = getattr(other, "engine", other)
        assert held._door.last is NOTHING
        same = pickle.loads(pickle.dumps(state))
        futures = [
            e.update(copied(s), X, 0, 1.0, np.random.default_rng(5)) for e, s in ((engine, state), (other, same))
        ]
        assert bits(futures[0]) == bits(futures[1])


def test_broken_states_are_refused_or_harmless(engine: AnyEngine) -> None:
    rng = np.random.default_rng(3)
    state = learnt(engine)
    taken = sum(survives(engine, corrupted(state, rng), rng) for _ in range(40))
    assert taken < 25
    survives(engine, copied(state), rng)


def test_states_that_are_not_finite_are_never_saved(engine: AnyEngine, tmp_path: Path) -> None:
    state = learnt(engine)
    part = PARTS.get(state._fields[0])
    path = part or [state._fields[0]]
    inner: Any = state
    for step in path:
        inner = inner[int(step)] if step.isdigit() else getattr(inner, step)
    bad = inner.copy()
    bad.flat[0] = np.nan
    with pytest.raises(PolyarmError, match="must be"):
        save_state(tmp_path / "state", replaced(state, path, bad))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", POLICIES)
def test_policies_refuse_states_of_other_arms(name: str) -> None:
    if name == "uniform":
        return
    policy, rng = POLICIES[name](3, 2), np.random.default_rng(0)
    for n_arms, dim in ((2, 2), (3, 5)):
        other = POLICIES[name](n_arms, dim)
        state = fed(other, rewards(20, dim, n_arms, seed=0), rng)
        ignores = bits(other.init()).keys() == bits(policy.init()).keys() and name in (
            *("gaussian", "npts", "rb-sda", "ucb-v", "median-of-means-ucb"),
        )
        if n_arms == 3 and ignores:
            continue
        with pytest.raises(InvalidArgument, match="must be"):
            policy.choose(state, X, rng)
        with pytest.raises(InvalidArgument, match="must be"):
            policy.update(state, X, 0, 1.0, rng)


def test_a_file_names_the_setting_that_differs(tmp_path: Path) -> None:
    policy = pa.make_policy("nonparametric", 2, 2)
    path = save_state(tmp_path / "state", policy.init(), policy)
    assert bits(load_state(path, policy=pa.make_policy("nonparametric", 2, 2))) == bits(policy.init())
    others: list[tuple[AnyPolicy, str]] = [
        (pa.make_policy("nonparametric", 2, 2, moves=64), "engine.rest.moves = 64, got one with 32"),
        (pa.make_policy("nonparametric", 2, 2, explore="thompson"), "kind = 'ThompsonSampling', got one with 'Inform"),
        (pa.make_policy("nonparametric", 3, 2), "engine.rest.model.n_arms = 3, got one with 2"),
        (pa.make_policy("nonparametric", 2, 2, centre_var=5.0), "model.centre_var = 5.0, got one with 3.0"),
        (pa.make_policy("linear", 2, 2), "kind = 'ThompsonSampling'"),
    ]
    for other, named in others:
        with pytest.raises(BrokenFile, match=named):
            load_state(path, policy=other)
    with pytest.raises(InvalidArgument, match="policy must be given"):
        load_state(path)


def test_values_that_are_not_learned_are_the_models(tmp_path: Path) -> None:
    """Concentration and spread of places come from the settings, whatever a file says."""
    policy = pa.make_policy("nonparametric", 2, 2)
    state = fed(policy, rewards(30, 2, 2, seed=0), np.random.default_rng(0))
    hyper = state.rest.hyper.copy()
    hyper.view(SHARED)["concentration"] = 5.0
    bad = state._replace(rest=state.rest._replace(hyper=hyper))
    loaded = load_state(save_state(tmp_path / "state", bad), policy.init())
    with pytest.raises(InvalidArgument, match=r"state\.hyper must be"):
        policy.choose(loaded, X, np.random.default_rng(0))
    other = pa.make_policy("dirichlet", 2, 2)
    state = fed(other, rewards(30, 2, 2, seed=0), np.random.default_rng(0))
    with pytest.raises(InvalidArgument, match=r"state\.laws must be the models'"):
        other.choose(state._replace(laws=state.laws + 0.1), X, np.random.default_rng(0))


MEMORIES: dict[str, dict[str, Any]] = {
    "nonparametric": {},
    "dirichlet": {},
    "pitman-yor": {},
    "learned": {"learn_concentration": (1, 1), "learn_scale": (1, 1)},
}


def of_memory(kind: str, **options: Any) -> AnyPolicy:
    return pa.make_policy("dirichlet" if kind == "learned" else kind, 2, 2, **MEMORIES[kind], **options)


def kept_by(state: Any) -> Any:
    """The part of a state that holds the rewards."""
    return getattr(state, "rest", state)


@pytest.mark.parametrize("later", [{"memory": 1}, {"memory": 10}, {"memory": 40}, {"memory": 50}, {}])
@pytest.mark.parametrize("options", [{}, {"memory": 30}])
def test_memory_of_clicks_can_change(options: dict[str, Any], later: dict[str, Any], tmp_path: Path) -> None:
    policy, after, rng = (
        of_memory("nonparametric", **options),
        of_memory("nonparametric", **later),
        np.random.default_rng(0),
    )
    data = [(x, t % 2, float(y > 0)) for t, (x, _, y) in enumerate(rewards(100, 2, 2, seed=4))]
    state = load_state(save_state(tmp_path / "state", fed(policy, data, rng), policy), policy=after)
    n = state.sticks.sums[0, 0, 0]
    state = after.update(state, *data[0][:2], data[0][2], rng)
    assert state.sticks.sums[0, 0, 0] == pytest.approx(n + 1)
    for x, _, y in data:
        state = after.update(state, x, after.choose(state, x, rng).arm, y, rng)
    assert all(len(rows) <= later.get("memory", 1000) for rows in state.data)
    state.require_sound()


@pytest.mark.parametrize("kind", MEMORIES)
@pytest.mark.parametrize("options", [{}, {"memory": 30}, {"memory": 25, "half_life": 40.0}])
@pytest.mark.parametrize(
    "later",
    [
        *({"memory": 1}, {"memory": 10}, {"memory": 20}, {"memory": 40}, {"memory": 50}, {"memory": 51}, {}),
        *({"half_life": 20.0}, {"memory": 12, "half_life": 20.0}),
    ],
)
def test_memory_and_half_life_can_change(
    kind: str, options: dict[str, Any], later: dict[str, Any], tmp_path: Path
) -> None:
    """A state of 50 rewards per arm goes on with another memory, and no reward is lost."""
    policy, after, rng = of_memory(kind, **options), of_memory(kind, **later), np.random.default_rng(0)
    data = [(x, t % 2, y) for t, (x, _, y) in enumerate(rewards(100, 2, 2, seed=4))]
    state = load_state(save_state(tmp_path / "state", fed(policy, data, rng), policy), policy=after)
    held = kept_by(state).tables[:, 0].sum() if "half_life" not in options else None
    means = after.engine.expected_means(state, X)  # type: ignore[attr-defined]
    before = bits(state)
    assert np.isfinite(means).all()
    state = after.update(state, *data[0][:2], data[0][2], rng)
    assert bits(load_state(tmp_path / "state", policy=after)) == before
    for arm in range(2):
        seated = kept_by(state)
        used = seated.tables[arm, 0, : seated.sizes[arm, 0]].sum()
        if held is not None and "half_life" not in later:
            assert used == pytest.approx(51 if arm == 0 else 50)
        assert arm == 1 or len(seated.seats[arm]) <= later.get("memory", 1000)
    for x, _, y in data:
        state = after.update(state, x, after.choose(state, x, rng).arm, y, rng)
    assert all(len(seats) <= later.get("memory", 1000) for seats in kept_by(state).seats)
    state.require_sound()


def test_files_of_the_first_format_are_read_by_their_shapes(tmp_path: Path) -> None:
    policy = pa.make_policy("nonparametric", 2, 2)
    state = fed(policy, rewards(20, 2, 2, seed=0), np.random.default_rng(0))
    path = save_state(tmp_path / "state", state)
    with zipfile.ZipFile(path) as archive:
        members = {n: archive.read(n) for n in archive.namelist()}
    header = json.loads(members["polyarm.json"])
    members["polyarm.json"] = json.dumps({k: header[k] for k in ("kind", "shape")} | {"format": 1}).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for member, content in members.items():
            archive.writestr(member, content)
    loaded = load_state(path, policy=policy)
    assert bits(loaded) == bits(state)
    policy.update(loaded, X, 0, 1.0, np.random.default_rng(0))
    with pytest.raises(BrokenFile):
        load_state(path, pa.make_policy("nonparametric", 3, 2).init())
