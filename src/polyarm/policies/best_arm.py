"""The probability that each arm is the best one."""

from typing import Any, NamedTuple

import numpy as np

from polyarm.choosing import win_shares
from polyarm.errors import InvalidArgument, require_count
from polyarm.models.objectives import MEAN
from polyarm.policies.objective import draw_worths, objective_of
from polyarm.types import AnyEngine, AnyPolicy, Array, Rng


class BestArm(NamedTuple):
    """Probability of being best of every arm, and the standard error of that Monte Carlo estimate, both (n_arms,)."""

    probability: Array
    standard_error: Array


def engine_of(policy: AnyPolicy, state: Any) -> tuple[AnyEngine, Any]:
    """The engine inside a policy, with its state, whatever is wrapped around it."""
    inner: Any = policy
    if not hasattr(policy, "engine"):
        raise InvalidArgument(f"policy must be one with an engine, got {type(policy).__name__}")
    return inner.engine, policy.engine_state(state)


def probability_best(source: AnyPolicy | AnyEngine, state: Any, context: Array, n_draws: int, rng: Rng) -> BestArm:
    """How often each arm is best among joint posterior draws: what Thompson sampling plays it with.

    `source` is a policy with an engine, or an engine; `state` is its state.  Best is best by the policy's objective.

    >>> import numpy as np
    >>> from polyarm import make_policy
    >>> policy, rng = make_policy("linear", 2, 1), np.random.default_rng(0)
    >>> found = probability_best(policy, policy.init(), np.ones(1), 100, rng)
    >>> round(float(found.probability.sum()), 9)
    1.0
    """
    given: Any = source
    asked = hasattr(source, "choose")
    engine, inner = engine_of(given, state) if asked else (given, state)
    objective = objective_of(given) if asked else MEAN
    draws = draw_worths(engine, inner, context, objective, require_count(n_draws, "n_draws"), rng)
    share = win_shares(draws)
    pulled_in = (share * n_draws + 1) / (n_draws + 2)  # Agresti-Coull: a share of 0 or 1 is not known without error
    return BestArm(share, np.sqrt(pulled_in * (1 - pulled_in) / n_draws))
