"""The arm is drawn from the very probabilities that are logged, and anybody can draw it again."""

import math
import os
import subprocess
import sys
import uuid

import numpy as np
import pytest
from scipy import stats

from polyarm.bandit.identity import new_id, new_ids, require_id
from polyarm.bandit.lottery import (
    KeyedStream,
    arm_at,
    digest,
    draw_arm,
    drawn,
    drawn_many,
    rng_at,
    ticket,
    tickets,
)
from polyarm.errors import InvalidArgument, NumericalFailure
from polyarm.kernels.lottery import PLACES
from polyarm.types import Array, IntArray

RARE = [5e-4, 0.2495, 0.25, 0.5]


def places_of(rows: Array) -> Array:
    """Probabilities that decisions are drawn from, for those of a policy, (n, n_arms)."""
    return drawn_many(rows, np.ones(rows.shape[1], np.bool_), 0.0, np.zeros(len(rows), np.int64))[0]


def arms_at(places: IntArray, rows: Array) -> IntArray:
    """Arms of decisions with these places, (n,)."""
    return drawn_many(rows, np.ones(rows.shape[1], np.bool_), 0.0, places)[1]


def test_the_hash_never_changes() -> None:
    assert ticket(7, "018f6b1e-0000-7000-8000-000000000000") == 4587904812832477
    assert draw_arm(7, "a", [0.25, 0.25, 0.5]) == 2
    assert rng_at(7, "a").integers(2**32) == 903011592
    assert digest(7, "a", "learning") != digest(7, "a") != digest(8, "a")


def test_a_stream_starts_where_the_digest_says_however_it_is_set() -> None:
    quick, slow = KeyedStream(), KeyedStream()
    assert quick._memory is not None
    slow._memory = None
    for name in map(str, range(50)):
        quick.rng.integers(9, dtype=np.uint32)  # leaves half a number behind, which must be gone
        rngs = [stream.at(digest(3, name)) for stream in (quick, slow)]
        assert rngs[0].bit_generator.state == rngs[1].bit_generator.state
        assert rngs[0].integers(2**20, dtype=np.uint32) == rngs[1].integers(2**20, dtype=np.uint32)
        assert rngs[0].standard_normal() == rngs[1].standard_normal()


def test_probabilities_become_exact_shares_of_the_places() -> None:
    rng = np.random.default_rng(0)
    rows = rng.dirichlet(np.full(6, 0.1), 200)
    shares = places_of(rows)
    assert ((shares * PLACES).astype(np.int64).sum(axis=1) == PLACES).all()
    assert np.abs(shares - rows).max() < 8 / PLACES
    assert [drawn(row, np.ones(6, np.bool_), 0.0, 0)[0].tolist() for row in rows] == shares.tolist()
    assert places_of(shares).tolist() == shares.tolist(), "drawing from what was logged draws from the same"


def test_no_probability_is_lost_in_rounding() -> None:
    assert places_of(np.array([[1e-300, 1.0]]))[0, 0] == 2.0**-53
    assert places_of(np.array([[0.0, 1.0]])).tolist() == [[0.0, 1.0]]
    assert places_of(np.array([[0.05, 0.95]])).min() >= 0.05


def test_edges_belong_to_one_arm_each() -> None:
    shares = [0.25, 0.0, 0.75]
    quarter = PLACES // 4
    assert [arm_at(place, shares) for place in (0, quarter - 1, quarter, PLACES - 1)] == [0, 0, 2, 2]
    edges = (0, quarter - 1, quarter, PLACES - 1)
    for place, arm in zip(edges, (0, 0, 2, 2), strict=True):
        exact, found = drawn(np.array(shares), np.ones(3, np.bool_), 0.0, place)
        assert (exact.tolist(), found) == (shares, arm)
    places = np.array([0, quarter - 1, quarter, PLACES - 1])
    assert arms_at(places, np.array([shares] * 4)).tolist() == [0, 0, 2, 2]


def places_by_hand(q: list[float], eligible: list[bool], least: float) -> list[int]:
    """What every arm gets of the places, in whole numbers."""
    if least > 0:
        n = sum(eligible)
        q = [(1 - n * least) * share + least if may else 0.0 for share, may in zip(q, eligible, strict=True)]
    places = [math.ceil(share * PLACES) for share in q]
    places[places.index(max(places))] += PLACES - sum(places)
    return places


def test_the_draw_agrees_with_whole_numbers() -> None:
    rng = np.random.default_rng(1)
    for turn in range(300):
        n = int(rng.integers(1, 9))
        eligible = rng.random(n) < 0.7
        eligible[rng.integers(n)] = True
        q = np.where(eligible, rng.dirichlet(np.full(n, 0.1)) + 1e-12, 0.0)
        q /= q.sum()
        least = (0.0, 1e-5, 0.9 / n)[turn % 3]
        place = int(rng.integers(PLACES))
        exact, arm = drawn(q, eligible, least, place)
        places = places_by_hand(q.tolist(), eligible.tolist(), least)
        edges = np.cumsum(places)
        assert exact.tolist() == [share / PLACES for share in places]
        assert edges[arm] > place >= edges[arm] - places[arm]
        assert eligible[arm]


@pytest.mark.parametrize("q", [[0.5, 0.6], [0.5, math.nan], [1.5, -0.5], [0.0, 0.0]])
def test_what_is_no_distribution_is_refused(q: list[float]) -> None:
    with pytest.raises(NumericalFailure, match="must be a distribution"):
        drawn(np.array(q), np.ones(2, np.bool_), 0.0, 0)


@pytest.mark.parametrize("seed", [0, 2**64 - 1])
def test_frequencies_are_the_probabilities_also_for_a_rare_arm(seed: int) -> None:
    n = 100_000
    places = tickets(seed, [f"decision {i}" for i in range(n)])
    assert places[17] == ticket(seed, "decision 17")
    counts = np.bincount(arms_at(places, np.tile(places_of(np.array([RARE])), (n, 1))), minlength=4)
    assert stats.chisquare(counts, n * np.array(RARE)).pvalue > 1e-3
    planted = np.bincount((places * 4) // PLACES, minlength=4)
    assert stats.chisquare(planted, n * np.array(RARE)).pvalue < 1e-4


def test_ids_are_uuids_that_sort_by_time() -> None:
    ids = [new_id(), *new_ids(500), new_id(), *(new_id() for _ in range(500))]
    assert ids == sorted(ids)
    assert len(set(ids)) == 1002
    assert {(uuid.UUID(name).version, uuid.UUID(name).variant) for name in ids} == {(7, uuid.RFC_4122)}


@pytest.mark.parametrize("bad", ["", "a\nb", "x" * 201, 7, None, b"a", "\ud800"])
def test_bad_ids_are_refused(bad: object) -> None:
    with pytest.raises(InvalidArgument, match="id must be text"):
        require_id(bad)  # type: ignore[arg-type]


FORKED = """
import os
from polyarm.bandit.identity import new_id

new_id()
child = os.fork()
if child:
    os.waitpid(child, 0)  # both write to one pipe: one after the other
print(*(new_id()[15:] for _ in range(50)), flush=True)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_process_gives_ids_of_its_own() -> None:
    done = subprocess.run([sys.executable, "-c", FORKED], capture_output=True, text=True, check=True)
    both = done.stdout.split()
    assert len(both) == len(set(both)) == 100
