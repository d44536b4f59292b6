"""Plant small bugs, one at a time, and see which of them the tests catch.

python -m benchmarks.mutants [--package kernels] [--only kernels/robust/] [--sample 40] [--seed 0] [--out DIR]

A mutant is a function with one constant, sign, comparison, index or argument changed, or one term or statement dropped.
First every quick test runs once, traced, to see which functions it reaches (`mutant_reach`).  Each mutant of a fixed
sample then meets the tests that reach its function, the narrowest first, until one fails (`mutant_judge`).  Kernels
run as plain Python where they are what is changed, compiled elsewhere; tests that are too slow are left out, so the
shares caught are lower bounds.  Results are kept one line each: an interrupted run goes on; `--again` tries survivors
again, with `--look` after new tests.
"""

import argparse
import json
import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.mutant_sites import Site, sites
from benchmarks.planted import PLANTED, planted_site

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "src" / "polyarm"
PACKAGES = {
    "kernels": ("kernels/[!_]*.py", "kernels/[!_]*/[!_]*.py"),
    "inference": ("inference/[!_]*.py", "inference/[!_]*/[!_]*.py"),
    "policies": ("policies/[!_]*.py",),
    "statistics": tuple(f"experiments/*/{name}.py" for name in ("records", "statistics", "summary", "results")),
}
QUICK = (  # tests to look at for kernels
    *("kernels", "inference", "policies", "models", "bandit/test_lottery.py", "test_hostile_input.py"),
    *("statistics", "contracts/test_engines.py", "contracts/test_soundness.py"),
    *("experiments/test_statistics.py", "experiments/test_reports.py"),
)
COMPILED = ("inference", "policies", "statistics")  # packages that are plain Python, above kernels
ABOVE = (  # tests to look at for these
    *("inference", "policies", "models", "contracts", "bandit", "experiments"),
    *("test_hostile_input.py", "test_regressor.py", "test_sequences.py"),
)
SLOW = 1.5  # seconds of processor time after which a test is not used, with kernels as plain Python
SLOW_COMPILED = 4.0


class Mutant(NamedTuple):
    """One planted bug."""

    package: str
    file: str
    function: str
    site: Site

    @property
    def key(self) -> str:
        """Name that stays the same while the line does."""
        site = self.site
        return f"{self.file}:{site.line}:{site.column} {site.kind}: {site.before} -> {site.after}"


class Test(NamedTuple):
    """One test, what it takes and what it reaches."""

    name: str
    seconds: float
    functions: frozenset[str]


def sampled(package: str, count: int, seed: int, only: str) -> list[Mutant]:
    """A fixed sample of a package's mutants."""
    files = sorted(str(path.relative_to(SOURCES)) for pattern in PACKAGES[package] for path in SOURCES.glob(pattern))
    texts = {name: (SOURCES / name).read_text() for name in files if name.startswith(only)}
    found = [Mutant(package, name, function, site) for name, text in texts.items() for function, site in sites(text)]
    chosen = random.Random(f"{package} {seed}").sample(found, min(count, len(found)))
    return sorted(chosen, key=lambda mutant: mutant.key)


def planted() -> list[Mutant]:
    """The bugs of an audit."""
    texts = {name: (SOURCES / name).read_text() for name, *_ in PLANTED}
    found = [(name, planted_site(texts[name], *change)) for name, *change in PLANTED]
    return [Mutant("planted", name, function_at(texts[name], site), site) for name, site in found]


def function_at(text: str, site: Site) -> str:
    """The function that holds a line."""
    return max(((other.line, name) for name, other in sites(text) if other.line <= site.line), default=(0, ""))[1]


