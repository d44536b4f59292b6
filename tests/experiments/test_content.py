"""A value's content changes with everything a result could depend on, and with nothing else."""

import functools
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy import stats

from polyarm.environments import StaticGaussian
from polyarm.experiments.running.content import Unreadable, content
from polyarm.experiments.running.sources import hash_sources
from polyarm.types import Array

FACTOR = 2.0


class Bare:
    def __init__(self, **parts: object) -> None:
        self.__dict__.update(parts)

    @functools.cached_property
    def total(self) -> int:
        return len(self.__dict__)


class Slotted:
    __slots__ = ("k",)

    def __init__(self, k: int) -> None:
        self.k = k


class Pair(NamedTuple):
    a: int
    b: Array


@dataclass(frozen=True)
class Settings:
    scale: float
    table: Array = field(default_factory=lambda: np.zeros(3))
    twist: Callable[[float], float] = abs


def times(factor: float) -> Callable[[float], float]:
    return lambda value: factor * value


def using_global(value: float) -> float:
    return FACTOR * value


def with_default(value: float, by: float = 1.0) -> float:
    return value * by


def array(*values: float) -> Array:
    return np.array(values)


@pytest.mark.parametrize(
    ("make", "first", "second"),
    [
        (lambda k: Bare(k=k), 1, 100),
        (lambda k: Bare(k=k), 1, 1.0),
        (lambda k: Bare(k=k), 1, True),
        (lambda k: Bare(k=k), "1", 1),
        (lambda k: Bare(k=k), "a" * 90 + "b", "a" * 90 + "c"),
        (lambda k: Bare(k=k), {"x": [1, (2, 3)]}, {"x": [1, (2, 4)]}),
        (lambda k: Bare(k=k), {1, 2}, {1, 3}),
        (lambda k: Bare(k=k), range(3), range(4)),
        (lambda k: Bare(k=k), stats.norm(0, 1), stats.norm(0, 2)),
        (lambda k: Bare(k=k), np.random.default_rng(0), np.random.default_rng(1)),
        (lambda k: Bare(k=k), array(1.0, 2.0), array(1.0, np.nextafter(2.0, 3.0))),
        (lambda k: Bare(k=k), array(1.0), np.array([1])),
        (lambda k: Bare(k=k), np.zeros((2, 3)), np.zeros((3, 2))),
        (lambda k: Bare(k=k), np.array([1, "a"], dtype=object), np.array([1, "b"], dtype=object)),
        (Slotted, 1, 2),
        (lambda k: Pair(1, k), array(1.0), array(2.0)),
        (lambda k: Settings(1.0, k), np.zeros(4), np.zeros(5)),
        (lambda k: Settings(1.0, twist=k), abs, round),
        (lambda k: Settings(1.0, twist=k), times(2.0), times(3.0)),
        (lambda k: Settings(1.0, twist=k), lambda v: v + 1, lambda v: v + 2),
        (lambda k: Settings(1.0, twist=k), lambda v: v + 1, lambda v: v - 1),
        (
            lambda k: Settings(1.0, twist=k),
            functools.partial(with_default, by=2.0),
            functools.partial(with_default, by=3.0),
        ),
        (lambda k: Settings(1.0, twist=k), functools.lru_cache(times(2.0)), functools.lru_cache(times(3.0))),
        (lambda k: k.sample, StaticGaussian((0.0, 1.0)), StaticGaussian((0.0, 2.0))),
    ],
)
def test_what_differs_is_told(make: Callable[[Any], object], first: object, second: object) -> None:
    assert content(make(first)) == content(make(first))
    assert content(make(first)) != content(make(second))


def test_globals_defaults_and_inherited_code_count(monkeypatch: pytest.MonkeyPatch) -> None:
    before = content(using_global)
    monkeypatch.setitem(globals(), "FACTOR", 3.0)
    assert content(using_global) != before

    before = content(with_default)
    monkeypatch.setattr(with_default, "__defaults__", (2.0,))
    assert content(with_default) != before

    class Parent:
        def pay(self) -> float:
            return 1.0

    class Child(Parent):
        best = 1

    before = content(Child())
    monkeypatch.setattr(Parent, "pay", lambda self: 2.0)
    between = content(Child())
    monkeypatch.setattr(Child, "best", 2)
    assert len({before, between, content(Child())}) == 3


def test_what_changes_no_result_is_left_out() -> None:
    thing = Bare(k=1)
    before = content(thing)
    assert thing.total == 1
    assert content(thing) == before  # a value computed on demand and kept
    thing.itself = thing  # type: ignore[attr-defined]
    assert "(itself)" in content(thing)
    assert content(Bare(k=1)) == "Bare" + content(Bare)[len("Bare") :] + "(k=1)"


def test_a_file_counts_by_its_content(tmp_path: Path) -> None:
    table = tmp_path / "rewards.csv"
    table.write_text("1\n")
    before = content(Bare(path=table))
    table.write_text("2\n")
    assert content(Bare(path=table)) != before


def test_another_process_reads_the_same(tmp_path: Path) -> None:
    script = tmp_path / "mine.py"
    script.write_text(
        "import numpy as np\nfrom polyarm.experiments.running.content import content\n"
        "class Own:\n    def __init__(self, k):\n"
        "        self.k, self.words, self.f = k, {'b', 'a', 'c'}, lambda x: x * k\n"
        "    def sample(self, horizon, rng):\n        return np.ones(horizon) * self.k\n"
        "print(content(Own(3)))\n"
    )
    runs = {
        subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True).stdout for _ in "ab"
    }
    assert len(runs) == 1
    assert "k=3" in runs.pop()


@pytest.mark.parametrize("secret", [threading.Lock(), (n for n in range(3)), sys.__stdin__, memoryview(b"abc")])
def test_what_cannot_be_read_is_refused(secret: object) -> None:
    with pytest.raises(Unreadable):
        content(Bare(k=1, secret=secret))


def test_sources_count_by_their_code(tmp_path: Path) -> None:
    module = tmp_path / "part" / "kernel.py"
    module.parent.mkdir()
    module.write_text('"""Doc."""\ndef f(x):\n    """Doc."""\n    return x + 1\n')
    before = hash_sources([tmp_path])
    module.write_text('"""Another."""\n\n\ndef f(x):\n    return x+1  # why\n')
    assert hash_sources([tmp_path]) == before
    module.write_text("def f(x):\n    return x + 2\n")
    assert hash_sources([tmp_path]) != before
    module.rename(module.with_name("other.py"))
    module.with_name("other.py").write_text("def f(x):\n    return x + 1\n")
    assert hash_sources([tmp_path]) != before
