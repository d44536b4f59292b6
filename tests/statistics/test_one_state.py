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
def found(n_chains: int) -> Array:
    """Root mean squares of errors over standard deviations, as states claim them and as the rule takes them."""
    both = [[errors_of_run(name, YOUNG, 1, run, n_chains) for run in range(RUNS)] for name in SCENARIOS]
    return np.asarray(np.mean([root_mean_squares(np.array(errors)) for errors in both], axis=0))


def test_the_rule_is_as_unsure_as_it_should_be_of_one_state() -> None:
    assert found(1)[1].mean() == pytest.approx(1.0, abs=0.12)
    np.testing.assert_allclose(found(1)[1], 1.0, atol=0.25)


def test_one_state_is_too_sure_and_the_surer_the_fewer_rewards() -> None:
    claimed = found(1)[0]
    assert claimed.mean() > 1.25
    assert claimed[0] > 1.5 > 1.3 > claimed[2] > 1.1


def test_four_chains_are_nearly_as_unsure_as_they_should_be_and_the_rule_is_no_surer() -> None:
    claimed, ours = found(4)
    assert claimed[0] < 0.9 * found(1)[0][0]
    np.testing.assert_allclose(claimed[1:], 1.0, atol=0.2)
    assert (ours < claimed).all()
    assert 0.7 < ours.mean() < 1.0
