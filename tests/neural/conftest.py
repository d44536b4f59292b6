from collections.abc import Iterator

import pytest

jax = pytest.importorskip("jax", reason="the extra polyarm[neural] is not installed")
pytest.importorskip("optax", reason="the extra polyarm[neural] is not installed")


@pytest.fixture(autouse=True)
def numerics() -> Iterator[None]:
    from polyarm.neural.precision import numerics

    with numerics():
        yield


@pytest.fixture(autouse=True)
def quick_compilation(request: pytest.FixtureRequest) -> Iterator[None]:
    """Most tests compile for longer than they compute: only those that play long games let XLA optimise."""
    long = request.node.path.name == "test_regret.py"
    jax.config.update("jax_disable_most_optimizations", not long)
    try:
        yield
    finally:
        jax.config.update("jax_disable_most_optimizations", False)
