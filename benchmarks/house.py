"""How easily the house is lived in: shape of the sources, seconds of the first decision, hashes of what is published.

python benchmarks/house.py [shape] [trace] [cold] [hashes]
"""

import ast
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

SOURCES = Path(__file__).parents[1] / "src" / "polyarm"
MANY = 8
SCENARIOS = ("heavy-tailed", "mixture-b", "linear-gaussian", "exponential", "purchases", "drift")
POLICIES = ("nonparametric", "dirichlet", "pitman-yor", "nonparametric-paper", "hierarchical", "linear")
FIRST_DECISION = """
import os, time
start = time.process_time()
import numpy as np
from polyarm import make_policy
policy, rng, x = make_policy("nonparametric", 3, 2), np.random.default_rng(0), np.array([0.5, -0.2])
imported = time.process_time()
state = policy.init()
policy.choose(state, x, rng)
chosen = time.process_time()
policy.update(state, x, 0, 1.0, rng)
print(imported - start, chosen - imported, time.process_time() - chosen)
"""


def functions() -> Iterator[tuple[Path, ast.FunctionDef]]:
    for file in sorted(SOURCES.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.FunctionDef):
                yield file.relative_to(SOURCES), node


def shape() -> dict[str, Any]:
    """Counts that a reader feels."""
    kernels = [(file, node) for file, node in functions() if file.parts[0] == "kernels"]
    n_arguments = {f"{file}:{node.name}": len(node.args.args) + len(node.args.kwonlyargs) for file, node in kernels}
    lengths = {
        f"{file}:{node.name}": (node.end_lineno or 0) - node.lineno + 1
        for file, node in functions()
        if "migrations" not in file.parts
    }
    longest = max(lengths, key=lambda name: lengths[name])
    defined = Counter(node.name for _, node in kernels if node.col_offset == 0)
    texts = [file.read_text() for file in SOURCES.rglob("*.py")]
    lines = [line for text in texts for line in text.splitlines()]
    return {
        "kernel functions": len(kernels),
        f"kernel functions over {MANY} arguments": sum(n > MANY for n in n_arguments.values()),
        "most arguments of a kernel": max(n_arguments.items(), key=lambda pair: pair[1]),
        "longest function": (longest, lengths[longest]),
        "names of two kernels": sorted(name for name, n in defined.items() if n > 1),
        "settings read by number": sum(bool(re.search(r"\b(law|hyper|prior|columns)\[\d+\]", line)) for line in lines),
        "states read by slices": sum(bool(re.search(r"\bstate\[\d*:\d*\]", line)) for line in lines),
        "files": len(texts),
        "lines": len(lines),
        "lines of kernels": sum(len(file.read_text().splitlines()) for file in (SOURCES / "kernels").rglob("*.py")),
    }


def trace() -> dict[str, Any]:
    """Kernel functions and files that the default's choose and update go through, uncompiled, over some steps."""
    if not os.environ.get("NUMBA_DISABLE_JIT"):
        run = [sys.executable, __file__, "trace"]
        return dict(json.loads(subprocess.check_output(run, env={**os.environ, "NUMBA_DISABLE_JIT": "1"})))
    import numpy as np

    from polyarm import make_policy

    met: set[tuple[str, str]] = set()
    calls: Counter[bool] = Counter()
    kernels = str(SOURCES / "kernels")

    def look(frame: FrameType, event: str, _argument: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(kernels) and not Path(code.co_filename).name.startswith("_"):
            met.add((code.co_filename, code.co_name))
            calls[frame.f_back is not None and frame.f_back.f_code.co_filename != code.co_filename] += 1

    policy, rng = make_policy("nonparametric", 3, 2), np.random.default_rng(0)
    state, found = policy.init(), dict[str, Any]()
    for name in ("choose", "update"):
        met.clear()
        calls.clear()
        for t in range(40):
            x, y = rng.standard_normal(2), float(rng.standard_cauchy())
            if name == "choose":
                sys.setprofile(look)
                policy.choose(state, x, rng)
            else:
                sys.setprofile(look)
                state = policy.update(state, x, t % 3, y, rng)
            sys.setprofile(None)
        found[name] = {
            "kernel functions": len(met),
            "kernel files": len({file for file, _ in met}),
            "share of calls that cross a file": round(calls[True] / calls.total(), 2),
        }
    return found


def cold() -> dict[str, float]:
    """CPU seconds of the first choose and the first update of the default on an empty cache."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "POLYARM_CACHE_DIR": folder}
        out = subprocess.check_output(
            [sys.executable, "-c", FIRST_DECISION], env=environment, stderr=subprocess.DEVNULL, text=True
        )
        n_files = sum(file.suffix == ".nbc" for file in Path(folder).rglob("*"))
    imported, chosen, updated = map(float, out.split())
    return {
        "import": round(imported, 2),
        "choose": round(chosen, 2),
        "update": round(updated, 2),
        "choose and update": round(chosen + updated, 2),
        "functions kept": n_files,
    }


def hashes() -> dict[str, str]:
    """Digests of regret, one per scenario, of a few policies on a few worlds."""
    from polyarm import compare

    found = {}
    for scenario in SCENARIOS:
        result = compare(scenario, POLICIES, realizations=3, horizon=60, seed=5, workers=1)
        numbers = json.dumps({name: result.results.curves(name).tolist() for name in POLICIES})
        found[scenario] = hashlib.sha256(numbers.encode()).hexdigest()[:16]
    return found


if __name__ == "__main__":
    parts = {"shape": shape, "trace": trace, "cold": cold, "hashes": hashes}
    asked = sys.argv[1:] or list(parts)
    if asked == ["trace"]:
        print(json.dumps(trace()))
    else:
        for part in asked:
            print(part, json.dumps(parts[part](), indent=2), flush=True)
