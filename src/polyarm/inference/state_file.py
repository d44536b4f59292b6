"""A state in one file: a zip of plain NumPy arrays, no pickle.

Its header says the format's version, the shapes, the settings that the state was made with and those of the policy,
and a SHA-256 of all of it, arrays included.  Files of format 1 have neither settings nor hash: they are read by their
shapes and by the checks that every state must pass.
"""

import hashlib
import json
import math
import re
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from polyarm.errors import BrokenFile, InvalidArgument, require, require_writable_parent
from polyarm.files import drafted
from polyarm.inference.door import KEEPING, copied, described, difference, named, require_settings, require_sound
from polyarm.inference.shapes import MADE_WITH, added_to, n_added, shape_of
from polyarm.types import AnyEngine, AnyPolicy, State

FORMAT = 2
READABLE = (1, 2)
HEADER = "polyarm.json"
DAMAGED = (
    *(OSError, KeyError, TypeError, ValueError, EOFError, RuntimeError, ArithmeticError, MemoryError),
    *(zipfile.BadZipFile, zlib.error),
)
MAGIC = b"\x93NUMPY\x01\x00"  # of `np.save`, then two bytes with the size of what is said of the array
SAID = re.compile(rb"\{'descr': '([^']+)', 'fortran_order': (False|True), 'shape': \(([0-9, ]*)\), \} *\n")


def leaves(state: Any, path: str = "state", earlier: int = 0) -> Iterator[tuple[str, Any]]:
    """Every array and number of a nested state with its path; with `earlier`, those that earlier versions had."""
    if isinstance(state, (tuple, list)):
        left_out = added_to(state, earlier)
        for name, value in named(state):
            if name not in left_out:
                yield from leaves(value, f"{path}.{name}", earlier)
    else:
        yield path, state


def made_with(state: Any, path: str = "state") -> Iterator[tuple[str, str]]:
    """The settings that the parts of a state were made with, by path; parts that do not know are left out."""
    if isinstance(state, (tuple, list)):
        settings = getattr(state, MADE_WITH, "")
        if settings:
            yield path, settings
        for name, value in named(state):
            yield from made_with(value, f"{path}.{name}")


def save_state(path: str | Path, state: Any, policy: AnyPolicy | AnyEngine | None = None) -> Path:
    """Write a state to one file; an interrupted write leaves the old file whole.

    With the policy, or engine, that it belongs to, the file also carries all its settings.

    >>> import tempfile
    >>> from polyarm import make_policy
    >>> policy = make_policy("linear", 2, 1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_state(f"{folder}/state.npz", policy.init(), policy).name
    'state.npz'
    """
    target = require_writable_parent(path)
    require_sound(state)
    header = {"format": FORMAT, "kind": "polyarm state", "shape": shape_of(state), "settings": dict(made_with(state))}
    header["policy"] = None if policy is None else described(policy, KEEPING)
    header["sha256"] = hash_of(header, state)
    with drafted(target) as draft, zipfile.ZipFile(draft, "w") as archive:
        archive.writestr(HEADER, json.dumps(header))
        for name, value in leaves(state):
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, np.asarray(value), allow_pickle=False)
    return target


