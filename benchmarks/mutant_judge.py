"""Judge mutants in forks of one process that has collected all tests: only the code of one function is swapped.

python -m pytest -p benchmarks.mutant_judge --judge FILE tests ...

The file names, one line of JSON each, a source file, a function, the changed text of the file, and the tests to run, in
order.  The first test that fails, or nothing, is written to the file's neighbour `.judged`.
"""

import importlib
import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import CodeType
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

PATIENCE = 20  # seconds of processor time after which a mutant hangs, beyond what its tests take


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--judge", type=Path, default=None, help="file of mutants")
    parser.addoption("--warm", action="store_true", help="load compiled kernels before the first fork")


def codes(code: CodeType) -> Iterator[CodeType]:
    """All code objects inside one."""
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield part
            yield from codes(part)


def function_named(module: Any, name: str) -> Any:
    """The live function of a qualified name, under whatever wraps it."""
    found = module
    for part in name.split("."):
        found = vars(found)[part]
    for wrapper in ("fget", "func", "__func__", "__wrapped__"):
        found = getattr(found, wrapper, found)
    return found


def plant(file: str, function: str, text: str) -> None:
    """Give a function of the sources the code of the changed text; nested functions change with their owner."""
    outer = function.split(".<locals>")[0]
    module = importlib.import_module("polyarm." + file.removesuffix(".py").replace("/", "."))
    whole = compile(text, str(module.__file__), "exec")
    live = function_named(module, outer)
    live.__code__ = next(code for code in codes(whole) if code.co_qualname == outer)


def first_failure(items: list[pytest.Item]) -> str | None:
    """Name of the first test that fails."""
    for number, item in enumerate(items, 1):
        following = items[number] if number < len(items) else None
        if any(report.failed for report in runtestprotocol(item, log=False, nextitem=following)):
            return item.nodeid.split("[")[0]
    return None


class Judge:
    """Runs each mutant's tests in a fork."""

    def __init__(self, file: Path, warm: bool) -> None:
        self.file, self.warm = file, warm

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {item.nodeid: item for item in session.items}
        rows = [json.loads(line) for line in self.file.read_text().splitlines()]
        if not any(name in items for row in rows for name in row["tests"]):
            raise RuntimeError("tests must be those that were looked at, got none of them")
        if self.warm:
            names = {name.split("[")[0]: name for row in rows for name in row["tests"] if name in items}
            failed = first_failure([items[name] for name in names.values()])  # one of each brings most kernels in
            if failed is not None:
                raise RuntimeError(f"tests must pass without mutants, got a failure of {failed}")
        start, survived = time.monotonic(), 0
        for number, row in enumerate(rows, 1):
            caught_by = self.judged(row, [items[name] for name in row["tests"] if name in items])
            survived += caught_by is None
            done = {"key": row["key"], "package": row["package"], "caught_by": caught_by, "tests": len(row["tests"])}
            with self.file.with_suffix(".judged").open("a") as lines:
                lines.write(json.dumps(done) + "\n")
            left_s = (time.monotonic() - start) / number * (len(rows) - number)
            bar = ("#" * (30 * number // len(rows))).ljust(30)
            told = f"\r{bar} {number}/{len(rows)}, {survived} survived, {left_s / 60:.0f} min left "
            print(told, end="" if number < len(rows) else "\n", flush=True, file=sys.__stderr__)
        return True

    def judged(self, row: dict[str, Any], items: list[pytest.Item]) -> str | None:
        """What caught a mutant, if anything did; out of time and a crash count."""
        note = self.file.with_suffix(".failed")
        note.unlink(missing_ok=True)
        child = os.fork()
        if child == 0:
            signal.setitimer(signal.ITIMER_PROF, PATIENCE + 2 * row["seconds"])
            code = 1
            try:
                plant(row["file"], row["function"], row["text"])
                failed = first_failure(items)
                code = 0 if failed is None else 1
                if failed is not None:
                    note.write_text(failed)
            finally:
                os._exit(code)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if code == 0:
            return None
        if code > 0 and not note.exists():
            raise RuntimeError(f"a mutant must be planted, got {row['key']}")
        return note.read_text() if note.exists() else "out of time" if code == -signal.SIGPROF else "a crash"


def pytest_configure(config: pytest.Config) -> None:
    file = config.getoption("--judge")
    if file is not None:
        config.pluginmanager.register(Judge(file, config.getoption("--warm")))
