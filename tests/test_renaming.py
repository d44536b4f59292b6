"""Settings with new names: the old ones are taken, warned of, and stay in files."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from polyarm import load_state, make_policy, save_state
from polyarm.errors import InvalidArgument
from polyarm.inference import Budget, RobustEngine, VariationalEngine
from polyarm.inference.door import KEEPING, described
from polyarm.models import LinearMixture, NormalInverseGamma, RobustMixture
from polyarm.policies import OptimisticSampling

ROBUST = RobustMixture(2, 1)
ARMS = [LinearMixture(NormalInverseGamma(1))] * 2
RENAMED: list[tuple[Any, dict[str, Any], str, str, Any]] = [
    (Budget, {}, "young", "warmup_rewards", 7),
    (RobustMixture, {"n_arms": 2, "context_dim": 1}, "wide", "centre_var", 2.5),
    (RobustEngine, {"model": ROBUST}, "moves_elsewhere", "other_arm_moves", 3),
    (VariationalEngine, {"arms": ARMS}, "opening", "open_threshold", 0.4),
    (OptimisticSampling, {"engine": RobustEngine(ROBUST)}, "temper", "draw_scale", 0.7),
]


@pytest.mark.parametrize(("kind", "others", "old", "new", "value"), RENAMED)
def test_old_names_are_taken_with_a_warning(kind: Any, others: Any, old: str, new: str, value: Any) -> None:
    with pytest.warns(DeprecationWarning, match=f"`{old}` is now called `{new}`"):
        made = kind(**others, **{old: value})
    assert getattr(made, new) == getattr(kind(**others, **{new: value}), new) == value
    with pytest.warns(DeprecationWarning, match=f"`{old}` is now called `{new}`"):
        assert getattr(made, old) == value
    with pytest.raises(InvalidArgument, match=f"{old} must be left out where {new}, its new name, is given"):
        kind(**others, **{old: value, new: value})


@pytest.mark.parametrize(("kind", "others", "old", "new", "value"), RENAMED)
def test_files_keep_the_names_they_had(kind: Any, others: Any, old: str, new: str, value: Any) -> None:
    told = json.dumps(described(kind(**others, **{new: value}), KEEPING))
    assert f'"{old}": {value}' in told
    assert new not in told


@pytest.mark.parametrize(
    ("name", "option"),
    [("dirichlet", "young"), ("nonparametric", "moves_elsewhere"), ("nonparametric", "wide")],
)
def test_policies_take_old_names(name: str, option: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"`{option}` is now called"):
        make_policy(name, 2, 1, **{option: 5})


def test_a_state_goes_on_whichever_name_its_policy_was_made_with(tmp_path: Path) -> None:
    with pytest.warns(DeprecationWarning, match="is now called"):
        before = make_policy("nonparametric", 2, 1, wide=2.0, moves_elsewhere=3)
    after = make_policy("nonparametric", 2, 1, centre_var=2.0, other_arm_moves=3)
    state = before.update(before.init(), np.ones(1), 0, 1.0, np.random.default_rng(0))
    load_state(save_state(tmp_path / "state", state, before), policy=after)
