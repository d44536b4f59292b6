"""Arrays as `np.save` writes them, read without NumPy: the same arrays, and nothing else is taken for one."""

import io
from typing import Any

import numpy as np
import pytest

from polyarm.inference.state_file import MAGIC, array_of

rng = np.random.default_rng(0)
ARRAYS: dict[str, Any] = {
    "a number": np.float64(3.5),
    "empty": np.zeros(0),
    "no columns": np.zeros((3, 0, 2)),
    "a matrix": rng.standard_normal((3, 4)),
    "by columns": np.asfortranarray(rng.standard_normal((3, 4))),
    "every other column": rng.standard_normal((4, 6))[:, ::2],
    "of another machine": np.arange(5, dtype=">i4"),
    "flags": np.array([True, False]),
    "text": np.array(["a", "bcd"]),
    "no text": np.array(["", ""]),
    "dates": np.array(["2020-01-01"], dtype="datetime64[ns]"),
    "many axes": np.zeros((2,) * 20),
    "wide": np.arange(3, dtype=np.uint64),
}


def written(array: Any) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array(file, np.asarray(array), allow_pickle=False)
    return file.getvalue()


@pytest.mark.parametrize("name", ARRAYS)
def test_an_array_is_the_one_that_numpy_reads(name: str) -> None:
    data = written(ARRAYS[name])
    ours, numpys = array_of(data), np.lib.format.read_array(io.BytesIO(data))
    assert (ours.dtype, ours.shape) == (numpys.dtype, numpys.shape)
    assert (ours.flags.c_contiguous, ours.flags.f_contiguous) == (numpys.flags.c_contiguous, numpys.flags.f_contiguous)
    assert ours.tobytes() == numpys.tobytes()
    assert ours.flags.owndata
    assert ours.flags.writeable
    assert ours.flags.aligned


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[:9],
        lambda data: data[:60],
        lambda data: data[:-1],
        lambda data: data + b"\x00",
        lambda data: data.replace(b"NUMPY\x01", b"NUMPY\x02"),
        lambda data: data.replace(b"(3, 4)", b"(3, 5)"),
        lambda data: data.replace(b"(3, 4)", b"(3,-4)"),
        lambda data: data.replace(b"(3, 4)", b"(3, a)"),
        lambda data: data.replace(b"(3, 4), }    ", b"(9999999999),}"),
        lambda data: data.replace(b"<f8", b"<f7"),
        lambda data: data.replace(b"<f8", b"|O8"),
        lambda data: data.replace(b"'<f8'", b"[1,2]"),
        lambda data: data.replace(b"False", b"print"),
        lambda data: data.replace(b"<f8", b"\xff\xfe8"),
    ],
)
def test_anything_else_is_refused(damage: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        array_of(damage(written(ARRAYS["a matrix"])))


def claimed(kind: str, shape: str, n_bytes: int) -> bytes:
    said = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return MAGIC + len(said).to_bytes(2, "little") + said.encode() + bytes(n_bytes)


def test_values_without_bytes_and_values_of_several_parts_are_refused() -> None:
    """A file of a hundred bytes could hold any number of the first, and reading them would take for ever."""
    assert array_of(claimed("<f8", "(12,)", 96)).tolist() == [0.0] * 12
    wrong = ("|V0", "(7,)", 0), ("<U0", "(7,)", 0), ("|S0", "(7, 7)", 0), ("2f4", "(12,)", 96), ("u4,f4", "(12,)", 96)
    for kind, shape, n_bytes in (*wrong, ("|V8", "(12,)", 96), ("|O", "(12,)", 96), ("O,f8", "(6,)", 96)):
        with pytest.raises(ValueError, match="must hold numbers, flags, dates or text, got"):
            array_of(claimed(kind, shape, n_bytes))
