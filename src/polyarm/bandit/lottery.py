"""The draw behind a decision: an arm from its probabilities, by a hash of the bandit's seed and the decision's id.

digest  BLAKE2b(id, key = seed, 64 bytes)
ticket  its first 53 bits: the place of the decision among 2^53 equally likely ones
stream  its next 256 bits: where the generator starts that the policy's estimate of its probabilities uses
"""

import ctypes
import hashlib
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from polyarm.errors import NumericalFailure
from polyarm.kernels import lottery as kernels
from polyarm.kernels.lottery import PLACES
from polyarm.types import Array, IntArray, Mask, Rng

NO_HALF = bytes(8)
_PERSON = {"decision": b"polyarm decision", "learning": b"polyarm learning", "looking": b"polyarm looking"}


def digest(seed: int, name: str, purpose: str = "decision") -> bytes:
    """64 bytes that only the seed, the name and the purpose decide."""
    return Digest(seed, purpose).of(name)


class Digest:
    """Digests of names for one seed and purpose; the hash of both is begun once."""

    def __init__(self, seed: int, purpose: str = "decision") -> None:
        self._begun = hashlib.blake2b(key=seed.to_bytes(8, "little"), person=_PERSON[purpose])

    def of(self, name: str) -> bytes:
        """64 bytes that only the seed, the purpose and the name decide."""
        begun = self._begun.copy()
        begun.update(name.encode())
        return begun.digest()


def ticket(seed: int, decision_id: str) -> int:
    """Place of a decision in the lottery, 0 to 2^53 - 1."""
    return ticket_in(digest(seed, decision_id))


def ticket_in(bits: bytes) -> int:
    """The ticket in a digest."""
    return int.from_bytes(bits[:8], "little") >> 11


def tickets(seed: int, ids: Sequence[str]) -> IntArray:
    """Places of many decisions, (n,)."""
    of = Digest(seed).of
    start = b"".join(of(name)[:8] for name in ids)
    return (np.frombuffer(start, "<u8") >> np.uint64(11)).astype(np.int64)


def arm_at(place: int, probabilities: Sequence[float]) -> int:
    """Arm whose share of the 2^53 places holds this one; the probabilities are multiples of 2^-53."""
    edge = 0
    for arm, probability in enumerate(probabilities):
        edge += int(probability * PLACES)
        if place < edge:
            return arm
    raise AssertionError("probabilities must sum to one")


def drawn(probabilities: Array, eligible: Mask, least: float, place: int) -> tuple[Array, int]:
    """The probabilities (n_arms,) that an arm is drawn from, with at least `least` for the eligible, and the arm."""
    exact = np.empty(len(probabilities))
    arm = kernels.draw(probabilities, eligible, least, place, exact)
    if arm < 0:
        _refuse(probabilities)
    return exact, arm


def drawn_many(probabilities: Array, eligible: Mask, least: float, places: IntArray) -> tuple[Array, IntArray]:
    """The same for many decisions: probabilities (n, n_arms) and arms (n,)."""
    exact, arms = np.empty(probabilities.shape), np.empty(len(probabilities), np.int64)
    wrong = kernels.draw_many(probabilities, eligible, least, places, exact, arms)
    if wrong >= 0:
        _refuse(probabilities[wrong])
    return exact, arms


def _refuse(q: Array) -> None:
    raise NumericalFailure(f"probabilities must be a distribution, got a sum of {q.sum()} and a least one of {q.min()}")


def draw_arm(seed: int, decision_id: str, probabilities: Sequence[float]) -> int:
    """Arm of a decision: a function of seed, id and probabilities alone, so that anybody can draw it again."""
    shares = np.array(probabilities, np.float64)
    return drawn(shares, np.ones(len(shares), np.bool_), 0.0, ticket(seed, decision_id))[1]


class KeyedStream:
    """One generator that starts anew wherever a digest says.

    A new generator takes ten microseconds and NumPy's setter of the state two.  So the 32 bytes of the state are
    written where they lie, if they are found there as this NumPy shows them.
    """

    def __init__(self) -> None:
        self.rng: Rng = np.random.Generator(np.random.PCG64(0))
        self._bits: Any = self.rng.bit_generator
        self._memory = _memory_of(self._bits)

    def at(self, bits: bytes) -> Rng:
        """The generator at the place that bytes 8 to 40 of a digest name."""
        if self._memory is None:
            start = {"state": int.from_bytes(bits[8:24], "little"), "inc": int.from_bytes(bits[24:40], "little") | 1}
            self._bits.state = {"bit_generator": "PCG64", "state": start, "has_uint32": 0, "uinteger": 0}
            return self.rng
        place, half = self._memory
        place[:] = bits[8:40]
        place[16] |= 1  # an increment is odd
        half[:] = NO_HALF
        return self.rng


def _memory_of(bits: Any) -> tuple[memoryview, memoryview] | None:
    """State and increment of a PCG64, 32 bytes, and the 8 that keep half a number; None if they are not found."""
    if int(np.__version__.split(".")[0]) > 2 or sys.byteorder != "little":
        return None
    bits.state = {**bits.state, "has_uint32": 1, "uinteger": 7}
    address = bits.ctypes.state_address
    whole = (ctypes.c_ubyte * 32).from_address(ctypes.c_void_p.from_address(address).value or 0)
    half = (ctypes.c_ubyte * 8).from_address(address + ctypes.sizeof(ctypes.c_void_p))
    known = bits.state["state"]
    expected = known["state"].to_bytes(16, "little") + known["inc"].to_bytes(16, "little")
    if bytes(whole) != expected or bytes(half) != b"\1\0\0\0\7\0\0\0":
        return None
    return memoryview(whole).cast("B"), memoryview(half).cast("B")


def rng_at(seed: int, name: str, purpose: str = "decision") -> Rng:
    """A generator of its own for one purpose: the one that a decision's probabilities are estimated with."""
    return KeyedStream().at(digest(seed, name, purpose))
