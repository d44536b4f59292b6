"""Break states and files at random: nothing may crash, hang or be taken with numbers that no engine can bear.

python -m benchmarks.fuzz_states [corruptions] [seed]; `make fuzz` also checks every index of the kernels.
Each batch runs in a process of its own, so that a crash is counted and not suffered.
"""

import multiprocessing
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from tests.contracts.corruptions import corrupted, survives
from tests.contracts.engines import ENGINES
from tests.contracts.states import bits, fed, rewards

from polyarm.errors import PolyarmError
from polyarm.inference import load_state, save_state
from polyarm.types import AnyEngine, Rng

BATCH = 200
SECONDS = 900  # for a batch, compiling included


def broken_file(whole: bytes, rng: Rng) -> bytes:
    """The bytes of a file with one thing wrong: cut off, a bit or a byte changed, a piece doubled or lost."""
    at, size = int(rng.integers(len(whole))), int(rng.integers(1, 64))
    way = rng.integers(5)
    if way == 0:
        return whole[:at]
    if way == 1:
        return whole[:at] + bytes([whole[at] ^ (1 << int(rng.integers(8)))]) + whole[at + 1 :]
    if way == 2:
        return whole[:at] + rng.bytes(size) + whole[at + size :]
    if way == 3:
        return whole[:at] + whole[at : at + size] + whole[at:]
    return whole[:at] + whole[at + size :]


def try_file(engine: AnyEngine, state: Any, folder: Path, rng: Rng) -> str:
    """Load a broken file of a state."""
    path = save_state(folder / "state", state)
    path.write_bytes(broken_file(path.read_bytes(), rng))
    try:
        loaded = load_state(path, engine.init())
    except PolyarmError:
        return "file refused"
    assert bits(loaded) == bits(state), "a file was taken for another"
    return "file harmless"


def batch(seed: int, n: int) -> Counter[str]:
    """Outcomes of n corruptions of the states of a few engines."""
    rng = np.random.default_rng(seed)
    names = list(ENGINES)
    results: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for name in [names[int(i)] for i in rng.choice(len(names), 8)]:
            engine = ENGINES[name](3, 2)
            state = fed(engine, rewards(int(rng.integers(5, 80)), 2, 3, seed), rng)
            for _ in range(n // 8):
                try:
                    if rng.random() < 0.3:
                        results[try_file(engine, state, Path(folder), rng)] += 1
                    else:
                        taken = survives(engine, corrupted(state, rng), rng)
                        results["state harmless" if taken else "state refused"] += 1
                except (AssertionError, IndexError, TypeError, ValueError, ArithmeticError) as error:
                    results[f"FAILED {name}: {type(error).__name__} {str(error)[:60]}"] += 1
    return results


def in_process(seed: int, n: int, queue: Any) -> None:
    queue.put(batch(seed, n))


def guarded(seed: int, n: int) -> Counter[str]:
    """Outcomes of a batch in a process that may crash or hang."""
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    process = context.Process(target=in_process, args=(seed, n, queue))
    process.start()
    process.join(SECONDS)
    if process.is_alive():
        process.kill()
        return Counter({f"HUNG batch {seed}": n})
    if process.exitcode != 0:
        return Counter({f"CRASHED batch {seed} by signal {-(process.exitcode or 0)}": n})
    outcome: Counter[str] = queue.get()
    return outcome


def warm_up() -> None:
    """Compile in this process what its children need."""
    for build in ENGINES.values():
        engine, rng = build(3, 2), np.random.default_rng(0)
        assert survives(engine, fed(engine, rewards(20, 2, 3, 0), rng), rng)


def main(total: int = 10_000, seed: int = 0) -> int:
    warm_up()
    results: Counter[str] = Counter()
    first = seed
    while sum(results.values()) < total:
        results += guarded(seed, BATCH)
        seed += 1
        print(f"{sum(results.values()):6d} of {total}: {dict(results)}", flush=True)
    bad = sum(count for name, count in results.items() if name.split()[0] in ("FAILED", "HUNG", "CRASHED"))
    print(f"seeds {first} to {seed - 1}: {sum(results.values())} corruptions, {bad} bad")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main(*(int(argument) for argument in sys.argv[1:3])))
