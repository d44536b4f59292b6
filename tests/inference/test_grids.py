"""Grids, marks, cut points and values that come again, against exact fractions and plain lists."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.special import logit

from polyarm.errors import InvalidArgument
from polyarm.inference import KindsEngine, RobustEngine
from polyarm.inference.amounts import HYPERPRIOR, AmountModel
from polyarm.inference.door import copied
from polyarm.inference.kinds_found import CONSTANT, MIXTURE, UNKNOWN, Found, find_kinds
from polyarm.inference.links import HYPERPRIORS, MARK_GUESS, NEAR, LinkModels, completed, is_due, with_cuts
from polyarm.inference.links_checks import HIGH_LEVEL, MOST_DISPERSED, require_links
from polyarm.inference.links_grid import CELLS, MOST_MARKS, OFF, WATCHED, applicable, common_step, n_cells, place
from polyarm.inference.rounding import snapped
from polyarm.kernels import tally as tallies
from polyarm.kernels.amounts import ON
from polyarm.kernels.generalized import EDGE
from polyarm.kernels.links import ALIVE, FAMILIES, HIGHEST, LAM, LOWEST, MARKS, STATUS, STEP, TAKEN, VARIANCE
from polyarm.kernels.sticks import NONZERO, TOTAL, UNIT
from polyarm.models import RobustMixture


def greatest_step(values: list[Fraction]) -> Fraction:
    """The largest step that all differences are multiples of, in exact arithmetic."""
    gaps = [abs(v - values[0]) for v in values[1:]]
    lcm = math.lcm(*(gap.denominator for gap in gaps), 1)
    return Fraction(math.gcd(*(int(gap * lcm) for gap in gaps)), lcm)


@pytest.mark.parametrize("seed", range(30))
def test_the_grid_is_that_of_exact_fractions(seed: int) -> None:
    rng = np.random.default_rng(seed)
    unit = Fraction(int(rng.integers(1, 9)), int(rng.choice([1, 2, 5, 10, 100])))
    origin = Fraction(int(rng.integers(-50, 50)), int(rng.choice([1, 10])))
    exact = [origin + unit * int(k) for k in rng.integers(0, 12, size=8)]
    grid = np.zeros(ALIVE + FAMILIES)
    for n, value in enumerate(exact, 1):
        before = float(grid[STEP])
        changed = place(grid, float(value))
        step = greatest_step(exact[:n])
        assert changed == (n == 1 or abs(float(step) - before) > 1e-9)
        assert grid[STEP] == pytest.approx(float(step), rel=1e-9, abs=1e-12)
        assert (grid[LOWEST], grid[HIGHEST]) == (float(min(exact[:n])), float(max(exact[:n])))
        assert grid[TAKEN] == n
        if step > 0:
            assert n_cells(grid) == 1 + (max(exact[:n]) - min(exact[:n])) / step
            counts, marks = applicable(grid)
            low, high = min(exact[:n]), max(exact[:n])
            assert counts == (low >= 0 and low % step == 0 and high <= CELLS * step)
            assert marks == (n_cells(grid) <= MOST_MARKS)
    assert grid[STATUS] == WATCHED


@pytest.mark.parametrize("step", [1.0, 0.01, 1e6])
@pytest.mark.parametrize(("cells", "status"), [(CELLS, WATCHED), (CELLS + 1, OFF)])
def test_a_grid_has_at_most_so_many_cells(step: float, cells: int, status: int) -> None:
    grid = np.zeros(ALIVE + FAMILIES)
    for value in (0.0, step, cells * step):
        place(grid, value)
    assert grid[STATUS] == status


def test_a_step_that_rounding_could_make_is_no_grid() -> None:
    for far, status in ((1e8, WATCHED), (1e10, OFF)):  # a million roundings are 0.09 there, and 9
        grid = np.zeros(ALIVE + FAMILIES)
        for value in (far, far + 1.0, far + 3.0):
            place(grid, value)
        assert grid[STATUS] == status


@pytest.mark.parametrize(
    ("one", "other", "step"), [(6.0, 4.0, 2.0), (4.0, 6.0, 2.0), (0.3, 0.1, 0.1), (7.0, 7.0, 7.0), (5.0, 0.0, 5.0)]
)
def test_the_common_step_of_two_lengths(one: float, other: float, step: float) -> None:
    assert common_step(one, other, 1e-9) == pytest.approx(step, rel=1e-6)
    assert common_step(one * (1 + 1e-13), other, 1e-9) == pytest.approx(step, rel=1e-6)


def test_counts_reach_up_to_the_highest_cell() -> None:
    grid = np.zeros(ALIVE + FAMILIES)
    for low, counts in ((0.0, True), (1.0, True), (0.5, False), (-1.0, False)):
        grid[[LOWEST, HIGHEST, STEP]] = low, low + 4.0, 1.0
        assert applicable(grid) == (counts, True)
    for high, counts in ((CELLS, True), (CELLS + 1, False)):
        grid[[LOWEST, HIGHEST, STEP]] = high - 10.0, high, 1.0
        assert applicable(grid) == (counts, True)
    grid[[LOWEST, HIGHEST, STEP]] = 0.0, MOST_MARKS, 1.0
    assert applicable(grid) == (True, False)


def counted(values: list[float]) -> tuple[Any, Any]:
    tally, seen = np.zeros((tallies.SLOTS, 2)), np.zeros(3)
    for value in values:
        tallies.count_value(tally, seen, value)
    return tally, seen


@pytest.mark.parametrize(
    ("times", "others", "already", "is_kind"),
    [
        (6, 14, False, True),  # 30 % of 20
        (5, 15, False, False),
        (4, 9, False, True),  # four of 13
        (3, 6, False, False),  # a third, but three are too few
        (3, 17, True, False),  # 15 %, but three are too few
        (6, 34, True, True),  # 15 % of 40 are enough to stay
        (5, 35, True, False),
        (6, 34, False, False),
    ],
)
def test_a_kind_holds_a_share_of_the_rewards(times: int, others: int, already: bool, is_kind: bool) -> None:
    tally, seen = counted([7.0] * times + [0.1 + k / 997 for k in range(others)])
    found = find_kinds(tally, seen, np.array([7.0]) if already else np.zeros(0))
    assert found == Found((7.0,) if is_kind else (), MIXTURE, 0.0)


def test_what_was_lost_from_the_tally_counts_for_a_kind() -> None:
    tally, seen = counted([7.0] * 10 + [1.0] * 4 + [2.0, 3.0, 4.0, 5.0])
    seen[tallies.N] += 14
    seen[tallies.LOST] = 0.0
    assert find_kinds(tally, seen, np.zeros(0)).values == (7.0,)  # 10 of 32
    seen[tallies.LOST] = 6.0
    assert find_kinds(tally, seen, np.zeros(0)) == Found((7.0, 1.0), MIXTURE, 0.0)  # 4 + 6 of 32


def test_few_values_are_kinds_and_the_last_is_the_rest() -> None:
    for values, found in (
        ([5.0], Found((), MIXTURE, 0.0)),
        ([5.0, 5.0], Found((5.0,), UNKNOWN, 0.0)),
        ([5.0, 5.0, 2.0], Found((5.0,), CONSTANT, 2.0)),
        ([5.0, 5.0, 2.0, 2.0, 2.0], Found((2.0,), CONSTANT, 5.0)),  # most frequent first, and one of two is the rest
        ([5.0, 5.0, 2.0, 2.0, 2.0, 1.0], Found((2.0, 5.0), CONSTANT, 1.0)),
        ([5.0, 5.0, 2.0, 1.0], Found((5.0,), MIXTURE, 0.0)),
        ([5.0, 5.0, 2.0, 2.0, 1.0, 0.0], Found((), MIXTURE, 0.0)),
    ):
        assert find_kinds(*counted(values), np.zeros(0)) == found


def test_what_lies_beyond_all_values_has_what_is_left_of_the_mean() -> None:
    shares, values = np.array([0.5, 0.3, 9.9]), np.array([0.0, 1.0, 2.0])
    share, at = completed(shares, values, 1.1)
    np.testing.assert_allclose(share, [0.5, 0.3, 0.2])
    np.testing.assert_allclose(at, [0.0, 1.0, 4.0])
    assert share @ at == pytest.approx(1.1)
    share, at = completed(np.array([[0.6, 0.6, 0.0]]), values, np.array([1.0]))  # rounding left more than all
    np.testing.assert_allclose(share, [[0.6, 0.6, 0.0]])
    np.testing.assert_allclose(at, [values])
    share, at = completed(shares, values, 0.1)  # a mean below what the values say
    np.testing.assert_allclose(at, values)
    assert shares.tolist() == [0.5, 0.3, 9.9]
    for off in (-2e-16, 2e-16, 1e-14):  # a mean that differs by rounding moves nothing
        assert completed(np.array([0.5, 0.49999, 0.00001]), 1e6 * values, 500_010.0 * (1 + off))[1][-1] == 2e6


def test_values_near_a_reward_are_that_reward() -> None:
    values = np.array([0.1, 0.2, 0.30000000000000004, 0.4])
    assert snapped(values, np.array([0.3, 9.0]), NEAR * 0.1).tolist() == [0.1, 0.2, 0.3, 0.4]
    assert snapped(values, np.array([0.31]), NEAR * 0.1).tolist() == values.tolist()


@pytest.mark.parametrize("n", [1, 2, 3, 10, 100, 1000, 4096])
def test_cut_points_are_fitted_ten_times_per_doubling(n: int) -> None:
    due = sum(is_due(k) for k in range(n + 1, 2 * n + 1))
    assert due == min(n, 10) or (n <= 16 and due <= 10)
    assert is_due(1)
    assert all(is_due(2**k) for k in range(1, 12))


def stars() -> tuple[KindsEngine, Any]:
    """An engine that takes rewards for marks from 1 to 5, some of which may be counts."""
    kinds, rng = KindsEngine(RobustEngine(RobustMixture(2, 1), 4, 2)), np.random.default_rng(0)
    state = kinds.init()
    for t in range(40):
        state = kinds.update(state, rng.standard_normal(1), t % 2, float(rng.integers(1, 6)), rng)
    return kinds, state


def test_cut_points_are_log_odds_and_old_ones_stay() -> None:
    _, state = stars()
    links, marks = state.links, state.links.models.grid
    none = links._replace(models=links.models._replace(cuts=np.zeros(0)))
    values = np.array([1.0, 1.0, 2.0, 3.0, 5.0, 5.0, 5.0])
    counts = np.array([2, 1, 1, 0, 3]) + MARK_GUESS
    fresh = logit(np.cumsum(counts)[:-1] / counts.sum())
    np.testing.assert_allclose(with_cuts(none, values).models.cuts, fresh)
    assert marks[LOWEST] == 1.0
    old = np.array([-0.3, 0.9])
    short = links._replace(models=links.models._replace(cuts=old))
    above = with_cuts(short, values).models.cuts
    np.testing.assert_allclose(above, [*old, *(fresh[2:] - fresh[1] + old[1])])
    below = with_cuts(short, values, below=True).models.cuts
    np.testing.assert_allclose(below, [*(fresh[:2] - fresh[2] + old[0]), *old])


def put(part: str, place: Any, value: Any) -> Any:
    def change(links: Any) -> None:
        target = links.models if part in links.models._fields else links
        getattr(target, part)[place] = value

    return change


CUTS = np.array([-1.0, -0.5, 0.0, 0.5])
TAKEN_OR_NOT: list[tuple[Any, str | None]] = [
    (put("cuts", slice(None), [-2 * EDGE, -0.5, 0.0, 2 * EDGE]), None),
    (put("cuts", slice(None), [-2.01 * EDGE, -0.5, 0.0, 0.5]), "cuts must be rising"),
    (put("cuts", slice(None), [-1.0, -0.5, 0.0, 2.01 * EDGE]), "cuts must be rising"),
    (put("cuts", slice(None), [-1.0, -0.5, -0.5, 0.5]), "cuts must be rising"),
    (put("grid", HIGHEST, 6.0), "cuts must be one per step"),
    (put("grid", HIGHEST, 4.0), "cuts must be one per step"),
    (put("grid", STEP, -1.0), "grid must be on with a step above 0"),
    (put("grid", STATUS, OFF), "grid must be on with a step above 0"),
    (put("grid", STATUS, 0.5), "grid must be on or off"),
    (put("level", 0, 0.0), None),
    (put("level", 0, MOST_DISPERSED), None),
    (put("level", 0, 1.01 * MOST_DISPERSED), "dispersion must be from 0 to"),
    (put("level", 0, -0.01), "dispersion must be from 0 to"),
    (put("level", 1, HIGH_LEVEL), None),
    (put("level", 1, -HIGH_LEVEL), None),
    (put("level", 1, -1.01 * HIGH_LEVEL), "level must be at most"),
    (put("weights", slice(None), [1.0, 0.0, 0.0]), None),
    (put("weights", slice(None), [0.5, 0.5, 0.1]), "weights must be probabilities"),
    (put("weights", slice(None), [0.5, 0.7, -0.2]), "weights must be probabilities"),
    (put("dispersions", slice(None), 0.2), "dispersions must be probabilities"),
    (put("columns", (NONZERO, 0), 0.0), None),
    (put("columns", (NONZERO, 0), -1.0), "columns must be counts of at least 0"),
    (put("columns", (TOTAL, 0), -5.0), None),
    (put("columns", (UNIT, 0), 0.0), "columns must be finite and above 0"),
    (put("sums", (0, 0, 0), 0.0), None),
    (put("sums", (0, 0, 0), -0.1), "sums must be counts of at least 0"),
    (put("fits", (1, 1, 0, 0), 0.0), "diagonals of state.links.fits must be finite and above 0"),
    (put("fits", (1, 1, 0, 0), -1.0), "diagonals of state.links.fits must be finite and above 0"),
]


@pytest.mark.parametrize("number", range(len(TAKEN_OR_NOT)))
def test_a_state_of_marks_is_sound_up_to_its_limits(number: int) -> None:
    _, state = stars()
    links = copied(state.links)
    links.models.cuts[:] = CUTS
    require_links(links)
    change, refusal = TAKEN_OR_NOT[number]
    change(links)
    if refusal is None:
        require_links(links)
        return
    with pytest.raises(InvalidArgument, match=refusal):
        require_links(links)


def test_models_that_are_none_have_no_weight_and_one_model_has_all() -> None:
    kinds, state = stars()
    links = copied(state.links)
    links.models.grid[ALIVE + MARKS] = 0.0
    with pytest.raises(InvalidArgument, match=r"state\.weights must be 0 where a model is none"):
        require_links(links)
    links.weights[:] = 0.5, 0.5, 0.0
    require_links(links)
    for step, cells in ((1.0, True), (4.0 / (CELLS + 1), True), (4.0 / (CELLS + 2), False)):
        links.models.grid[[LOWEST, HIGHEST, STEP]] = 1e-9, 4.0 + 1e-9, step
        if cells:
            links.models.grid[ALIVE] = 0.0
            links.weights[:] = 1.0, 0.0, 0.0
            require_links(links)
        else:
            with pytest.raises(InvalidArgument, match=r"cells of state\.links\.grid must be 0 to"):
                require_links(links)
    off = kinds.init().links
    require_links(off)
    off.weights[:] = 0.9, 0.1, 0.0
    with pytest.raises(InvalidArgument, match=r"state\.weights must be 1 where there is one model"):
        require_links(off)


def test_counts_are_no_more_than_the_cells() -> None:
    _, state = stars()
    links = copied(state.links)
    links.models.grid[ALIVE + MARKS] = 0.0
    links.weights[:] = 0.5, 0.5, 0.0
    for low, fine in ((CELLS - 3.0, True), (CELLS - 2.0, False), (-3.0, True), (-5.0, False)):
        links.models.grid[[LOWEST, HIGHEST, STEP]] = low, low + 4.0, 1.0
        if fine:
            require_links(links)
        else:
            with pytest.raises(InvalidArgument, match="largest count must be 0 to"):
                require_links(links)


def test_what_the_arms_share_begins_at_the_middle_of_its_prior() -> None:
    """Of lam scale / shape, of slopes and heights that and the variance of their centre, for counts, marks, amounts."""
    counted = LinkModels(2, 3)._empty(np.zeros(ALIVE + FAMILIES), FAMILIES).models.guess
    paid = AmountModel(2, 3).init(ON).model.guess
    for guess, hyperprior in ((counted[0], HYPERPRIORS[0]), (counted[1], HYPERPRIORS[1]), (paid, HYPERPRIOR)):
        slope, height, slope_scale, height_scale, slope_var, height_var = hyperprior[:6]
        np.testing.assert_allclose(guess[LAM], [*[slope_scale / slope] * 3, height_scale / height])
        spread = [*[slope_scale / slope + slope_var] * 3, height_scale / height + height_var]
        np.testing.assert_allclose(guess[VARIANCE], spread)
        assert not guess[0].any()
