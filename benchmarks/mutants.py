"""Plant small bugs, one at a time, and see which of them the tests catch.

python -m benchmarks.mutants [--package kernels] [--only kernels/robust_] [--sample 40] [--seed 0] [--out DIR]

A mutant is a source file with one constant, sign, comparison, index or argument changed, or one term or statement
dropped.  First every quick test runs once, traced, to see which functions it reaches (`mutant_reach`).  Each mutant of
a fixed sample then runs, in a copy of the sources, against the tests that reach its function, the narrowest first,
until one fails.  Kernels run as plain Python, so that nothing is compiled; tests that are too slow that way are left
out, so the shares caught are lower bounds.  Results are kept one line each: an interrupted run goes on; `--again` tries
survivors again, with `--look` after new tests; `--compiled` does so with compiled kernels and all tests of the mutant's package.
"""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import hypothesis
import numba
import pytest
import scipy.special
import scipy.stats
from benchmarks.mutant_sites import Site, sites
from benchmarks.planted import PLANTED, planted_site

__all__ = ["hypothesis", "scipy"]  # imported once here: every mutant is judged in a fork of this process
ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "src" / "polyarm"
PACKAGES = {
    "kernels": ("kernels/[!_]*.py",),
    "inference": ("inference/[!_]*.py",),
    "policies": ("policies/[!_]*.py",),
    "statistics": tuple(f"experiments/{name}.py" for name in ("records", "statistics", "summary", "results")),
}
QUICK = (  # tests to look at
    *("kernels", "inference", "policies", "models", "test_solid.py", "contracts/test_engines.py"),
    *("experiments/test_statistics.py", "experiments/test_reports.py"),
)
WHOLE = {  # all tests of a package, for compiled kernels
    "kernels": ("kernels", "inference", "statistics", "contracts/test_engines.py"),
    "inference": ("inference", "contracts", "statistics", "test_solid.py", "test_sequences.py"),
    "policies": ("policies", "contracts/test_policies.py", "contracts/test_probabilities.py", "test_sequences.py"),
    "statistics": ("experiments",),
}
SLOW = 1.5  # seconds of processor time after which a test is not used
PATIENCE = {True: 600.0, False: 3600.0}  # seconds after which a mutant counts as caught: it hangs


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


def reached(out: Path, look: bool) -> list[Test]:
    """Tests that are quick without compiled kernels, and what they reach; looked up once, or again for new tests."""
    file = out / "reach.jsonl"
    if look or not file.exists():
        look_up(file, out)
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    return [Test(row["test"], row["seconds"], frozenset(row["functions"])) for row in rows if row["passed"]]


def look_up(file: Path, out: Path) -> None:
    """Run every test that the file does not hold yet, traced."""
    places = [str(ROOT / "tests" / name) for name in QUICK]
    plugin = ["-p", "benchmarks.mutant_reach", "--reach-into", str(file), "--reach-seconds", str(SLOW)]
    paths = os.pathsep.join([str(SOURCES.parent), str(ROOT)])
    environment = {**os.environ, "PYTHONPATH": paths, "NUMBA_DISABLE_JIT": "1"}
    quiet = ["-q", "-p", "no:cacheprovider", "-W", "ignore:overflow encountered:RuntimeWarning"]
    command = [sys.executable, "-m", "pytest", *quiet, *plugin, *places]
    with (out / "reach.log").open("w") as log:
        subprocess.run(command, cwd=ROOT, env=environment, stdout=log, stderr=log)


def chosen(mutant: Mutant, tests: Iterable[Test], enough_s: float) -> list[Test]:
    """Tests that reach the mutant's function: the narrowest first, for so many seconds of processor time."""
    found = [test for test in tests if f"{mutant.file} {mutant.function}" in test.functions]
    total, picked = 0.0, []
    for test in sorted(found, key=lambda test: (len(test.functions), test.seconds)):
        if total + test.seconds < enough_s:
            total += test.seconds
            picked.append(test)
    return picked


