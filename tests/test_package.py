"""What installing and importing polyarm means."""

import subprocess
import sys
from pathlib import Path

import pytest

import polyarm

ROOT = Path(__file__).parent.parent


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_importing_polyarm_is_light() -> None:
    loaded = run("import polyarm, sys; print(' '.join(m for m in sys.modules if '.' not in m))").split()
    assert not {"numba", "jax", "matplotlib", "pyarrow", "rich", "sklearn", "pandas"} & set(loaded)


def test_policies_need_only_numpy_scipy_and_numba() -> None:
    """And of SciPy nothing that takes long to load, until it is called for."""
    code = (
        "import numpy as np, polyarm, sys\n"
        "p = polyarm.make_policy('nonparametric', 2, 2); s = p.init(); x = np.ones(2); rng = np.random.default_rng(0)\n"
        "s = p.update(s, x, p.choose(s, x, rng).arm, 1.0, rng)\n"
        "print(' '.join(sys.modules))\n"
        "from polyarm import special\n"
        "assert special.expit(0.0) == 0.5 and 'scipy.special' in sys.modules"
    )
    loaded = set(run(code).split())
    assert not {"jax", "matplotlib", "pyarrow", "rich", "sklearn", "pandas", "scipy.special", "scipy.stats"} & loaded


def test_every_public_name_is_there_and_wrong_ones_are_not() -> None:
    assert all(hasattr(polyarm, name) for name in polyarm.__all__)
    assert not hasattr(polyarm, "nonsense")
    assert set(polyarm.__all__) < set(dir(polyarm))
    assert polyarm.make_scenario("linear").environment.n_arms == 8
    assert "drift/abrupt" in polyarm.scenario_names()
    with pytest.warns(DeprecationWarning, match=r"polyarm.Contender is now polyarm.PolicySpec"):
        assert polyarm.Contender is polyarm.PolicySpec


def test_a_second_start_loads_kernels_from_the_cache() -> None:
    code = (
        "import numpy as np, polyarm as pa\n"
        "from polyarm.kernels import conjugate\n"
        "p = pa.make_policy('linear', 2, 2); s = p.init(); rng = np.random.default_rng(0)\n"
        "s = p.update(s, np.ones(2), 0, 1.0, rng)\n"
        "print(sum(conjugate.learn.stats.cache_hits.values()), sum(conjugate.learn.stats.cache_misses.values()))"
    )
    assert run(code) in ("0 1", "1 0")  # another test may have filled it
    assert run(code) == "1 0"


def test_the_versions_agree() -> None:
    assert f'version = "{polyarm.__version__}"' in (ROOT / "pyproject.toml").read_text()
    assert f"version: {polyarm.__version__}" in (ROOT / "CITATION.cff").read_text()
