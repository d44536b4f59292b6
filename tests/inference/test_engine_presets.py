import numpy as np
import pytest

from polyarm.errors import InvalidArgument, UnknownName
from polyarm.inference import engine_names, make_engine
from polyarm.models import LinearMixture, NormalInverseGamma

ARMS = [LinearMixture(NormalInverseGamma(2), 0.5)] * 2


@pytest.mark.parametrize("name", engine_names())
def test_every_named_engine_learns(name: str) -> None:
    engine, rng = make_engine(name, ARMS), np.random.default_rng(0)
    state = engine.init()
    for t in range(20):
        state = engine.update(state, np.array([1.0, 0.0]), t % 2, float(t % 2), rng)
    means = engine.expected_means(state, np.array([1.0, 0.0]))
    assert means[1] > means[0]


def test_options_reach_the_engine_and_others_are_refused() -> None:
    assert make_engine("budget", ARMS, memory=5).memory == 5  # type: ignore[attr-defined]
    with pytest.raises(InvalidArgument, match="options of engine"):
        make_engine("particles", ARMS, moves=3)
    with pytest.raises(UnknownName):
        make_engine("exact", ARMS)