def hash_of(header: dict[str, Any], state: Any, earlier: int = 0) -> str:
    """SHA-256 of what a file says about a state and of all its numbers."""
    digest = hashlib.sha256()
    digest.update(json.dumps({k: v for k, v in header.items() if k != "sha256"}, sort_keys=True).encode())
    for name, value in leaves(state, earlier=earlier):
        array = np.asarray(value)
        digest.update(f"{name} {array.dtype} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


@overload
def load_state(path: str | Path, like: State, policy: AnyPolicy | AnyEngine | None = None) -> State: ...


@overload
def load_state(path: str | Path, like: None = None, policy: AnyPolicy | AnyEngine | None = None) -> Any: ...


def load_state(path: str | Path, like: Any = None, policy: AnyPolicy | AnyEngine | None = None) -> Any:
    """The state in a file, for a policy or engine, or for the one whose `init()` is `like`; continues bit for bit.

    A state goes on with another `memory` or `half_life` than it was saved with; with any other difference in the
    settings that its numbers owe their meaning to, and with `policy` in any other difference, it is refused.

    >>> import tempfile
    >>> from polyarm import make_policy, save_state
    >>> policy = make_policy("linear", 2, 1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = save_state(f"{folder}/state.npz", policy.init(), policy)
    ...     state = load_state(path, policy=policy)
    >>> type(state).__name__ == type(policy.init()).__name__
    True
    """
    require(like is not None or policy is not None, "policy", "given, or a state in `like`", None)
    wanted: Any = policy.init() if like is None and policy is not None else like
    try:
        with zipfile.ZipFile(path) as archive:
            header = json.loads(archive.read(HEADER))
            if not isinstance(header, dict) or header.get("format") not in READABLE:
                raise BrokenFile(f"path must be a polyarm state of format {FORMAT}, got another: {path}")
            require_same_settings(header, wanted, policy, path)
            expected = shape_of(wanted)
            versions = range(1 + n_added(wanted))
            earlier = next((n for n in versions if header.get("shape") == shape_of(wanted, earlier=n)), None)
            if earlier is None:
                raise BrokenFile(f"path must be a state of this policy and these arms, got another's: {path}")
            state = read_like(archive, wanted, header.get("settings") or {}, earlier=earlier)
    except DAMAGED as error:
        if isinstance(error, BrokenFile):
            raise
        raise BrokenFile(f"path must be a readable polyarm state, got {path}: {error}") from error
    if shape_of(state) != expected:
        raise BrokenFile(f"path must hold the arrays that it announces, got others: {path}")
    if header["format"] > 1 and header.get("sha256") != hash_of(header, state, earlier):
        raise BrokenFile(f"path must hold the numbers that were saved, got others: {path}")
    try:
        require_sound(state)
    except InvalidArgument as error:
        raise BrokenFile(f"path must be a sound state, got {path}: {error}") from error
    return state


def require_same_settings(
    header: dict[str, Any], like: Any, policy: AnyPolicy | AnyEngine | None, path: str | Path
) -> None:
    """Raise unless the file was saved with the settings of the policy that reads it."""
    saved = header.get("policy")
    if saved is not None and policy is not None:
        found = difference(json.loads(json.dumps(described(policy, KEEPING))), saved)
        if found:
            raise BrokenFile(
                f"path must be a state of a policy with {found[0]} = {found[1]!r}, got one with {found[2]!r}: {path}"
            )
    theirs = header.get("settings") or {}
    for place, ours in made_with(like):
        try:
            require_settings(theirs.get(place, ""), ours, "state")
        except InvalidArgument as error:
            raise BrokenFile(
                f"path must be a state of this policy and these arms, got another's: {path}: {error}"
            ) from error


def array_of(data: bytes) -> NDArray[Any]:
    """An array as `np.save` writes it.

    NumPy reads what a file says of its array with Python's own parser, which in Python 3.11 fails now and then where
    two threads use it at once (cpython#106905), and takes twice the time.
    """
    start = len(MAGIC) + 2
    end = start + int.from_bytes(data[len(MAGIC) : start], "little")
    said = SAID.fullmatch(data, start, end)
    if not data.startswith(MAGIC) or said is None:
        raise ValueError(f"an array must begin as np.save writes it, got {data[:80]!r}")
    kind = np.dtype(said[1].decode("ascii"))
    if kind.kind in "OV" or not kind.itemsize:  # values without bytes: a small file could hold any number of them
        raise ValueError(f"an array must hold numbers, flags, dates or text, got {kind}")
    shape = tuple(int(n) for n in said[3].split(b",") if n.strip())
    if len(data) - end != kind.itemsize * math.prod(shape):
        raise ValueError(f"an array of {kind} and shape {shape} must have as many bytes, got {len(data) - end}")
    return np.ndarray(shape, kind, data, end, order="F" if said[2] == b"True" else "C").copy("K")


def read_like(
    archive: zipfile.ZipFile,
    like: Any,
    settings: dict[str, str] | None = None,
    path: str = "state",
    earlier: int = 0,
) -> Any:
    """Arrays of the archive in the nesting of `like`, with the settings that they were made with, or its own.

    With `earlier`, fields that earlier versions did not have are those of `like`.
    """
    if isinstance(like, (tuple, list)):
        left_out = added_to(like, earlier)
        values = [
            copied(value) if name in left_out else read_like(archive, value, settings, f"{path}.{name}", earlier)
            for name, value in named(like)
        ]
        if hasattr(like, MADE_WITH):
            values.append(getattr(like, MADE_WITH) if settings is None else str(settings.get(path, "")))
        return type(like)(*values) if hasattr(like, "_fields") else type(like)(values)
    member = archive.getinfo(f"{path}.npy")
    if member.compress_type != zipfile.ZIP_STORED:  # a small file could unfold to any size
        raise BrokenFile(f"{member.filename} must be stored as it is, got it compressed")
    array = array_of(archive.read(member))  # whole, so that its checksum was looked at
    return array if isinstance(like, np.ndarray) else type(like)(array[()])
