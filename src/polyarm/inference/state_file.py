"""A state in one file: a zip of plain NumPy arrays, no pickle, with the format's version inside."""

import json
import os
import zipfile
import zlib
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from polyarm.errors import BrokenFile, require_writable_parent
from polyarm.types import State

FORMAT = 1
HEADER = "polyarm.json"
DAMAGED = (OSError, KeyError, TypeError, ValueError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error)


def leaves(state: Any, path: str = "state") -> Iterator[tuple[str, Any]]:
    """Every array and number of a nested state with its path."""
    if isinstance(state, tuple):
        names = getattr(state, "_fields", range(len(state)))
        for name, value in zip(names, state, strict=True):
            yield from leaves(value, f"{path}.{name}")
    elif isinstance(state, list):
        for index, value in enumerate(state):
            yield from leaves(value, f"{path}.{index}")
    else:
        yield path, state


def shape_of(state: Any, growing: Collection[int] = ()) -> Any:
    """The nesting and the shapes of a state: what must agree between a file and the policy that reads it.

    A state class whose arrays grow with the data names their growing axes by a static method `growing_axes`, as
    {"data": (0,)}; a growing axis is written as None, every other one is fixed by the policy's settings.
    """
    if isinstance(state, (tuple, list)):
        axes: dict[str, tuple[int, ...]] = getattr(state, "growing_axes", dict)()
        names = getattr(state, "_fields", [""] * len(state))
        parts = [shape_of(value, axes.get(name, growing)) for name, value in zip(names, state, strict=True)]
        return [type(state).__name__, parts]
    array = np.asarray(state)
    return [type(state).__name__, str(array.dtype), [None if i in growing else n for i, n in enumerate(array.shape)]]


def save_state(path: str | Path, state: Any) -> Path:
    """Write a state to one file; an interrupted write leaves the old file whole."""
    target = require_writable_parent(path)
    header = {"format": FORMAT, "kind": "polyarm state", "shape": shape_of(state)}
    part = target.with_name(f"{target.name}.{os.getpid()}.part")
    try:
        with zipfile.ZipFile(part, "w") as archive:
            archive.writestr(HEADER, json.dumps(header))
            for name, value in leaves(state):
                with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                    np.lib.format.write_array(file, np.asarray(value), allow_pickle=False)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)
    return target


def load_state(path: str | Path, like: State) -> State:
    """The state in a file, for the engine or policy whose `init()` is `like`; continues bit for bit."""
    try:
        with zipfile.ZipFile(path) as archive:
            header = json.loads(archive.read(HEADER))
            if not isinstance(header, dict) or header.get("format") != FORMAT:
                raise BrokenFile(f"path must be a polyarm state of format {FORMAT}, got another: {path}")
            expected = shape_of(like)
            if header.get("shape") != expected:
                raise BrokenFile(f"path must be a state of this policy and these arms, got another's: {path}")
            state: State = read_like(archive, like)
            if shape_of(state) != expected:
                raise BrokenFile(f"path must hold the arrays that it announces, got others: {path}")
            return state
    except DAMAGED as error:
        if isinstance(error, BrokenFile):
            raise
        raise BrokenFile(f"path must be a readable polyarm state, got {path}: {error}") from error


def read_like(archive: zipfile.ZipFile, like: Any, path: str = "state") -> Any:
    """Arrays of the archive in the nesting of `like`."""
    if isinstance(like, (tuple, list)):
        names = getattr(like, "_fields", range(len(like)))
        values = [read_like(archive, v, f"{path}.{n}") for n, v in zip(names, like, strict=True)]
        return type(like)(*values) if hasattr(like, "_fields") else type(like)(values)
    with archive.open(f"{path}.npy") as file:
        array = np.lib.format.read_array(file, allow_pickle=False)
    return array if isinstance(like, np.ndarray) else type(like)(array[()])
