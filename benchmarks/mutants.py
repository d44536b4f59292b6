"""Plant small bugs, one at a time, and see which of them the tests catch.

python -m benchmarks.mutants [--package kernels] [--only kernels/robust_] [--sample 40] [--seed 0] [--out DIR]

A mutant is a source file with one constant, sign, comparison, index or argument changed, or one term or statement
dropped.  Each of a fixed sample runs against the tests of its file, in a copy of the sources, until one fails.  Kernels
run as plain Python against the tests that are quick that way, so that nothing is compiled; `--compiled` tries the
survivors again, compiled, with all tests of their file.  Results are kept one line each: an interrupted run goes on.
"""

import argparse
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.mutant_sites import Site, sites
from benchmarks.planted import PLANTED, planted_site

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "src" / "polyarm"
PACKAGES = {
    "kernels": ("kernels/[!_]*.py",),
    "inference": ("inference/[!_]*.py",),
    "policies": ("policies/[!_]*.py",),
    "statistics": tuple(f"experiments/{name}.py" for name in ("records", "statistics", "summary", "results")),
}
QUICK = {  # tests of a file, by the beginning of its path
    "kernels/robust": ("kernels/test_robust_*.py",),
    "kernels/information": ("kernels/test_information.py",),
    "kernels": ("kernels/test_[!cr]*.py", "kernels/test_co*.py", "kernels/test_root.py"),
    "inference": ("inference/test_*.py", "contracts/test_engines.py", "test_solid.py"),
    "policies": ("policies/test_*.py", "contracts/test_policies.py"),
    "experiments": ("experiments/test_statistics.py", "experiments/test_reports.py", "experiments/test_runner.py"),
}
ALL = ("kernels/test_*.py", "inference/test_*.py", "contracts/test_*.py", "statistics/test_*.py", "test_s*.py")
SLOW = "not million and not two_arms_are and not with_their_shares and not many_arms_are and not beyond_its_first"


class Mutant(NamedTuple):
    """One planted bug."""

    package: str
    file: str
    site: Site

    @property
    def key(self) -> str:
        """Name that stays the same while the line does."""
        site = self.site
        return f"{self.file}:{site.line}:{site.column} {site.kind}: {site.before} -> {site.after}"


def sampled(package: str, count: int, seed: int, only: str) -> list[Mutant]:
    """A fixed sample of a package's mutants."""
    files = sorted(str(path.relative_to(SOURCES)) for pattern in PACKAGES[package] for path in SOURCES.glob(pattern))
    texts = {name: (SOURCES / name).read_text() for name in files if name.startswith(only)}
    found = [Mutant(package, name, site) for name, text in texts.items() for site in sites(text)]
    chosen = random.Random(f"{package} {seed}").sample(found, min(count, len(found)))
    return sorted(chosen, key=lambda mutant: mutant.key)


def planted() -> list[Mutant]:
    """The bugs of an audit."""
    texts = {name: (SOURCES / name).read_text() for name, _, _ in PLANTED}
    return [Mutant("planted", name, planted_site(texts[name], *change)) for name, *change in PLANTED]


def relevant(file: str, compiled: bool) -> list[str]:
    """Test files for a source file, those that bear its name first."""
    start = max((start for start in QUICK if file.startswith(start)), key=len)
    patterns = (*QUICK[start], *(ALL if compiled else ()))
    found = dict.fromkeys(path for pattern in patterns for path in sorted((ROOT / "tests").glob(pattern)))
    return [str(path) for path in sorted(found, key=lambda path: Path(file).stem not in path.name)]


