"""Which tests reach which functions, and how long each takes: a pytest plugin that traces calls.

python -m pytest -p benchmarks.mutant_reach --reach-into FILE [--reach-seconds 20] tests ...

One line of JSON for each test that passes in its time.  A file that is there already is added to; tests that it holds
are not run again.
"""

import json
import signal
import sys
import time
from collections import Counter
from collections.abc import Generator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

SOURCES = str(Path(__file__).parents[1] / "src" / "polyarm") + "/"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--reach-into", type=Path, default=None, help="file of what each test reaches")
    parser.addoption("--reach-seconds", type=float, default=20.0, help="processor time after which a test is left out")


class TooSlow(BaseException):
    """The test's time is over; no test catches this."""


def stop(number: int, frame: FrameType | None) -> None:
    raise TooSlow


class Reach:
    """Follows calls into the sources."""

    def __init__(self, file: Path, seconds: float) -> None:
        self.file, self.seconds = file, seconds
        self.codes: dict[int, CodeType] = {}
        self.took = 0.0
        self.slow: Counter[str] = Counter()  # a test that is slow with two parameters is not tried with others
        lines = file.read_text().splitlines() if file.exists() else []
        self.known = {json.loads(line)["test"] for line in lines}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        searching = [item for item in items if getattr(getattr(item, "obj", None), "is_hypothesis_test", False)]
        items[:] = [item for item in items if item.nodeid not in self.known and item not in searching]

    def trace(self, frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        self.codes[id(code)] = code

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        if self.slow[item.nodeid.split("[")[0]] > 1:
            pytest.skip("too slow")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, None, None]:
        signal.signal(signal.SIGPROF, stop)
        signal.setitimer(signal.ITIMER_PROF, self.seconds)
        start = time.process_time()
        sys.settrace(self.trace)
        try:
            yield
        except TooSlow:
            self.slow[item.nodeid.split("[")[0]] += 1
            pytest.fail("too slow", pytrace=False)
        finally:
            sys.settrace(None)
            signal.setitimer(signal.ITIMER_PROF, 0.0)
            self.took = time.process_time() - start

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when != "call" or report.skipped:
            return
        reached = {
            f"{code.co_filename.removeprefix(SOURCES)} {code.co_qualname}"
            for code in self.codes.values()
            if code.co_filename.startswith(SOURCES) and not code.co_qualname.endswith(">")
        }
        self.codes.clear()
        row = {
            "test": report.nodeid,
            "passed": report.passed,
            "seconds": round(self.took, 3),
            "functions": sorted(reached),
        }
        with self.file.open("a") as file:
            file.write(json.dumps(row) + "\n")


def pytest_configure(config: pytest.Config) -> None:
    file = config.getoption("--reach-into")
    if file is not None:
        config.pluginmanager.register(Reach(file, config.getoption("--reach-seconds")))
