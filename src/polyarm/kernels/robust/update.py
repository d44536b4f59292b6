"""One reward into the robust mixture: moves in its arm and in another, then everything the arms share (records.py)."""

import math
from typing import NamedTuple

from polyarm.kernels._jit import RngHandle, inlined, kernel, no_refcount, rng_from
from polyarm.kernels.linalg.triangle import WIDE
from polyarm.kernels.mixture.forgetting import FORGOTTEN
from polyarm.kernels.mixture.records import K_USED, NEXT, ROWS, close_slot
from polyarm.kernels.robust.centre import draw_centre, draw_slopes, find_centre, find_centres
from polyarm.kernels.robust.component import COUNT, VAR, fade, keep, recount, shift_rewards, squared_errors
from polyarm.kernels.robust.evidence import LAM, N_SCALES, propose_noise, propose_scales
from polyarm.kernels.robust.moves import make_moves, move
from polyarm.kernels.robust.records import (
    Arm,
    Arms,
    Books,
    Rewards,
    Room,
    Solver,
    arm_of,
    arms_of,
    n_features,
    room_for,
)
from polyarm.kernels.robust.repair import is_finite, is_finite_in
from polyarm.kernels.robust.shared import draw_inverse_gamma, draw_shape, draw_shared, least_noise, set_variances
from polyarm.kernels.robust.solving import solve_all, solve_arms
from polyarm.kernels.robust.units import (
    REFUSED,
    RESERVOIR,
    is_measured,
    is_usable,
    update_units,
    with_intercept,
)
from polyarm.types import Array, IntArray, Rng

MANY = 14  # features from which what the arms share is drawn once in a round of the arms
LONGEST = 8  # steps between such draws, however many arms there are: scales that lag cost regret
LATE = (
    64  # rewards per arm from which scales are known: such draws are made once in LONGEST steps, and moves are halved
)
NO_ARM = -1
FEW = 16  # rewards of an arm below which nothing is spared: what is believed of it is mostly scales
FIRST = 8  # steps at which nothing is thinned out
DEEP = 6  # scales are drawn without slopes in one of (arms x features / 6) steps, at most every second
UNITS, ADD, MOVE_HERE, MOVE_THERE, DONE, FAILED = 0, 1, 2, 3, 4, 5  # stages of an update


class Reward(NamedTuple):
    """A reward that has come in, and the other arm whose rewards move too, or the same again; then the rewards of both
    arms with their labels.
    """

    arm: int
    other: int
    x: Array
    y: float
    data: Array
    z: IntArray
    other_data: Array
    other_z: IntArray


@no_refcount
def redraw_arm(arms: Arms, arm: int, deep: bool, solver: Solver, rng: Rng) -> None:
    """Draw an arm's centre, then every component's slopes, then their noise variances.

    deep: U and V are out of date, and noise variances are first drawn without slopes.
    """
    T, K, centre, features = arms.components[arm], arms.sizes[arm, K_USED], arms.centres[arm], arms.features
    b, least, D = arms.shared.noise_scale, least_noise(arms.shared), n_features(arms)
    R, w0 = features.part_var, solver.row
    if deep:
        solve_all(T, K, centre[:, D + 1], R, solver)
    find_centre(T, K, centre, features, solver)
    draw_centre(centre, solver.v, rng)
    for j in range(D):
        w0[j] = centre[j, D + 1]
    for k in range(K):
        if deep:
            propose_noise(T, k, w0, arms, solver, rng)
        draw_slopes(T, k, w0, R, solver, rng)
        a = draw_shape(T[VAR, k] / b, arms.prior, rng)
        shape, scale = a + 0.5 * T[COUNT, k], b + 0.5 * squared_errors(T, k, D)
        T[VAR, k] = max(draw_inverse_gamma(shape, scale, rng), least)


@no_refcount
def update_centre(arms: Arms, arm: int, solver: Solver) -> None:
    """Bring the posterior of an arm's centre up to date with its components."""
    find_centre(arms.components[arm], arms.sizes[arm, K_USED], arms.centres[arm], arms.features, solver)


@no_refcount
def rebuild_posteriors(arms: Arms, solver: Solver) -> None:
    """Bring U and V of every component and the posterior of every arm's centre up to date with the shared values."""
    set_variances(arms.shared, arms.features, arms.prior)
    D, A = n_features(arms), arms.sizes.shape[0]
    for arm in range(A):
        if arms.prior.shared_centre == 0.0 or arms.sizes[arm, K_USED] == 0:
            for j in range(D):
                arms.centres[arm, j, D + 1] = arms.features.centre[j]
    if D < WIDE:
        solve_arms(arms, solver)
        find_centres(arms, solver)
        return
    for arm in range(A):
        T, K, centre = arms.components[arm], arms.sizes[arm, K_USED], arms.centres[arm]
        solve_all(T, K, centre[:, D + 1], arms.features.part_var, solver)
        find_centre(T, K, centre, arms.features, solver)


