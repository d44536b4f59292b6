"""Numbers for Prometheus."""

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from polyarm.service.clock import SECOND, now
from polyarm.service.replica import Replica


class Metrics:
    """Counters of one process."""

    def __init__(self, replica: Replica) -> None:
        self.registry = CollectorRegistry()
        self.decisions = Counter(
            "polyarm_decisions", "Decisions made", ["experiment", "arm", "stream"], registry=self.registry
        )
        self.rewards = Counter("polyarm_rewards", "Reward events by verdict", ["verdict"], registry=self.registry)
        self.refusals = Counter("polyarm_refusals", "Requests refused, by status", ["status"], registry=self.registry)
        self.seconds = Histogram(
            "polyarm_request_seconds",
            "Time of a request",
            ["route"],
            registry=self.registry,
            buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0),
        )
        self.registry.register(_Gauges(replica))

    def text(self) -> bytes:
        """Everything in Prometheus's text format."""
        return generate_latest(self.registry)


class _Gauges(Collector):
    def __init__(self, replica: Replica) -> None:
        self._replica = replica

    def collect(self) -> Iterable[Metric]:
        """What is read off at the moment of asking."""
        replica = self._replica
        waiting = GaugeMetricFamily("polyarm_waiting_writes", "Requests waiting for a commit")
        waiting.add_metric([], replica.writer.waiting)
        rows = GaugeMetricFamily("polyarm_rows_per_commit", "Jobs written per commit, mean")
        rows.add_metric([], replica.writer.rows / max(replica.writer.batches, 1))
        leader = GaugeMetricFamily("polyarm_is_learner", "Whether this process holds the lease to learn")
        leader.add_metric([], float(replica.learner.lease is not None))
        age = GaugeMetricFamily("polyarm_seconds_since_refresh", "Age of what this process knows of the database")
        age.add_metric([], (now() - replica.seen_at) / SECOND)
        snapshot = GaugeMetricFamily("polyarm_snapshot", "Version of the snapshot in use", labels=["experiment"])
        for name, live in replica.live.items():
            snapshot.add_metric([name], live.snapshot)
        return [waiting, rows, leader, age, snapshot]
