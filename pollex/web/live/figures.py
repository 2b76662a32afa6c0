"""Figures of the service for Prometheus."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info, generate_latest

from pollex.rubrics.rubric_set import RubricSet

BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
"""Seconds: the usual ones begin at five milliseconds, where scoring has ended."""


class Figures:
    """Counters of one service, in a registry of its own."""

    def __init__(self) -> None:
        self._registry = own = CollectorRegistry()
        self._scored = Counter("pollex_scored", "Conversations by outcome.", ["outcome"], registry=own)
        self._seconds = Histogram("pollex_scoring_seconds", "Time to score one.", buckets=BUCKETS, registry=own)
        self._requests = Counter("pollex_requests", "Requests by status.", ["status"], registry=own)
        self._latency = Histogram("pollex_request_seconds", "Time to answer one.", buckets=BUCKETS, registry=own)
        self._reloads = Counter("pollex_set_reloads", "Reloads of the rubric set.", ["result"], registry=own)
        self._set = Info("pollex_set", "The rubric set.", registry=own)
        self.depth = Gauge("pollex_waiting", "Conversations without a score yet.", registry=own)

    def scored(self, row: dict[str, object], seconds: float) -> None:
        """Count a conversation."""
        self._scored.labels(str(row["outcome"])).inc()
        self._seconds.observe(seconds)

    def answered(self, status: int, seconds: float) -> None:
        """Count a request."""
        self._requests.labels(str(status)).inc()
        self._latency.observe(seconds)

    def reloaded(self, result: str) -> None:
        """Count a reload."""
        self._reloads.labels(result).inc()

    def using(self, rubrics: RubricSet) -> None:
        """Name the set that is used now."""
        self._set.info({"run": rubrics.run, "digest": rubrics.rubrics_digest, "judge": rubrics.judge.name})

    def text(self) -> bytes:
        """Return all in Prometheus' text format."""
        return generate_latest(self._registry)
