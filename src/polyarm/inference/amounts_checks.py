"""What the model of amounts asks of a state, and how it changes its memory."""

from typing import TYPE_CHECKING

from polyarm.errors import require
from polyarm.inference.generalized import GAMMA_SHAPES
from polyarm.inference.links_checks import require_shares
from polyarm.inference.migration import fit_sums
from polyarm.inference.state_checks import require_above, require_numbers, require_range, require_rewards
from polyarm.kernels import amounts as kernels
from polyarm.kernels.amounts import AMOUNT_UNIT, GAMMA_SHAPE, HIGHEST, OFF, ON, ORIGIN, STATUS, WAITING
from polyarm.kernels.links import LAM, VARIANCE
from polyarm.kernels.sticks import NONZERO, UNIT

if TYPE_CHECKING:
    from polyarm.inference.amounts import AmountState


def require_amounts(state: "AmountState") -> None:
    """Raise unless every amount has a row, and all numbers are finite and in their ranges."""
    model = state.model
    for name in ("sums", "kept", "fits", "guess", "level", "columns"):
        require_numbers(getattr(model, name), f"state.amounts.{name}")
    status = float(model.level[STATUS])
    require(status in (WAITING, OFF, ON), "state.amounts.level", "waiting, off or on", status)
    lengths, arms = {len(model.sums), len(model.kept), len(model.fits)}, len(model.sizes) if status == ON else 0
    require(lengths == {arms}, "state.amounts", f"of {arms} arms", lengths)
    for name in ("weights", "density_weights"):
        weights = getattr(state, name)
        require_shares(weights, f"state.amounts.{name}")
        require(status == ON or float(weights[0]) == 1.0, f"state.amounts.{name}", "1 alone", weights)
    require_above(model.columns[UNIT], 0.0, "state.amounts.columns")
    require(bool((model.columns[NONZERO] >= 0).all()), "state.amounts.columns", "counts of at least 0", model.columns)
    require_above(model.guess[[VARIANCE, LAM]], 0.0, "variances in state.amounts.guess")
    require_above(model.level[[HIGHEST]], 0.0, "largest amount")
    require(float(model.level[AMOUNT_UNIT]) != 0.0, "unit of amounts", "other than 0", 0.0)
    low, high = GAMMA_SHAPES
    shape = float(model.level[GAMMA_SHAPE])
    require(low <= shape <= high, "shape of amounts", f"from {low:g} to {high:g}", shape)
    D = model.fits.shape[1]
    require_above(model.fits[:, range(D), range(D)], 0.0, "diagonals of state.amounts.fits")
    require(bool((model.sums[:, 0] >= 0).all()), "state.amounts.sums", "counts of at least 0", model.sums[:, 0])
    for a, (rows, size) in enumerate(zip(state.data, model.sizes, strict=True)):
        require_range(size[:1], 0, len(rows), f"state.amounts.sizes[{a}, ROWS]")
        require_range(size[1:], 0, int(size[0]), f"state.amounts.sizes[{a}, NEXT]")
        used = rows[: size[0]]
        require_rewards(used, D - 1, f"state.amounts.data.{a}")
        require_above((used[:, D] - model.level[ORIGIN]) / model.level[AMOUNT_UNIT], 0.0, f"amounts of arm {a}")


def migrated(state: "AmountState", memory: int | None) -> "AmountState":
    """The state for another memory, with sums of its own; amounts beyond the memory stay in the sums for good."""
    if len(state.model.sums) == 0:
        return state
    model, data = fit_sums(state.model, state.data, memory, kernels.recount)
    return state._replace(model=model, data=data)
