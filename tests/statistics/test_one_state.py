"""What the exploration rule takes for the spread of a young arm's mean is as wide as the truth is far off."""

import functools

import numpy as np
import pytest
from benchmarks.one_state import errors_of_run, root_mean_squares

from polyarm.types import Array

YOUNG = (2, 5, 10)  # rewards of every arm
SCENARIOS = ("mixture-b", "heavy-tailed")
RUNS = 150


@functools.cache
def found() -> Array:
    """Root mean squares of errors over standard deviations, as one state claims them and as the rule takes them."""
    both = [[errors_of_run(name, YOUNG, 1, run) for run in range(RUNS)] for name in SCENARIOS]
    return np.asarray(np.mean([root_mean_squares(np.array(errors)) for errors in both], axis=0))


def test_the_rule_is_as_unsure_as_it_should_be() -> None:
    assert found()[1].mean() == pytest.approx(1.0, abs=0.12)
    np.testing.assert_allclose(found()[1], 1.0, atol=0.25)


def test_one_state_is_too_sure_and_the_surer_the_fewer_rewards() -> None:
    claimed = found()[0]
    assert claimed.mean() > 1.25
    assert claimed[0] > 1.5 > 1.3 > claimed[2] > 1.1
