"""A network behind the front door."""

from collections.abc import Iterator

import numpy as np
import pytest

from polyarm import Bandit
from polyarm.errors import InvalidArgument

jax = pytest.importorskip("jax")


@pytest.fixture(autouse=True)
def quick_compilation() -> Iterator[None]:
    """A few rounds compile for longer than they compute."""
    jax.config.update("jax_disable_most_optimizations", True)
    try:
        yield
    finally:
        jax.config.update("jax_disable_most_optimizations", False)


def test_a_network_can_be_put_to_work_and_says_what_it_cannot() -> None:
    bandit = Bandit(["a", "b"], {"x": float, "kind": ["p", "q"]}, policy="neural-linear", seed=1)
    rng = np.random.default_rng(0)
    for i in range(4):
        decision = bandit.choose({"x": rng.normal(), "kind": "p"}, id=str(i))
        assert sum(decision.probabilities.values()) == 1.0
        assert decision.means is None
        bandit.learn(decision, rng.normal())
    assert bandit.recompute("3") == bandit.decision("3")
    before = bandit.to_bytes()
    assert Bandit.from_bytes(before).to_bytes() == before
    with pytest.raises(InvalidArgument, match="policy must be one without a network to add an arm"):
        bandit.add_arm("c")
    with pytest.raises(InvalidArgument, match="policy must be one with a model of the rewards"):
        bandit.predict({"x": 0.0, "kind": "q"})
    assert bandit.to_bytes() == before
