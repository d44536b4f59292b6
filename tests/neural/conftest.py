from collections.abc import Iterator

import pytest

pytest.importorskip("jax", reason="the extra polyarm[neural] is not installed")
pytest.importorskip("optax", reason="the extra polyarm[neural] is not installed")


@pytest.fixture(autouse=True)
def numerics() -> Iterator[None]:
    from polyarm.neural.precision import numerics

    with numerics():
        yield
