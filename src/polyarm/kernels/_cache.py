"""Compiled kernels on disk.

Numba keeps compiled code as pickles, and a pickle runs what it says.  So the folder must belong to the caller or to
the administrator, and nobody else may write into it; else another place is taken, or none.  It is named by a hash of
this package's sources, and of the limits that the checks at the door share with it, because Numba does not see that a
callee or a number in another file was edited.  Every file starts with a checksum of the rest: a damaged one is compiled
again.
"""

import functools
import hashlib
import logging
import multiprocessing
import os
import pickle
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.compiler import CompileResult

VARIABLE = "POLYARM_CACHE_DIR"
KERNELS = Path(__file__).parent
LIMITS = KERNELS.parent / "errors.py"  # has the limits that kernels share with the checks at the door
CHECKSUM = hashlib.sha256
CHECKSUM_BYTES = 32

log = logging.getLogger("polyarm")


@functools.cache
def notice(text: str) -> None:
    """Say it once on standard error, or wherever the program logs; workers leave it to their parent."""
    if multiprocessing.parent_process() is None:
        log.warning("polyarm: %s", text)


@functools.cache
def folder_name() -> str:
    """Name that changes with the kernels, with Numba and NumPy, and with how Numba is told to compile."""
    config = numba.config
    digest = CHECKSUM(f"{numba.__version__} {np.__version__} {config.OPT} {config.DEBUGINFO_DEFAULT}".encode())
    for file in [*sorted(KERNELS.rglob("*.py")), LIMITS]:
        digest.update(f"{file.relative_to(KERNELS.parent)}\n".encode() + file.read_bytes())
    return f"kernels-{digest.hexdigest()[:16]}" + ("-bounds-checked" if config.BOUNDSCHECK else "")


def places() -> Iterator[Path]:
    """Folders to try: under $POLYARM_CACHE_DIR, else the user's cache folder; then the temporary folder."""
    given = os.environ.get(VARIABLE)
    if given:
        yield Path(given) / folder_name()
    else:
        home = os.path.expanduser("~")
        cache = os.environ.get("XDG_CACHE_HOME") or (f"{home}/.cache" if os.path.isabs(home) else None)
        if cache:
            yield Path(cache) / "polyarm" / folder_name()
    try:
        temporary = Path(tempfile.gettempdir())
    except FileNotFoundError:
        return
    if temporary != Path.cwd():  # which is where Python looks when nothing else can be written
        yield temporary / f"polyarm-{os.getuid()}-{folder_name()}"


def objection(folder: Path) -> str | None:
    """Why code found in that folder could be a stranger's, if so."""
    about, above = folder.stat(), folder.parent.stat().st_mode
    if about.st_uid not in (os.getuid(), 0):
        return f"{folder} belongs to another user"
    if about.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"{folder} can be written by others (make it private: chmod 700)"
    if above & stat.S_IWOTH and not above & stat.S_ISVTX:
        return f"{folder.parent} can be written by everyone"
    return None


@functools.cache
def cache_folder() -> Path | None:
    """Folder of the compiled kernels; none where no safe one can be had."""
    reasons: list[str] = []
    for folder in places():
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            reason = objection(folder)
        except OSError as error:
            reason = f"{folder} cannot be used ({error.strerror})"
        if reason is None:
            if reasons:
                notice(f"compiled kernels are kept in {folder}, because {', and '.join(reasons)}; see {VARIABLE}")
            return folder
        reasons.append(reason)
    why = ", and ".join(reasons) or "there is no home and no temporary folder"
    notice(f"compiled kernels are not kept on disk, because {why}; name a private folder in {VARIABLE}")
    return None


class CheckedFile(IndexDataCacheFile):  # type: ignore[misc]
    """Numba's index of signatures and its files of code, each with a checksum."""

    damaged = False

    def _load_index(self) -> dict[Any, str]:
        stamp, entries = self._read(self._index_path) or (None, {})
        return entries if stamp == self._source_stamp else {}

    def _save_index(self, entries: dict[Any, str]) -> None:
        self._write(self._index_path, (self._source_stamp, entries))

    def _load_data(self, name: str) -> Any:
        return self._read(self._data_path(name))

    def _save_data(self, name: str, data: Any) -> None:
        self._write(self._data_path(name), data)

    def _read(self, path: str) -> Any:
        try:
            content = Path(path).read_bytes()
        except OSError:
            return None
        if CHECKSUM(content[CHECKSUM_BYTES:]).digest() != content[:CHECKSUM_BYTES]:
            self.damaged = True
            notice(f"a damaged file among the compiled kernels is made again: {path}")
            return None
        return pickle.loads(content[CHECKSUM_BYTES:])

    def _write(self, path: str, value: Any) -> None:
        content = self._dump(value)
        with self._open_for_write(path) as file:
            file.write(CHECKSUM(content).digest() + content)


class KernelCache(FunctionCache):  # type: ignore[misc]
    """Numba's cache of one function, in our folder."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._py_func = function

    @functools.cached_property
    def _file(self) -> CheckedFile | None:
        source = Path(self._py_func.__code__.co_filename)
        folder = cache_folder()
        if folder is None or not source.exists():
            return None
        if source.is_relative_to(KERNELS):
            module = ".".join(source.relative_to(KERNELS).with_suffix("").parts)
        else:  # a kernel of a test or of another package
            folder = folder / f"{source.parent.name}-{CHECKSUM(str(source.parent).encode()).hexdigest()[:16]}"
            module = source.stem
        name = f"{module}.{self._py_func.__qualname__}-{self._py_func.__code__.co_firstlineno}"
        version = f"py{sys.version_info[0]}{sys.version_info[1]}{sys.abiflags}"
        return CheckedFile(
            str(folder), f"{name}.{version}".translate({60: None, 62: None}), CHECKSUM(source.read_bytes()).digest()
        )

    @property
    def cache_path(self) -> str | None:
        """Folder of this function's files."""
        return None if self._file is None else self._file._cache_path

    def load_overload(self, signature: Any, context: Any) -> Any:
        """Compiled code for that signature, if the folder holds it."""
        context.refresh()
        kept = self._file and self._file.load(self._index_key(signature, context.codegen()))
        if kept is None:
            if self._file is None or not self._file.damaged:
                announce()
            return None
        return CompileResult._rebuild(context, *kept)

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Keep the code; a full or read-only disk costs compiling it again, nothing else."""
        if self._file is None or compiled.library.has_dynamic_globals:
            return
        try:
            Path(self._file._cache_path).mkdir(mode=0o700, exist_ok=True)
            self._file.save(self._index_key(signature, compiled.codegen), compiled._reduce())
        except OSError as error:
            notice(f"compiled kernels cannot be kept in {cache_folder()} ({error.strerror}); see {VARIABLE}")

    def flush(self) -> None:
        """Forget what is kept."""
        if self._file is not None:
            self._file.flush()


def announce() -> None:
    """Say once that this takes a while."""
    folder = cache_folder()
    kept = "for this process alone" if folder is None else f"and keeping them in {folder}"
    notice(f"compiling kernels, {kept}; the first use of a policy takes half a minute (polyarm warm does it ahead)")
