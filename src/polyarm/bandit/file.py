"""A bandit in one file: a zip of plain arrays and one page of JSON, no pickle, with a checksum over every byte.

polyarm.json  kind, format, settings, arms, origins, number of rewards learnt
ids.txt       ids of the decisions, one per line
ledger.*.npy  columns of the ledger
state.*.npy   the policy's state
comment       64 hexadecimal digits: BLAKE2b-256 of all bytes before them

See docs/reference/file-format.md.
"""

import contextlib
import hashlib
import io
import json
import os
import zipfile
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from polyarm.bandit.learner import Learner, Lesson
from polyarm.bandit.ledger import LEARNT, LOGGED, Ledger
from polyarm.bandit.settings import Settings
from polyarm.errors import BrokenFile, InvalidArgument, NumericalFailure, PolyarmError, require, require_writable_parent
from polyarm.files import drafted
from polyarm.inference.shapes import shape_of
from polyarm.inference.state_file import DAMAGED, array_of, leaves, read_like
from polyarm.types import Array

FORMAT = 1
KIND = "polyarm bandit"
HEADER = "polyarm.json"
DIGITS = 64

Pages = dict[str, Any]
MIGRATIONS: dict[int, Callable[[Pages], Pages]] = {}  # from each older format to the next, applied in turn


class Contents(NamedTuple):
    """All that a bandit is: settings, arms as (name, since, row, active), ledger and state.

    `state` is None in a file whose policy keeps its state in another way by now: it is learnt again.
    """

    settings: Settings
    arms: list[tuple[str, int, int, bool]]
    origins: Array
    n_learnt: int
    ids: list[str]
    columns: dict[str, NDArray[Any]]
    state: Any