@kernel
def rebuild(books: Books) -> None:
    """Bring every arm of the books up to date with the shared values."""
    arms = arms_of(books)
    rebuild_posteriors(arms, room_for(arms).solver)


@inlined
def is_late(arms: Arms, without: int) -> bool:
    """Whether so much is known of the scales, and of every arm with rewards but one, that a step may do less; never
    where the past fades.
    """
    n_known, shared, prior = 0, arms.shared, arms.prior
    for arm in range(arms.sizes.shape[0]):
        n = arms.sizes[arm, ROWS]
        if n > 0 and arm != without:
            if n < FEW:
                return False
            n_known += 1
    fades = prior.window > 0.0 or (prior.fixed_units == 0.0 and shared.n_seen < shared.n_steps)
    return bool(not fades and n_known > 0 and shared.n_steps >= LATE * n_known)


@inlined
def period(arms: Arms) -> int:
    """Steps between draws of what the arms share: with many features a round of the arms, because each must be solved
    then, and as many as the settings ask for where other chains do their part.
    """
    often = min(arms.sizes.shape[0], LONGEST) if n_features(arms) >= MANY else 1
    return LONGEST if is_late(arms, NO_ARM) else max(often, int(arms.prior.thinning))


@inlined
def is_deep(arms: Arms) -> bool:
    """Whether scales are drawn with centres and slopes integrated out at this step: a share of the steps that falls
    with arms and columns, so that its cost stays below a third of all.
    """
    n, between = arms.shared.n_steps, max(2, arms.sizes.shape[0] * n_features(arms) // DEEP)
    thinning = int(arms.prior.thinning)
    if is_late(arms, NO_ARM):
        between = LONGEST * max(2, between // 2)
    else:
        between *= thinning
    if n < RESERVOIR:
        return bool(n < FIRST or int(n) % thinning == 0)
    return bool(int(n) % between == 0)


@inlined
def is_whole(arms: Arms) -> bool:
    """Whether the arms are redrawn and draw what they share at this step, as when the units are new."""
    n = int(arms.shared.n_steps)
    return bool(n % period(arms) == 0 or is_measured(n, int(arms.prior.window)) or is_deep(arms))


@no_refcount
def redraw_shared(arms: Arms, arm: int, other: int, whole: bool, room: Room, rng: Rng) -> None:
    """Redraw arms, draw what they share and bring all up to date; where it is not to be whole, only find the centres
    of the two arms that moved: their components are as the moves left them.

    Where scales were drawn without slopes, every arm is redrawn.  An arm alone is part of a round over all arms.
    """
    if not whole:
        update_centre(arms, arm, room.solver)
        if other != arm:
            update_centre(arms, other, room.solver)
        return
    deep = is_deep(arms)
    moved = deep and arms.prior.learned > 0.0 and propose_scales(arms, LAM, N_SCALES, room, rng)
    round_goes_on = other == arm > 0  # arms that waited since the last whole step were redrawn with the first one
    came_late = arms.sizes[arm, ROWS] == 1 and is_late(arms, arm)  # with its first reward steps are late no more
    waited = (period(arms) > 1 or came_late) and arms.shared.n_steps >= RESERVOIR and not round_goes_on
    for i in range(arms.sizes.shape[0]):
        if arms.sizes[i, K_USED] > 0 and (moved or waited or i in (arm, other)):
            redraw_arm(arms, i, deep, room.solver, rng)
    draw_shared(arms, rng)
    rebuild_posteriors(arms, room.solver)


@no_refcount
def moves_of(arm: Arm, arms: Arms, n_moves: int, room: Room, rng: Rng) -> int:
    """Move rewards of an arm, at most 4 n times; return how many moves are left where no slot was free."""
    return make_moves(arm, arms, min(n_moves, 4 * arm.size[ROWS]), room, rng)


@inlined
def add_reward(arm: Arm, arms: Arms, reward: Reward, room: Room, rng: Rng) -> None:
    """Write a reward to its arm's next row and seat it; a reward that had the row stays put for good.

    An arm without a reward draws its centre.
    """
    size, data, features = arm.size, arm.data, arms.features
    D, i = n_features(arms), size[NEXT]
    if i < size[ROWS]:
        keep(arm.components, arm.slot[arm.z[i]], data, i)
    with_intercept(reward.x, features, data[i])
    data[i, D] = reward.y - arms.shared.origin
    if size[K_USED] == 0 and arms.prior.shared_centre > 0.0:
        for j in range(D):
            arm.w0[j] = features.centre[j] + math.sqrt(features.arm_var[j]) * rng.standard_normal()
    move(arm, arms, i, True, room, rng)
    size[ROWS] = max(size[ROWS], i + 1)
    size[NEXT] = i + 1


@kernel
def renew_units(arms: Arms, reservoir: Array, reward: Reward, solver: Solver, rng: Rng) -> bool:
    """Take a reward into the units; tell whether rewards and columns may be counted from where they are."""
    changed = update_units(arms, reservoir, reward.x, reward.y, rng)
    if changed and arms.shared.off_centre == 0.0:
        rebuild_posteriors(arms, solver)
    return bool(arms.shared.off_centre == 0.0)


@no_refcount
def add_and_move(
    arms: Arms, arm: Arm, other: Arm, reward: Reward, stage: int, n_moves: tuple[int, int], room: Room, rng: Rng
) -> tuple[int, int]:
    """Add a reward and move others, from the stage that was reached; return the stage reached and the moves left."""
    left, n_other = n_moves
    if stage == ADD:
        add_reward(arm, arms, reward, room, rng)
    if stage <= MOVE_HERE:
        left = moves_of(arm, arms, left, room, rng)
        if left > 0:
            return MOVE_HERE, left
        left = n_other
    if reward.other != reward.arm:
        left = moves_of(other, arms, left, room, rng)
        if left > 0:
            return MOVE_THERE, left
    redraw_shared(arms, reward.arm, reward.other, reward.other == reward.arm or is_whole(arms), room, rng)
    return DONE, 0


@inlined
def has_room_for(books: Books, reward: Reward) -> bool:
    """Whether a row is free for a reward, and slots for both proposals of its component."""
    size = books.sizes[reward.arm]
    return bool(size[NEXT] < reward.z.shape[0] and size[K_USED] + 2 <= books.components.shape[2])


@kernel
def update(books: Books, reward: Reward, stage: int, n_moves: tuple[int, int], handle: RngHandle) -> tuple[int, int]:
    """Take a reward in, from the stage that was reached; return the stage reached and the moves left in it.

    REFUSED: the context is none, and nothing has changed.  UNITS: there is no room for the reward, and nothing has
    changed.  ADD: rewards or columns must be counted from elsewhere first.  A stage with moves left: an arm has no slot
    free.  Make it so and call again.  FAILED: some number is not finite.  Begun at MOVE_HERE with one arm alone, no
    reward is taken in: its rewards move, and all that is shared is drawn again.
    """
    rng, arms = rng_from(handle), arms_of(books)
    room, again = room_for(arms), stage != UNITS
    if stage == UNITS:
        if not is_usable(reward.x):
            return REFUSED, 0
        if not has_room_for(books, reward):
            return UNITS, n_moves[0]
        if not renew_units(arms, books.reservoir, reward, room.solver, rng):
            return ADD, n_moves[0]
        stage = ADD
        if is_late(arms, NO_ARM):
            n_moves = (n_moves[0] // 2, n_moves[1] // 2)
    arm = arm_of(books, reward.arm, Rewards(reward.data, reward.z))
    other = arm_of(books, reward.other, Rewards(reward.other_data, reward.other_z))
    stage, left = add_and_move(arms, arm, other, reward, stage, n_moves, room, rng)
    if stage == DONE:
        whole = again or is_whole(arms)
        finite = is_finite(books) if whole else is_finite_in(books, reward.arm, reward.other)
        stage = DONE if finite else FAILED
    return stage, left


@kernel
def random_moves(books: Books, rewards: Rewards, arm: int, n_moves: int, handle: RngHandle) -> int:
    """Move rewards of an arm; return how many moves are left where no slot was free."""
    arms = arms_of(books)
    return moves_of(arm_of(books, arm, rewards), arms, n_moves, room_for(arms), rng_from(handle))


@kernel
def count_from(T: Array, label: IntArray, K: int, rewards: Rewards, n: int, shift: Array) -> None:
    """Count an arm's columns and rewards from elsewhere: `shift` (D,) is what they lose, the rewards' last."""
    D, data = shift.shape[0], rewards.data
    for i in range(n):
        for j in range(D - 1):
            data[i, j] -= shift[j]
        data[i, D] -= shift[D - 1]
    for k in range(K):
        shift_rewards(T, k, shift)
        recount(T, k, data, rewards.z, n, label[k])


@kernel
def forget(books: Books, share: float) -> None:
    """Let only a share of every arm's past remain, for good, and drop the components that hold next to nothing."""
    arms = arms_of(books)
    D, features = n_features(arms), arms.features
    arms.shared.n_seen *= share
    for j in range(D):
        features.spread[j] *= share
        features.square_sum[j] *= share
        features.n_nonzero[j] *= share
    for arm in range(arms.components.shape[0]):
        T, size = arms.components[arm], arms.sizes[arm]
        size[ROWS] = size[NEXT] = 0
        for k in range(size[K_USED] - 1, -1, -1):
            fade(T, k, D, share)
            if T[COUNT, k] <= FORGOTTEN:
                close_slot(T, books.slots[arm, 0], books.slots[arm, 1], size, k)
    rebuild_posteriors(arms, room_for(arms).solver)
