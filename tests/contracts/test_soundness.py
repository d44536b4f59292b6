"""Every rule for states, broken alone: one number one step beyond what is allowed is refused, and named."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from polyarm.errors import CONTEXT_LIMIT, REWARD_LIMIT, InvalidArgument
from polyarm.inference import Budget, GibbsEngine, HierarchicalEngine, load_state, save_state
from polyarm.inference.door import copied, require_sound
from polyarm.inference.state_checks import DATA_LIMIT, ROOT_LIMIT
from polyarm.kernels import sticks, tally
from polyarm.kernels.franchise import books
from polyarm.kernels.mixture.component import COEF, COUNT, LOO, MEAN, SCALE
from polyarm.kernels.mixture.records import NEXT, ROWS
from polyarm.kernels.robust import component as robust_component
from polyarm.kernels.robust.records import SHARED, Features
from polyarm.models import HierarchicalMixture, LinearMixture, NormalInverseGamma
from tests.contracts.corruptions import replaced
from tests.contracts.engines import ENGINES
from tests.contracts.states import bits, fed, rewards, suited

GIBBS, HOUSE, ROBUST, KINDS = "dirichlet, budget", "hierarchical", "robust", "robust, kinds"


def places_of(*names: str) -> list[int]:
    """Entries of a robust state's `hyper` by name; those of a pair follow each other."""
    fields: Any = SHARED.fields
    return [fields[name][1] // 8 + i for name in names for i in range(fields[name][0].itemsize // 8)]


(STEPS,), (ORIGIN,) = places_of("n_steps"), places_of("origin")
CLOUD, SEATING = "clouds.0.", "seatings.0."


def learnt(name: str) -> Any:
    engine = ENGINES[name](3, 2)
    data = rewards(40, 2, 3, seed=0)
    if name == KINDS:
        data = [(x, arm, float(y > 0) if t % 4 else y) for t, (x, arm, y) in enumerate(data)]
    with np.errstate(over="ignore"):  # words of particles wrap around, which plain Python tells of
        return fed(engine, data, np.random.default_rng(0))


@pytest.fixture(scope="module")
def state_of() -> Callable[[str], Any]:
    """A state of an engine, made once."""
    made: dict[str, Any] = {}

    def state(name: str) -> Any:
        if name not in made:
            made[name] = learnt(name)
        return copied(made[name])

    return state


def at(state: Any, path: str) -> Any:
    for name in path.split("."):
        state = state[int(name)] if name.isdigit() else getattr(state, name)
    return state


Change = Callable[[Any], Any]


def entry(index: Any, value: Any) -> Change:
    """One entry becomes another number, or a function of itself."""

    def change(array: Any) -> Any:
        array[index] = value(array) if callable(value) else value
        return array

    return change


def shorter(array: Any) -> Any:
    return np.ascontiguousarray(array[..., :-1])


def fewer(array: Any) -> Any:
    return array[:-1].copy()


def more(index: Any) -> Change:
    return entry(index, lambda array: array[index] + 1)


LIMIT = "must be at most"
BROKEN: list[tuple[str, str, Change, str]] = [  # engine, part of its state, what becomes of it, what the error says
    # roots and counts
    ("conjugate", "roots", entry((2, 0, 1), np.nan), "state.roots must be at most 1e+200 in size"),
    ("conjugate", "roots", entry((2, 2, 2), 1.01 * ROOT_LIMIT), "state.roots must be at most 1e+200 in size"),
    ("conjugate", "roots", entry((1, 1, 1), 0.0), "state.roots must be without zeros on its diagonal"),
    ("conjugate", "counts", entry(1, -1), "state.counts must be from 0"),
    ("beta", "counts", entry((1, 0), -0.5), "state.counts must be finite and above"),
    ("student", "roots", entry((0, 0, 0), 0.0), "state.roots must be without zeros on its diagonal"),
    ("student", "counts", entry(1, 17), "state.counts[1] must be from 0 to 16"),
    ("student", "counts", entry(2, -1), "state.counts[2] must be from 0"),
    ("student", "rows.0", entry((0, 1), 1.1 * 10 * CONTEXT_LIMIT), f"state.rows.0 {LIMIT}"),
    ("student", "rows.0", entry((0, 2), 1.1 * DATA_LIMIT), f"state.rows.0 {LIMIT}"),
    ("student", "rows.1", entry((3, 3), 0.0), "precision in state.rows.1 must be finite and above 0"),
    # generalised linear
    ("poisson", "centres", entry((1, 1), np.inf), "state.centres must be finite"),
    ("poisson", "covariances", entry((1, 0, 1), np.nan), "state.covariances must be finite"),
    ("gamma", "extra", entry(0, np.nan), "state.extra must be finite"),
    ("poisson", "covariances", entry((2, 1, 1), 0.0), "variances in state.covariances must be finite and above 0"),
    ("poisson", "counts", entry(2, 65), "state.counts[2] must be from 0 to"),
    ("poisson", "counts", entry(0, -1), "state.counts[0] must be from 0"),
    ("poisson", "stale", entry(1, lambda stale: 40), "state.stale[1] must be from 0 to"),
    ("poisson", "stale", entry(1, -1), "state.stale[1] must be from 0 to"),
    ("poisson", "rows.0", entry((0, 0), 1.1 * CONTEXT_LIMIT), f"state.rows.0 {LIMIT}"),
    ("poisson", "rows.0", entry((0, 1), 1.1 * CONTEXT_LIMIT), f"state.rows.0 {LIMIT}"),
    ("poisson", "rows.2", entry((0, 2), 1.1 * REWARD_LIMIT), f"state.rows.2 {LIMIT}"),
    # seatings
    (GIBBS, "labels", shorter, "state.labels must be of 16 places as the tables"),
    (GIBBS, "tables", shorter, "state.tables must be"),
    (GIBBS, "sizes", entry((1, 3), -1), "state.sizes must be from 0"),
    (GIBBS, "sizes", entry((1, 0), 17), "state.sizes[:, 0] must be from 0 to 16"),
    (GIBBS, "seats.1", fewer, "state.seats.1 must be of length 16"),
    (GIBBS, "sizes", entry((1, ROWS), 17), "state.sizes[1, ROWS] must be from 0 to 16"),
    (GIBBS, "sizes", entry((1, NEXT), 16), "state.sizes[1, NEXT] must be from 0 to"),
    (GIBBS, "labels", entry((2, 0, 0), 16), "state.labels[2] must be from 0 to 15"),
    (GIBBS, "labels", entry((2, 0, 0), lambda labels: labels[2, 0, 1]), "state.labels[2] must be a permutation"),
    (GIBBS, "labels", entry((2, 1, 0), -1), "state.labels[2] must be"),
    (GIBBS, "data.0", entry((0, 0), 1.1 * 10 * CONTEXT_LIMIT), f"state.data.0 {LIMIT}"),
    (GIBBS, "data.0", entry((0, 1), 1.1 * 10 * CONTEXT_LIMIT), f"state.data.0 {LIMIT}"),
    (GIBBS, "data.0", entry((1, 2), 1.1 * DATA_LIMIT), f"state.data.0 {LIMIT}"),
    (GIBBS, "seats.0", entry(0, 16), "state.seats.0 must be from 0 to 15"),
    (GIBBS, "seats.0", entry(0, -1), "state.seats.0 must be from 0 to 15"),
    (GIBBS, "tables", entry((0, COUNT, 0), 0.0), "count of a component must be finite and above 0"),
    (
        GIBBS,
        "tables",
        entry((0, COUNT, 0), lambda tables: tables[0, COUNT, 0] - 0.5),
        "count of a component must be that",
    ),
    (GIBBS, "sizes", entry((0, 0), 0), "state.seats.0 must be empty where no component is in use"),
    (GIBBS, "laws", entry((1, 1), np.nan), "state.laws must be finite"),
    (GIBBS, "roots", entry((1, 0, 0, 0), 0.0), "state.roots must be without zeros"),
    (GIBBS, "roots", lambda roots: np.repeat(roots, 2, axis=1), "state.roots must be of one place or 16"),
    (GIBBS, "tables", entry((0, SCALE, 0), 0.0), "state.tables[SCALE] must be finite and above 0"),
    (GIBBS, "tables", entry((1, COEF, 0), np.inf), "state.tables[COEF] must be numbers"),
    (GIBBS, "tables", entry((1, LOO, 0), np.nan), "state.tables[COEF] must be numbers"),
    (GIBBS, "tables", entry((1, COEF - 1, 0), np.nan), "state.tables must be finite"),
    (GIBBS, "tables", entry((1, MEAN, 0), -np.inf), "state.tables must be finite"),
    (GIBBS, "tables", entry((1, -1, 0), np.nan), "state.tables must be finite"),
    # the franchise
    (HOUSE, "dishes", shorter, "state.dishes must be"),
    (HOUSE, "labels", shorter, "state.menu must be for 16 dishes"),
    (HOUSE, "menu", fewer, "state.menu must be for 16 dishes"),
    (HOUSE, "guests", shorter, "state.guests must be of (3, "),
    (HOUSE, "z", fewer, "rows of the state must be of one length"),
    (HOUSE, "arm_of", fewer, "rows of the state must be of one length"),
    (HOUSE, "seat", fewer, "rows of the state must be of one length"),
    (HOUSE, "size", entry(0, 17), "state.size[0] must be from 0 to 16"),
    (HOUSE, "size", entry(ROWS, 65), "state.size[ROWS] must be from 0 to 64"),
    (HOUSE, "size", entry(ROWS + 1, 41), "state.size must be from 40 to 40"),
    (HOUSE, "labels", entry((0, 0), 16), "state.labels must be from 0 to 15"),
    (HOUSE, "dishes", entry((SCALE, 0), 0.0), "state.dishes[SCALE] must be finite and above 0"),
    (HOUSE, "data", entry((39, 1), 1.1 * 10 * CONTEXT_LIMIT), f"state.data {LIMIT}"),
    (HOUSE, "data", entry((39, 2), 1.1 * DATA_LIMIT), f"state.data {LIMIT}"),
    (HOUSE, "rules", entry(3, np.nan), "state.rules must be finite"),
    (HOUSE, "z", entry(5, 16), "state.z must be from 0 to 15"),
    (HOUSE, "arm_of", entry(0, 3), "state.arm_of must be from 0 to 2"),
    (HOUSE, "arm_of", entry(0, -1), "state.arm_of must be from 0 to 2"),
    (HOUSE, "arms", entry((1, 0), -1), "state.arms must be from 0"),
    (HOUSE, "arms", entry((1, books.SEEN), 17), "state.arms[:, SEEN] must be from 0 to 16"),
    (HOUSE, "seat", entry(0, 16), "state.seat must be from 0 to 15"),
    (HOUSE, "seat", entry(0, -1), "state.seat must be from 0 to 15"),
    (HOUSE, "guests", more((1, 0)), "state.guests must be the rewards at each table"),
    (HOUSE, "arms", more((1, 0)), "state.arms must be tables, tables seen and rewards"),
    (HOUSE, "arms", more((1, books.SEEN)), "state.arms must be tables, tables seen and rewards"),
    (HOUSE, "arms", more((1, 2)), "state.arms must be tables, tables seen and rewards"),
    (HOUSE, "dish", entry((0, 0), 16), "state.dish must be from 0 to 15"),
    (HOUSE, "dish", entry((0, 0), -1), "state.dish must be from 0 to 15"),
    (HOUSE, "menu", lambda menu: menu + 1, "state.menu must be the tables of each dish"),
    # particles
    ("particles", CLOUD + "table", shorter, "table of a cloud must be"),
    ("particles", CLOUD + "roots", fewer, "roots of a cloud must be"),
    ("particles", CLOUD + "marks", fewer, "roots of a cloud must be"),
    ("particles", CLOUD + "size", entry(0, 0), "particles of a cloud must be from 1 to 20"),
    ("particles", CLOUD + "size", entry(0, 21), "particles of a cloud must be from 1 to 20"),
    ("particles", CLOUD + "size", entry(1, 10_000), "pool of a cloud must be from 0 to"),
    ("particles", CLOUD + "size", entry(2, -1), "rewards of a cloud must be from 0"),
    ("particles", CLOUD + "lengths", entry(0, 10_000), "lengths of a cloud must be from 0 to"),
    ("particles", CLOUD + "members", entry((0, 0), 10_000), "members of a cloud must be from 0 to"),
    ("particles", CLOUD + "members", entry((0, 0), -1), "members of a cloud must be from 0 to"),
    ("particles", CLOUD + "table", entry((SCALE, 0), -1.0), "table of a cloud[SCALE] must be finite and above 0"),
    ("particles", CLOUD + "table", entry((COUNT, 0), 0.0), "counts of a cloud must be finite and above 0"),
    ("particles", CLOUD + "roots", entry((0, 0, 0), 0.0), "roots of a cloud must be without zeros"),
    ("particles", CLOUD + "log_evidence", entry(0, np.nan), "log_evidence of a cloud must be finite"),
    ("particles", CLOUD + "weights", entry(0, 0.0), "weights of a cloud must be finite and above 0"),
    ("particles", CLOUD + "weights", entry(0, lambda w: w[0] + 1e-4), "weights of a cloud must be of sum 1"),
    # soft seatings
    ("variational", SEATING + "table", shorter, "table of a seating must be"),
    ("variational", SEATING + "responsibilities", fewer, "rows of a seating must be 16 of both"),
    ("variational", SEATING + "size", entry(0, 17), "rewards of a seating must be from 0 to 16"),
    ("variational", SEATING + "size", entry(1, 17), "turn of a seating must be from 0 to 16"),
    ("variational", SEATING + "data", entry((0, 1), 1.1 * 10 * CONTEXT_LIMIT), f"data of a seating {LIMIT}"),
    ("variational", SEATING + "data", entry((0, 2), 1.1 * DATA_LIMIT), f"data of a seating {LIMIT}"),
    (
        "variational",
        SEATING + "responsibilities",
        entry((0, 0), np.nan),
        "responsibilities of a seating must be finite",
    ),
    ("variational", SEATING + "responsibilities", more((0, 0)), "responsibilities of a seating must be of sum 1"),
    (
        "variational",
        SEATING + "responsibilities",
        lambda r: r + np.array([1.0, -1.0, *[0.0] * (r.shape[1] - 2)]),
        "responsibilities of a seating must be of sum 1",
    ),
    ("variational", SEATING + "table", entry((SCALE, -1), 0.0), "table of a seating[SCALE] must be finite and above 0"),
    ("variational", SEATING + "table", entry((COUNT, -1), -0.1), "counts of a seating must be at least 0"),
    # the robust model
    (ROBUST, "n_rewards", lambda n: -1, "state.n_rewards must be at least 0"),
    (ROBUST, "centres", entry((1, 0, 3), np.nan), "state.centres must be finite"),
    (ROBUST, "hyper", entry(ORIGIN, np.inf), "state.hyper must be finite"),
    (ROBUST, "columns", entry((0, 0), np.nan), "state.columns must be finite"),
    (ROBUST, "reservoir", entry(0, np.nan), "state.reservoir must be finite"),
    (ROBUST, "tables", entry((0, robust_component.MEAN, 0), np.nan), "state.tables must be finite"),
    (ROBUST, "tables", entry((0, robust_component.VAR, 0), 0.0), "state.tables[VAR] must be finite and above 0"),
    (ROBUST, "centres", entry((1, 2, 2), 0.0), "state.centres must be without zeros on the diagonal"),
    *(
        (ROBUST, "hyper", entry(place, 0.0), "state.hyper must be finite and above 0")
        for place in places_of("arm_var", "part_ratio", "noise_scale", "concentration", "reward_square")
    ),
    *(
        (ROBUST, "hyper", entry(place, -1.0), "state.hyper must be at least 0")
        for place in places_of("n_steps", "scaled", "location_var", "tied_sd", "n_seen")
    ),
    (ROBUST, "hyper", entry(STEPS, 40.5), "state.hyper[STEPS] must be a number of steps"),
    (ROBUST, "hyper", entry(STEPS, 2.0**53), "state.hyper[STEPS] must be a number of steps"),
    *(
        (ROBUST, "columns", entry((row, 1), 0.0), "state.columns must be finite and above 0")
        for row in map(Features._fields.index, ("unit", "arm_var", "part_var"))
    ),
    *(
        (ROBUST, "columns", entry((row, 1), -1.0), "state.columns must be at least 0 where squares are summed")
        for row in map(Features._fields.index, ("square_sum", "n_nonzero", "precision", "spread"))
    ),
    # kinds
    (KINDS, "rest.n_rewards", lambda n: -1, "state.n_rewards must be at least 0"),
    (KINDS, "sticks.guess", fewer, "state.sticks must be one for each of"),
    (KINDS, "sticks.shared", fewer, "state.sticks must be one for each of"),
    *(
        (KINDS, f"sticks.{part}", lambda array: np.where(np.arange(array.size).reshape(array.shape), array, np.nan), m)
        for part, m in ((p, f"state.sticks.{p} must be finite") for p in ("sums", "kept", "shared", "guess", "columns"))
    ),
    (KINDS, "sticks.fits", entry((0, 0, 1, 1), 0.0), "state.sticks.fits must be without zeros on the diagonals"),
    (KINDS, "values", entry(0, np.nan), "state.values must be finite"),
    (KINDS, "values", entry(0, lambda values: values[1]), "state.values must be different"),
    (KINDS, "rest_is", lambda rest: 3, "state.rest_is must be from 0 to 2"),
    (KINDS, "rest_is", lambda rest: -1, "state.rest_is must be from 0 to 2"),
    (KINDS, "n_rewards", lambda n: -1, "state.n_rewards must be at least 0"),
    (KINDS, "constant", lambda value: np.inf, "state.constant must be finite"),
    (KINDS, "data.1", shorter, "state.data.1 must be of"),
    (KINDS, "sticks.sizes", entry((1, sticks.ROWS), 100), "state.sticks.sizes[1, ROWS] must be from 0 to"),
    (KINDS, "sticks.sizes", entry((1, sticks.NEXT), 99), "state.sticks.sizes[1, NEXT] must be from 0 to"),
    (KINDS, "data.0", entry((0, 1), 1.1 * 10 * CONTEXT_LIMIT), f"state.data.0 {LIMIT}"),
    (KINDS, "data.0", entry((0, 3), 1.1 * DATA_LIMIT), f"state.data.0 {LIMIT}"),
    (KINDS, "data.0", entry((0, 4), 0.5), "kinds in state.data.0 must be whole numbers from 0 to 2"),
    (KINDS, "data.0", entry((0, 4), 3.0), "kinds in state.data.0 must be whole numbers from 0 to 2"),
    (KINDS, "data.0", entry((0, 4), -1.0), "kinds in state.data.0 must be whole numbers from 0 to 2"),
    (KINDS, "tally", entry((0, 0), np.nan), "state.tally must be finite"),
    (KINDS, "seen", entry(0, np.inf), "state.seen must be finite"),
    (KINDS, "seen", entry(tally.USED, tally.SLOTS + 1.0), f"slots in use must be from 0 to {tally.SLOTS}"),
    (KINDS, "seen", entry(tally.USED, 2.5), f"slots in use must be from 0 to {tally.SLOTS}"),
    (KINDS, "seen", entry(tally.LOST, -1.0), "state.seen must be at least 0"),
]


@pytest.mark.parametrize("number", range(len(BROKEN)), ids=[f"{i}-{b[0]}-{b[1]}" for i, b in enumerate(BROKEN)])
def test_one_thing_wrong_is_named(number: int, state_of: Callable[[str], Any]) -> None:
    name, path, change, told = BROKEN[number]
    state = state_of(name)
    with np.errstate(all="ignore"):
        state = replaced(state, path.split("."), change(at(state, path)))
        with pytest.raises(InvalidArgument, match=re.escape(told)):
            require_sound(state)


@pytest.mark.parametrize("name", sorted({name for name, *_ in BROKEN}))
def test_scratch_may_hold_anything(name: str, state_of: Callable[[str], Any]) -> None:
    """Places beyond those in use are never read: their content breaks no rule."""
    state = state_of(name)
    require_sound(state)
    if name in (GIBBS, ROBUST):
        state.tables[0, :, int(state.sizes[0, 0]) :] = np.nan
        state.data[0][int(state.sizes[0, ROWS]) :] = np.nan
    elif name == HOUSE:
        state.dishes[:, int(state.size[0]) :] = np.nan
        state.data[int(state.size[ROWS]) :] = np.nan
    elif name == "particles":
        state.clouds[0].table[:, int(state.clouds[0].size[1]) :] = np.nan
    elif hasattr(state, "rows"):
        state.rows[0][int(state.counts[0]) :] = np.nan
    require_sound(state)


def test_every_dish_on_the_menu_is_counted_whatever_its_label(state_of: Callable[[str], Any]) -> None:
    """Labels stay when dishes come and go: those in use may be any, and one table too many of any of them is seen."""
    state = state_of(HOUSE)
    n, other = int(state.size[0]), np.random.default_rng(0).permutation(16)  # the new label of each
    assert n > 1
    state.labels[0] = other[state.labels[0]]
    state.labels[1, state.labels[0]] = np.arange(16)
    state.menu[other] = state.menu.copy()
    state.z[:], state.dish[:] = other[state.z], other[state.dish]
    require_sound(state)
    used = state.labels[0, :n].tolist()
    assert set(used) != set(state.labels[1, :n].tolist())
    for label in used:
        wrong = copied(state)
        wrong.menu[label] += 1
        with pytest.raises(InvalidArgument, match=r"state\.menu must be the tables of each dish"):
            require_sound(wrong)


@pytest.mark.parametrize("name", [HOUSE, GIBBS, ROBUST, "particles", "variational", "student", "poisson"])
def test_states_that_have_grown_are_sound_and_saved(name: str, tmp_path: Path) -> None:
    """More rewards than there is room for at first, in as many components as may be."""
    rng = np.random.default_rng(0)
    engine: Any = ENGINES[name](2, 2)
    if name in (HOUSE, GIBBS):
        base = NormalInverseGamma(2, 0.0, 1.0, 2.0, 0.01)
        law = HierarchicalMixture(base, 1e9, 0.1, 1e9, 0.1)
        engine = (
            HierarchicalEngine(law, 2, 2)
            if name == HOUSE
            else GibbsEngine([LinearMixture(base, 1e9)] * 2, Budget(4, warmup_rewards=0))
        )
    state = engine.init()
    with np.errstate(over="ignore"):
        for t in range(40):
            reward = suited(engine, float(t % 7))
            state = engine.update(state, rng.standard_normal(2), 0, reward, rng)
            require_sound(state)
    if name == HOUSE:
        assert state.size[0] > 16
    loaded = load_state(save_state(tmp_path / "state", state), engine.init())
    assert bits(loaded) == bits(state)