def packed(contents: Contents) -> bytes:
    """The file's bytes."""
    for name, value in leaves(contents.state):
        array = np.asarray(value)
        if array.dtype.kind == "f" and np.isnan(array).any():
            raise NumericalFailure(f"{name} must be a number to be saved, got nan")
    header = {
        "kind": KIND,
        "format": FORMAT,
        "polyarm": version("polyarm"),
        "settings": contents.settings.to_json(),
        "arms": contents.arms,
        "origins": [None if np.isnan(origin) else origin for origin in contents.origins.tolist()],
        "n_learnt": contents.n_learnt,
        "shape": shape_of(contents.state),
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.comment = b"0" * DIGITS
        _add(archive, HEADER, json.dumps(header, indent=1).encode())
        _add(archive, "ids.txt", "\n".join(contents.ids).encode())
        for name, column in contents.columns.items():
            _add(archive, f"ledger.{name}.npy", _written(column))
        for name, value in leaves(contents.state):
            _add(archive, f"{name}.npy", _written(np.asarray(value)))
    data = buffer.getbuffer()
    data[-DIGITS:] = checksum(data[:-DIGITS])
    return bytes(data)


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    archive.writestr(zipfile.ZipInfo(name), content)  # without the clock, so that equal bandits are equal files


def _written(array: NDArray[Any]) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array(file, np.asarray(array, order="C"), allow_pickle=False)
    return file.getvalue()


def checksum(data: bytes | memoryview) -> bytes:
    """What the file says at its end."""
    return hashlib.blake2b(data, digest_size=DIGITS // 2).hexdigest().encode()


def write(path: str | Path, data: bytes) -> Path:
    """Write the file whole or not at all, so that it survives a loss of power."""
    target = require_writable_parent(path)
    with drafted(target) as draft, draft.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    folder = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
    return target


def read(path: str | Path) -> bytes:
    """The file's bytes."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise BrokenFile(f"path must be a file that can be read, got {path}: {error.strerror}") from None


@contextlib.contextmanager
def refusing(name: str) -> Iterator[None]:
    """Turn whatever a strange file provokes into one sentence."""
    try:
        yield
    except BrokenFile:
        raise
    except (PolyarmError, *DAMAGED, IndexError, AttributeError, NotImplementedError, MemoryError) as error:
        raise BrokenFile(f"{name} must be a saved bandit, got one that cannot be read: {error}") from error


def unpacked(data: bytes, name: str) -> Contents:
    """What the bytes of a file hold; `name` is what an error calls them."""
    if data[:2] != b"PK" or KIND.encode() not in data[:200]:
        raise BrokenFile(f"{name} must be a saved bandit, got another kind of file")
    if len(data) <= DIGITS or checksum(memoryview(data)[:-DIGITS]) != data[-DIGITS:]:
        raise BrokenFile(f"{name} must be whole, got a file whose checksum is wrong: it was cut off or changed")
    with refusing(name), zipfile.ZipFile(io.BytesIO(data)) as archive:
        pages = migrated({"header": json.loads(archive.read(HEADER)), "archive": archive}, name)
        return _contents(pages)


def migrated(pages: Pages, name: str) -> Pages:
    """The pages of an older format as today's; a newer format is refused."""
    written = pages["header"]["format"]
    if written > FORMAT:
        raise BrokenFile(f"{name} must be of format {FORMAT} or older, got {written}: a newer polyarm wrote it")
    for step in range(written, FORMAT):
        pages = MIGRATIONS[step](pages)
    return pages


def _contents(pages: Pages) -> Contents:
    header, archive = pages["header"], pages["archive"]
    settings = Settings.from_json(header["settings"])
    arms = [(str(name), int(since), int(row), bool(active)) for name, since, row, active in header["arms"]]
    text = archive.read("ids.txt").decode()
    columns = {name: _array(archive, f"ledger.{name}.npy") for name in Ledger.COLUMNS}
    ids = text.split("\n") if len(columns["arms"]) else []
    origins = np.array([np.nan if origin is None else origin for origin in header["origins"]], np.float64)
    contents = Contents(settings, arms, origins, int(header["n_learnt"]), ids, columns, None)
    require_consistent(contents)
    like = empty_learner(contents, len(arms)).state
    if header["shape"] != shape_of(like):  # another version of the library: its rewards are learnt again
        return contents
    return contents._replace(state=read_like(archive, like))


def require_consistent(contents: Contents) -> None:
    """Raise unless the parts of a file fit each other."""
    settings, columns, n = contents.settings, contents.columns, len(contents.ids)
    n_arms, n_columns = len(contents.arms), len(settings.schema.names)
    widths = {"codes": (n, n_columns), **dict.fromkeys(("eligible", "probabilities", "means"), (n, n_arms))}
    for name, column in columns.items():
        require(column.shape == widths.get(name, (n,)), f"ledger.{name}", f"of {n} rows", column.shape)
    require(len(contents.origins) == n_columns, "origins", f"one for each of {n_columns} columns", contents.origins)
    names = [name for name, *_ in contents.arms]
    require(names[: len(settings.arms)] == list(settings.arms), "arms", "those of the settings first", names)
    played = columns["arms"]
    require(bool(((played >= 0) & (played < n_arms)).all()), "ledger.arms", f"below {n_arms}", played)
    n_learnt = int(np.isin(columns["states"], (LEARNT, LOGGED)).sum())
    agrees = n_learnt == contents.n_learnt or n == 0  # a service keeps the ledger elsewhere
    require(agrees, "n_learnt", f"the {n_learnt} rewards of the ledger", contents.n_learnt)


def _array(archive: zipfile.ZipFile, name: str) -> NDArray[Any]:
    return array_of(archive.read(name))


def empty_learner(contents: Contents, n_arms: int) -> Learner:
    """A learner for so many arms before any reward."""
    policy = contents.settings.make_policy()
    learner = Learner(policy, policy.init(), contents.settings.seed, n_arms=len(contents.settings.arms))
    while learner.n_arms < n_arms:
        learner.add_arm()
    return learner


def learner_of(contents: Contents) -> Learner:
    """The learner whose state a file holds."""
    n_arms = len(contents.arms)
    if contents.state is None:
        return learnt_again(contents, contents.n_learnt, n_arms)
    policy = empty_learner(contents, n_arms).policy
    learner = Learner(policy, contents.state, contents.settings.seed, contents.n_learnt, n_arms)
    learner.require_sound()
    return learner


def learnt_again(contents: Contents, n_learnt: int, n_arms: int) -> Learner:
    """The learner after the first so many rewards of the ledger, with so many arms: exactly what it was then."""
    learner = empty_learner(contents, len(contents.settings.arms))
    _learn_until(learner, contents, _lessons(contents, n_learnt), n_learnt, n_arms)
    return learner


def learners_along(contents: Contents, times: Sequence[int]) -> Iterator[Learner]:
    """The learner after each of these numbers of rewards, in rising order; one and the same, that learns on."""
    learner = empty_learner(contents, len(contents.settings.arms))
    lessons = _lessons(contents, times[-1])
    for n_learnt in times:
        n_arms = sum(since <= n_learnt for _, since, _, _ in contents.arms)
        _learn_until(learner, contents, lessons, n_learnt, n_arms)
        yield learner


def _lessons(contents: Contents, n_learnt: int) -> list[Lesson]:
    columns = contents.columns
    learnt = np.flatnonzero((columns["states"] == LEARNT) | (columns["states"] == LOGGED))
    rows = learnt[np.argsort(columns["turns"][learnt], kind="stable")][:n_learnt]
    if not np.array_equal(columns["turns"][rows], np.arange(n_learnt)):
        raise InvalidArgument(f"ledger must hold the first {n_learnt} rewards, got {len(rows)} of them")
    xs = contents.settings.schema.features_many(columns["codes"][rows], contents.origins)
    return list(zip(xs, columns["arms"][rows].tolist(), columns["rewards"][rows].tolist(), strict=True))


def _learn_until(learner: Learner, contents: Contents, lessons: Sequence[Lesson], n_learnt: int, n_arms: int) -> None:
    for _, since, _, _ in contents.arms[learner.n_arms : n_arms]:
        learner.learn(lessons[learner.n_learnt : since])
        learner.add_arm()
    learner.learn(lessons[learner.n_learnt : n_learnt])
