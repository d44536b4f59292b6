"""Files and folders that are written whole or not at all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from polyarm.errors import InvalidArgument, shown


def require_folder(path: str | Path, name: str = "out") -> Path:
    """Folder that exists and can be written, made if need be."""
    folder = Path(path)
    probe = folder / f".probe-{os.getpid()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise InvalidArgument(
            f"{name} must be a folder that can be written, got {shown(str(path))}: {error.strerror}"
        ) from None
    return folder


@contextmanager
def drafted(path: Path) -> Iterator[Path]:
    """Where to write: it takes the file's place at the end, and an interrupted write leaves the old file whole."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}")
    try:
        yield draft
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def write_atomically(path: Path, content: bytes) -> None:
    """Write the whole file or nothing."""
    with drafted(path) as draft:
        draft.write_bytes(content)
