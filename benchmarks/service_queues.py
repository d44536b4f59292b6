"""Queues of a service of many machines, simulated from what one was measured to take.

    python -m benchmarks.service_queues

A decision passes three stations: a core that computes and answers (one request at a time), the writer of its replica
(everything that waits shares one commit), and the database, whose core works on every row.  Service times are those
of `benchmarks.service_load`; arrivals are random.  The stations that a plan multiplies are multiplied here, traffic is
spread over them, and one of each kind is simulated; the busiest decides.

The last line compares a flood of 64 clients in this simulation with the one that was measured.
"""

import argparse
import heapq
from dataclasses import dataclass, replace

import numpy as np

CORE = 350e-6  # seconds of a core for a decision: HTTP, the model, the answer (silent server, spread 0.35)
WRITE = 90e-6  # seconds of the same core for writing its row: the interpreter runs one thread at a time
COMMIT = 8e-3  # seconds of a commit, whatever it holds: five of the disk, and the statements around it
ROW = 170e-6  # seconds of PostgreSQL's core for a decision (71) and its reward (97), sums included
LEARN = 460e-6  # seconds of a learner's core for an outcome


@dataclass(frozen=True)
class Plan:
    """How many of each there are."""

    name: str
    rate: float  # decisions a second
    replicas: int
    databases: int  # 0: a SQLite file inside the replica
    learners: int = 1
    learnt_share: float = 1.0
    row: float = ROW
    commit: float = COMMIT

    @property
    def loads(self) -> dict[str, float]:
        """Share of its time that each kind of station is busy; beyond one it falls behind for ever."""
        loads = {
            "replica": self.rate * (CORE + WRITE) / self.replicas,
            "learner": self.rate * self.learnt_share * LEARN / self.learners,
        }
        if self.databases:
            loads["database"] = self.rate * self.row / self.databases
        return loads

    @property
    def first_limit(self) -> tuple[str, float]:
        """The busiest station, and the rate at which it is fully busy."""
        name, load = max(self.loads.items(), key=lambda item: item[1])
        return name, self.rate / load


def simulate(plan: Plan, n: int, seed: int, clients: int | None = None) -> np.ndarray:
    """Times of n decisions at one replica, from arrival to answer, seconds; with clients, each asks again at once."""
    rng = np.random.default_rng(seed)
    others = plan.loads.get("database", 0.0) * (1 - 1 / plan.replicas)
    rate = plan.rate / plan.replicas
    arrivals = [0.0] * clients if clients else list(np.cumsum(rng.exponential(1 / rate, n)))
    heapq.heapify(arrivals)
    core_free = commit_free = 0.0
    waiting: list[tuple[float, float]] = []  # ready to be written, arrived
    times: list[float] = []

    def commit(start: float) -> float:
        """Write all that is ready at the start; returns the time at which it is done."""
        batch = [entry for entry in waiting if entry[0] <= start]
        waiting[:] = [entry for entry in waiting if entry[0] > start]
        # other replicas' rows are in the database's way in proportion to how busy it is
        work = len(batch) * plan.row / max(1.0 - others, 1e-3) if plan.databases else 0.0
        done = start + plan.commit * rng.lognormal(-0.08, 0.4) + work
        for _, arrived in batch:
            times.append(done - arrived)
            if clients:
                heapq.heappush(arrivals, done)
        return done

    while len(times) < n and (arrivals or waiting):
        following = min(entry[0] for entry in waiting) if waiting else np.inf
        if waiting and max(commit_free, following) <= max(arrivals[0] if arrivals else np.inf, core_free):
            commit_free = commit(max(commit_free, following))
            continue
        arrived = heapq.heappop(arrivals)
        core_free = max(core_free, arrived) + (CORE + WRITE) * rng.gamma(8.0, 1 / 8.0)
        waiting.append((core_free, arrived))
    return np.array(times[n // 10 :])


PLANS = (
    Plan("one process on SQLite", 1_000, 1, 0),
    Plan("one process on SQLite", 2_000, 1, 0),
    Plan("2 replicas, one PostgreSQL", 2_000, 2, 1),
    Plan("8 replicas, one core of PostgreSQL", 10_000, 8, 1, learners=8),
    Plan("8 replicas, 4 cores of PostgreSQL", 10_000, 8, 4, learners=8),
    Plan("8 replicas, 4 shards, learning from a fifth", 10_000, 8, 4, learners=2, learnt_share=0.2),
    Plan("800 replicas, 320 shards, learning from 1 %", 1_000_000, 800, 320, learners=8, learnt_share=0.01),
    Plan("800 replicas, log in Parquet, learning from 1 %", 1_000_000, 800, 40, 8, 0.01, row=4e-6, commit=50e-3),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--decisions", type=int, default=40_000, help="of one replica (default 40000)")
    options = parser.parse_args()
    print("plan | decisions/s | replica | database | learner | p50 ms | p99 ms | first limit")
    for plan in PLANS:
        loads = plan.loads
        name, limit = plan.first_limit
        overloaded = any(loads[kind] >= 1.0 for kind in ("replica", "database") if kind in loads)
        if overloaded:
            p50, p99 = "grows", "grows"
        else:
            times = 1000 * simulate(plan, options.decisions, seed=0)
            p50, p99 = (f"{np.quantile(times, q):.1f}" for q in (0.5, 0.99))
        cells = [f"{100 * loads[kind]:.0f} %" if kind in loads else "-" for kind in ("replica", "database", "learner")]
        print(f"{plan.name} | {plan.rate:,.0f} | {' | '.join(cells)} | {p50} | {p99} | {name} at {limit:,.0f}")
    flood = simulate(replace(PLANS[0], rate=1.0), options.decisions, seed=0, clients=64)
    print(f"64 clients at once, SQLite: {64 / flood.mean():.0f} decisions/s, p50 {1000 * np.median(flood):.1f} ms")


if __name__ == "__main__":
    main()
