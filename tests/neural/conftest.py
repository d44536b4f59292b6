import os
from collections.abc import Iterator
from importlib.metadata import version
from importlib.util import find_spec

import pytest

# XLA as of JAX 0.10 compiles a small network in half the time by its older path and without LLVM's costly passes, to
# code that is as quick and rounds alike; it ends the process at unknown flags.
QUICK = (
    "--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"
    " --xla_backend_optimization_level=1 --xla_llvm_disable_expensive_passes=true"
)
if find_spec("jaxlib") is not None and version("jaxlib").startswith("0.10."):
    os.environ.setdefault("XLA_FLAGS", QUICK)
os.environ.setdefault("NPROC", "1")  # threads of XLA: a small network's would mostly wait for each other

jax = pytest.importorskip("jax", reason="the extra polyarm[neural] is not installed")
pytest.importorskip("optax", reason="the extra polyarm[neural] is not installed")


@pytest.fixture(autouse=True)
def numerics() -> Iterator[None]:
    from polyarm.neural.precision import numerics

    with numerics():
        yield


@pytest.fixture(autouse=True)
def quick_compilation(request: pytest.FixtureRequest) -> Iterator[None]:
    """Most tests compile for longer than they compute: only those that train for long let XLA optimise."""
    long = request.node.path.name == "test_regret.py" and "multitask-gp" not in request.node.name
    jax.config.update("jax_disable_most_optimizations", not long)
    try:
        yield
    finally:
        jax.config.update("jax_disable_most_optimizations", False)