def run_tests(compiled: bool, places: Iterable[str], *options: str) -> None:
    """Run tests, with or without compiled kernels, with one of our plugins."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(SOURCES.parent), str(ROOT)])}
    environment["NUMBA_DISABLE_JIT"] = "0" if compiled else "1"
    wrapped = "ignore:overflow encountered:RuntimeWarning"  # words wrap around in compiled kernels, without a warning
    quiet = ["-q", "-p", "no:cacheprovider", "--tb=no", "-W", wrapped, "-c", str(ROOT / "pyproject.toml")]
    subprocess.run([sys.executable, "-m", "pytest", *quiet, *options, *places], cwd=ROOT, env=environment)


def reached(out: Path, look: bool, compiled: bool) -> list[Test]:
    """Tests that are quick, and what they reach; looked up once, or again for new tests."""
    file = out / ("reach_compiled.jsonl" if compiled else "reach.jsonl")
    if look or not file.exists():
        places = [str(ROOT / "tests" / name) for name in (ABOVE if compiled else QUICK)]
        seconds = SLOW_COMPILED if compiled else SLOW
        reach = ["-p", "benchmarks.mutant_reach", "--reach-into", str(file), "--reach-seconds", str(seconds)]
        run_tests(compiled, places, *reach)
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    return [Test(row["test"], row["seconds"], frozenset(row["functions"])) for row in rows if row["passed"]]


def chosen(mutant: Mutant, tests: Iterable[Test], most: int, enough_s: float) -> tuple[list[str], float]:
    """Tests that reach the mutant's function, and the seconds they take: no more than are wanted.

    Those of its own file come first, then the narrowest.
    """
    own = Path(mutant.file)

    def order(test: Test) -> tuple[int, int, float]:
        named = own.stem in test.name.split("::")[0]
        near = test.name.startswith((f"tests/{own.parts[0]}/", "tests/statistics/"))
        return 0 if named else 1 if near else 2, len(test.functions), test.seconds

    found = sorted((test for test in tests if f"{mutant.file} {mutant.function}" in test.functions), key=order)
    asked, turn = Counter[str](), dict[str, int]()
    for test in found:  # a test with many parameters takes turns with others
        turn[test.name] = asked[test.name.split("[")[0]]
        asked[test.name.split("[")[0]] += 1
    total, picked = 0.0, list[str]()
    for test in sorted(found, key=lambda test: turn[test.name]):
        if total + test.seconds < enough_s and len(picked) < most:
            total += test.seconds
            picked.append(test.name)
    return picked, total


def judge_all(mutants: Sequence[Mutant], options: Any, compiled: bool) -> None:
    """Judge mutants, keeping each result."""
    tests = reached(options.out, options.look, compiled)
    file, needed = options.out / "mutants.jsonl", set[str]()
    with file.open("w") as lines:
        for mutant in mutants:
            text = mutant.site.planted((SOURCES / mutant.file).read_text())
            names, seconds = chosen(mutant, tests, options.most, options.seconds)
            needed.update(name.split("::")[0] for name in names)
            row = {
                "key": mutant.key,
                **mutant._asdict(),
                "site": None,
                "text": text,
                "tests": names,
                "seconds": seconds,
            }
            lines.write(json.dumps(row) + "\n")
    warm = ["--warm"] if compiled else []  # a fork would load every kernel again
    run_tests(compiled, sorted(needed), "-p", "benchmarks.mutant_judge", "--judge", str(file), *warm)


def results(out: Path) -> dict[str, dict[str, Any]]:
    """What is known of every mutant."""
    file = out / "mutants.judged"
    rows = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    return {row["key"]: row for row in rows}


def report(rows: Sequence[dict[str, Any]]) -> str:
    """A table of the shares caught, and every survivor."""
    lines = ["| package | mutants | caught | share |", "|---|---|---|---|"]
    for package in dict.fromkeys(row["package"] for row in rows):
        mine = [row for row in rows if row["package"] == package]
        caught = sum(row["caught_by"] is not None for row in mine)
        lines.append(f"| {package} | {len(mine)} | {caught} | {caught / len(mine):.0%} |")
    survivors = [f"* `{row['key']}` ({row['tests']} tests)" for row in rows if row["caught_by"] is None]
    return "\n".join([*lines, "", "Survivors:", *(survivors or ["* none"])]) + "\n"


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description="Plant small bugs and see which the tests catch.")
    parser.add_argument("--package", action="append", choices=["planted", *PACKAGES], help="repeat (default: all)")
    parser.add_argument("--sample", type=int, default=40, help="mutants of each package (default 40)")
    parser.add_argument("--seed", type=int, default=0, help="another seed is another sample (default 0)")
    parser.add_argument("--only", default="", metavar="PATH", help="files whose path below src/polyarm begins so")
    parser.add_argument("--again", action="store_true", help="try survivors again")
    parser.add_argument("--look", action="store_true", help="look at what new tests reach")
    parser.add_argument("--most", type=int, default=200, help="tests for each mutant (default 200)")
    parser.add_argument("--seconds", type=float, default=30.0, help="of tests for each mutant (default 30)")
    parser.add_argument("--out", type=Path, default=Path("results/mutants"), help="folder (default results/mutants)")
    options = parser.parse_args(arguments)
    options.out = options.out.resolve()
    options.out.mkdir(parents=True, exist_ok=True)
    mutants = planted() if "planted" in (options.package or ["planted"]) else []
    for name in PACKAGES if options.package is None else [name for name in PACKAGES if name in options.package]:
        mutants += sampled(name, options.sample, options.seed, options.only)
    known = results(options.out)
    left = [m for m in mutants if m.key not in known or (options.again and known[m.key]["caught_by"] is None)]
    for compiled in (False, True):
        mine = [mutant for mutant in left if (mutant.package in COMPILED) == compiled]
        if mine:
            judge_all(mine, options, compiled)
    known = results(options.out)
    text = report([known[mutant.key] for mutant in mutants if mutant.key in known])
    (options.out / "report.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main(sys.argv[1:])