class FirstFailure:
    """Writes down the first test that fails."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.file.exists():
            self.file.write_text(report.nodeid.split("[")[0])

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed and not self.file.exists():
            self.file.write_text(f"import of {report.nodeid}")


def run_tests(sources: Path, tests: Sequence[str], plain: bool, note: Path) -> int:
    """Exit code of the tests, in this process, on these sources."""
    sys.path[:0] = [str(sources), str(ROOT)]
    os.environ["PYTHONPATH"] = os.pathsep.join([str(sources), str(ROOT)])
    if plain:
        os.environ["NUMBA_DISABLE_JIT"] = "1"
        numba.config.DISABLE_JIT = 1
    quiet = ["-q", "-x", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
    quiet += ["-W", "ignore:overflow encountered:RuntimeWarning"]  # words wrap around in compiled kernels
    return int(pytest.main([*quiet, *tests], plugins=[FirstFailure(note)]))


def failed_test(sources: Path, tests: Sequence[str], plain: bool, limit_s: float) -> str | None:
    """Name of the test that fails on these sources, if one does; out of time counts as a failure."""
    note, child = sources / "failed", os.fork()
    if child == 0:
        signal.alarm(int(limit_s))
        nowhere = os.open(sources / "log", os.O_WRONLY | os.O_CREAT)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        code = 70
        try:
            code = run_tests(sources, tests, plain, note)
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code == 0:
        return None
    if code == -signal.SIGALRM:
        return "out of time"
    return note.read_text() if note.exists() else f"exit code {code}"


def judge(mutant: Mutant, names: Sequence[str], plain: bool) -> dict[str, str | None]:
    """Plant the bug in a copy of the sources and say which test caught it, if any."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "polyarm"
        shutil.copytree(SOURCES, copy, ignore=shutil.ignore_patterns("__pycache__"))
        (copy / mutant.file).write_text(mutant.site.planted((SOURCES / mutant.file).read_text()))
        caught_by = failed_test(Path(folder), names, plain, PATIENCE[plain]) if names else None
    return {"key": mutant.key, "package": mutant.package, "caught_by": caught_by, "tests": str(len(names))}


def report(rows: Sequence[dict[str, str | None]]) -> str:
    """A table of the shares caught, and every survivor."""
    lines = ["| package | mutants | caught | share |", "|---|---|---|---|"]
    for package in dict.fromkeys(row["package"] for row in rows):
        mine = [row for row in rows if row["package"] == package]
        caught = sum(row["caught_by"] is not None for row in mine)
        lines.append(f"| {package} | {len(mine)} | {caught} | {caught / len(mine):.0%} |")
    survivors = [f"* `{row['key']}` ({row['tests']} tests reach it)" for row in rows if row["caught_by"] is None]
    return "\n".join([*lines, "", "Survivors:", *(survivors or ["* none"])]) + "\n"


def judge_all(mutants: Sequence[Mutant], known: dict[str, dict[str, str | None]], options: Any) -> None:
    """Judge mutants one after the other, keeping each result and showing how far it is."""
    out, compiled = options.out, options.compiled
    tests = reached(out, options.look) if mutants and not compiled else []
    start, survived = time.monotonic(), 0
    for number, mutant in enumerate(mutants, 1):
        if compiled:
            names = [str(ROOT / "tests" / name) for name in WHOLE[mutant.package]]
        else:
            names = [test.name for test in chosen(mutant, tests, options.seconds)]
        row = known[mutant.key] = judge(mutant, names, not compiled)
        with (out / "judged.jsonl").open("a") as lines:
            lines.write(json.dumps(row) + "\n")
        survived += row["caught_by"] is None
        left_s = (time.monotonic() - start) / number * (len(mutants) - number)
        bar, end = ("#" * (30 * number // len(mutants))).ljust(30), "\n" if number == len(mutants) else ""
        told = f"\r{bar} {number}/{len(mutants)}, {survived} survived, {left_s / 60:.0f} min left "
        print(told, end=end, flush=True, file=sys.stderr)


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description="Plant small bugs and see which the tests catch.")
    parser.add_argument("--package", action="append", choices=["planted", *PACKAGES], help="repeat (default: all)")
    parser.add_argument("--sample", type=int, default=40, help="mutants of each package (default 40)")
    parser.add_argument("--seed", type=int, default=0, help="another seed is another sample (default 0)")
    parser.add_argument("--only", default="", metavar="PATH", help="files whose path below src/polyarm begins so")
    parser.add_argument("--again", action="store_true", help="try survivors again")
    parser.add_argument("--seconds", type=float, default=30.0, help="of tests for each mutant (default 30)")
    parser.add_argument("--look", action="store_true", help="look at what new tests reach")
    parser.add_argument("--compiled", action="store_true", help="try survivors again with all tests, compiled")
    parser.add_argument("--out", type=Path, default=Path("results/mutants"), help="folder (default results/mutants)")
    options = parser.parse_args(arguments)
    out = options.out = options.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    mutants = planted() if "planted" in (options.package or ["planted"]) else []
    for name in PACKAGES if options.package is None else [name for name in PACKAGES if name in options.package]:
        mutants += sampled(name, options.sample, options.seed, options.only)
    kept = out / "judged.jsonl"
    rows = [json.loads(line) for line in kept.read_text().splitlines()] if kept.exists() else []
    known = {row["key"]: row for row in rows}
    again = options.again or options.compiled
    left = [m for m in mutants if m.key not in known or (again and known[m.key]["caught_by"] is None)]
    judge_all(left, known, options)
    text = report([known[mutant.key] for mutant in mutants])
    (out / "report.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main(sys.argv[1:])