def failed_test(sources: Path, file: str, compiled: bool, limit_s: float) -> str | None:
    """Name of the test that fails on these sources, if one does; out of time counts as a failure."""
    paths = os.pathsep.join([str(sources), str(ROOT)])
    environment = {**os.environ, "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
    if file.startswith("kernels/") and not compiled:
        environment["NUMBA_DISABLE_JIT"] = "1"
        command += ["-k", SLOW]
    try:
        done = subprocess.run(
            [*command, *relevant(file, compiled)], cwd=ROOT, env=environment, capture_output=True, timeout=limit_s
        )
    except subprocess.TimeoutExpired:
        return "out of time"
    if done.returncode == 0:
        return None
    told = re.search(rb"^(?:FAILED|ERROR) ([^\s\[]+)", done.stdout, flags=re.MULTILINE)
    return told.group(1).decode() if told else f"exit code {done.returncode}"


def judge(mutant: Mutant, compiled: bool, limit_s: float) -> dict[str, str | None]:
    """Plant the bug in a copy of the sources and say which test caught it, if any."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "polyarm"
        shutil.copytree(SOURCES, copy, ignore=shutil.ignore_patterns("__pycache__"))
        (copy / mutant.file).write_text(mutant.site.planted((SOURCES / mutant.file).read_text()))
        caught_by = failed_test(Path(folder), mutant.file, compiled, limit_s)
    return {"key": mutant.key, "package": mutant.package, "caught_by": caught_by}


def report(rows: Sequence[dict[str, str | None]]) -> str:
    """A table of the shares caught, and every survivor."""
    lines = ["| package | mutants | caught | share |", "|---|---|---|---|"]
    for package in dict.fromkeys(row["package"] for row in rows):
        mine = [row for row in rows if row["package"] == package]
        caught = sum(row["caught_by"] is not None for row in mine)
        lines.append(f"| {package} | {len(mine)} | {caught} | {caught / len(mine):.0%} |")
    survivors = [f"* `{row['key']}`" for row in rows if row["caught_by"] is None]
    return "\n".join([*lines, "", "Survivors:", *(survivors or ["* none"])]) + "\n"


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description="Plant small bugs and see which the tests catch.")
    parser.add_argument("--package", action="append", choices=["planted", *PACKAGES], help="repeat (default: all)")
    parser.add_argument("--sample", type=int, default=40, help="mutants of each package (default 40)")
    parser.add_argument("--seed", type=int, default=0, help="another seed is another sample (default 0)")
    parser.add_argument("--only", default="", metavar="PATH", help="files whose path below src/polyarm begins so")
    parser.add_argument("--compiled", action="store_true", help="try survivors again, compiled, with all tests")
    parser.add_argument("--limit", type=float, default=600.0, metavar="S", help="seconds for one mutant (default 600)")
    parser.add_argument("--out", type=Path, default=Path("results/mutants"), help="folder (default results/mutants)")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    mutants = planted() if "planted" in (options.package or ["planted"]) else []
    for name in PACKAGES if options.package is None else [name for name in PACKAGES if name in options.package]:
        mutants += sampled(name, options.sample, options.seed, options.only)
    kept = options.out / "judged.jsonl"
    rows = [json.loads(line) for line in kept.read_text().splitlines()] if kept.exists() else []
    known = {row["key"]: row for row in rows}
    left = [m for m in mutants if m.key not in known or (options.compiled and known[m.key]["caught_by"] is None)]
    by_tests = {frozenset(relevant(mutant.file, options.compiled)): mutant.file for mutant in left}
    for file in by_tests.values():
        failed = failed_test(SOURCES.parent, file, options.compiled, options.limit)
        if failed is not None:
            raise SystemExit(f"tests must pass without a planted bug, got a failure of {failed}")
    for number, mutant in enumerate(left, 1):
        row = judge(mutant, options.compiled, options.limit)
        known[mutant.key] = row
        with kept.open("a") as lines:
            lines.write(json.dumps(row) + "\n")
        survived = sum(known[done.key]["caught_by"] is None for done in left[:number])
        bar, end = ("#" * (30 * number // len(left))).ljust(30), "\n" if number == len(left) else ""
        print(f"\r{bar} {number}/{len(left)}, {survived} survived", end=end, flush=True, file=sys.stderr)
    text = report([known[mutant.key] for mutant in mutants])
    (options.out / "report.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main(sys.argv[1:])
