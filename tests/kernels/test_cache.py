"""Compiled kernels on disk: private, kept, checked, and never in the way.

Most tests run a small kernel in another process, since a process looks for its folder once; `copies.py` has them ready.
"""

import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from polyarm.kernels._cache import folder_name, objection
from tests.kernels.copies import Copies

pytestmark = pytest.mark.filterwarnings("ignore:os.fork")  # JAX warns of forks once another test has loaded it

SCRIPT = """
from polyarm.kernels import _cache
from polyarm.kernels._jit import kernel

@kernel
def double(x):
    return 2 * x

assert double(21) == 42
stats = double.stats
print(sum(stats.cache_hits.values()), sum(stats.cache_misses.values()), stats.cache_path)
"""
ARRAYS = """
import numpy as np
from polyarm.kernels._jit import kernel

@kernel
def room(n):
    return np.empty(n), np.empty(n)

@kernel
def size(n):
    return room(n)[0].shape[0]

assert size(3) == 3
assert [part.shape for part in room(3)] == [(3,), (3,)]
print(sum(room.stats.cache_hits.values()), sum(room.stats.cache_misses.values()))
"""
COMPILED, LOADED = "0 1", "1 0"


@functools.cache
def copies() -> Copies:
    return Copies()


@pytest.fixture(scope="module", autouse=True)
def ended_copies() -> Iterator[None]:
    yield
    copies().close()


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "user" / "double.py"
    path.parent.mkdir()
    path.write_text(SCRIPT)
    return path


def run(script: Path, full_disk: bool = False, **environment: str) -> tuple[str, list[str]]:
    """What the kernel's statistics are, and the lines of notice."""
    done = copies().run(script, {**os.environ, **environment}, full_disk)
    assert done.code == 0, done.errors
    return done.out[:3], done.errors.splitlines()


class Kept(NamedTuple):
    """A script whose kernel is compiled, and a copy of the cache that has it."""

    script: Path
    cache: Path


@pytest.fixture(scope="module")
def compiled_once(tmp_path_factory: pytest.TempPathFactory) -> Kept:
    folder = tmp_path_factory.mktemp("kept")
    script = folder / "double.py"
    script.write_text(SCRIPT)
    assert run(script, POLYARM_CACHE_DIR=str(folder / "cache"))[0] == COMPILED
    return Kept(script, folder / "cache")


@pytest.fixture
def kept(compiled_once: Kept, tmp_path: Path) -> Iterator[Kept]:
    yield Kept(compiled_once.script, Path(shutil.copytree(compiled_once.cache, tmp_path / "cache")))
    compiled_once.script.write_text(SCRIPT)


def folder_of(base: Path) -> Path:
    return base / folder_name()


def test_a_private_folder_is_made_and_told_of_once(script: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    stats, notices = run(script, POLYARM_CACHE_DIR=str(cache))
    assert stats == COMPILED
    assert len(notices) == 1
    assert "compiling kernels" in notices[0]
    assert str(cache) in notices[0]
    assert "half a minute" in notices[0]
    assert folder_of(cache).stat().st_mode & 0o777 == 0o700
    assert run(script, POLYARM_CACHE_DIR=str(cache)) == (LOADED, [])
    assert [path.name for path in script.parent.iterdir()] == ["double.py"]


def test_a_filled_read_only_cache_is_used(kept: Kept) -> None:
    script, cache = kept
    folders = [cache, *filter(Path.is_dir, cache.rglob("*"))]
    for folder in folders:
        folder.chmod(0o500)
    try:
        assert run(script, POLYARM_CACHE_DIR=str(cache)) == (LOADED, [])
        script.write_text(SCRIPT.replace("2 * x", "x + x"))
        stats, notices = run(script, POLYARM_CACHE_DIR=str(cache))
    finally:
        for folder in folders:
            folder.chmod(0o700)
    assert stats == COMPILED
    assert len(notices) == 2  # that it compiles, and that it cannot keep the code
    assert "cannot be kept" in notices[1]


@pytest.mark.parametrize(
    ("ending", "damage"),
    [
        ("nbi", lambda content: content[: len(content) // 2]),
        ("nbc", lambda content: content[: len(content) // 2]),
        ("nbc", lambda content: content[:-1] + bytes([content[-1] ^ 1])),
    ],
)
def test_damaged_files_are_made_again(kept: Kept, ending: str, damage: Callable[[bytes], bytes]) -> None:
    (file,) = kept.cache.rglob(f"double.double*.{ending}")
    file.write_bytes(damage(file.read_bytes()))
    stats, notices = run(kept.script, POLYARM_CACHE_DIR=str(kept.cache))
    assert stats == COMPILED
    assert len(notices) == 1
    assert "a damaged file among the compiled kernels is made again" in notices[0]
    assert run(kept.script, POLYARM_CACHE_DIR=str(kept.cache)) == (LOADED, [])


def test_a_part_of_a_kernel_makes_its_arrays_when_python_calls_it(script: Path, tmp_path: Path) -> None:
    """Loaded after the kernel that it is a part of, it once found that kernel's bare copy of its environment."""
    script.write_text(ARRAYS)
    for expected in (COMPILED, LOADED):
        assert run(script, POLYARM_CACHE_DIR=str(tmp_path / "cache"))[0] == expected


def test_a_folder_that_others_can_write_is_refused(script: Path, tmp_path: Path) -> None:
    cache = folder_of(tmp_path / "cache")
    cache.mkdir(parents=True)
    cache.chmod(0o777)
    stats, notices = run(script, POLYARM_CACHE_DIR=str(tmp_path / "cache"), TMPDIR=str(tmp_path))
    assert stats == COMPILED
    assert "can be written by others" in notices[0]
    assert not list(cache.iterdir())
    assert run(script, POLYARM_CACHE_DIR=str(tmp_path / "cache"), TMPDIR=str(tmp_path))[0] == LOADED  # in TMPDIR


def test_strangers_are_not_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "kernels"
    folder.mkdir(mode=0o700)
    assert objection(folder) is None
    if os.getuid() == 0:
        os.chown(folder, 12345, 12345)
    else:
        monkeypatch.setattr(os, "getuid", lambda: 12345)
    assert "belongs to another user" in (objection(folder) or "")


def test_a_folder_that_everyone_can_rename_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "open" / "kernels"
    folder.mkdir(mode=0o700, parents=True)
    folder.parent.chmod(0o777)
    assert "can be written by everyone" in (objection(folder) or "")
    folder.parent.chmod(0o1777)  # as /tmp: nobody renames what others own
    assert objection(folder) is None


def test_nowhere_to_write_still_works(script: Path, tmp_path: Path) -> None:
    """No home, no temporary folder, sources that cannot be written: compiled in memory, with a line that says so."""
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o500)
    nowhere = f"import tempfile\ntempfile._candidate_tempdir_list = lambda: [{str(locked)!r}]\n"
    script.write_text(nowhere + SCRIPT)
    script.parent.chmod(0o500)
    try:
        stats, notices = run(script, POLYARM_CACHE_DIR=str(locked), HOME=str(locked))
    finally:
        script.parent.chmod(0o700)
    assert stats == COMPILED
    assert sum("not kept on disk" in line for line in notices) == 1
    assert [path.name for path in script.parent.iterdir()] == ["double.py"]
    assert not list(locked.iterdir())


def test_a_full_disk_still_works(script: Path, tmp_path: Path) -> None:
    stats, notices = run(script, full_disk=True, POLYARM_CACHE_DIR=str(tmp_path / "cache"))
    assert stats == COMPILED
    assert "cannot be kept" in notices[-1]
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]


def test_bounds_checked_kernels_have_their_own_folder(kept: Kept) -> None:
    now = os.environ.get("NUMBA_BOUNDSCHECK", "0")  # `make bounds` has compiled what is kept with checks
    for check in ("1", "0"):
        expected = LOADED if check == now else COMPILED
        assert run(kept.script, POLYARM_CACHE_DIR=str(kept.cache), NUMBA_BOUNDSCHECK=check)[0] == expected
    assert len(list(kept.cache.iterdir())) == 2


def test_sources_that_moved_find_their_kernels(tmp_path: Path) -> None:
    """A cache that was filled elsewhere, as when an image is built, serves the same sources in another place."""
    code = "from polyarm.kernels.linalg import triangle; print(triangle.factorise.stats.cache_path)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "POLYARM_CACHE_DIR": str(tmp_path)},
    )
    assert done.stdout.strip() == str(folder_of(tmp_path))
