"""What a party counts and times of its service, for pages of metrics: nothing of values.

The serving loop writes; a status page reads :meth:`Observed.snapshot`, from any thread."""

from bisect import bisect_left
from collections.abc import Callable, Mapping
from threading import Lock
from typing import NamedTuple

#: The upper bounds of a histogram's buckets, in seconds.
BUCKETS = (
    *(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5),
    *(1.0, 2.5, 5.0, 10.0, 30.0),
)


class Metric(NamedTuple):
    """A metric: whether it is a "counter", a "gauge" or a "histogram", and what it says."""

    kind: str
    help: str
    #: The names of its labels, whose values are names of the configuration or of this package.
    labels: tuple[str, ...] = ()


#: All metrics, by name.
METRICS: Mapping[str, Metric] = {
    "requests": Metric(
        "counter",
        "Requests by how they ended: answered, refused or failed",
        ("model", "version", "outcome"),
    ),
    "batches": Metric("counter", "Batches that were computed", ("model", "version")),
    "stage_seconds": Metric(
        "histogram",
        "Seconds of each stage of a request: queue, agree, take, compute, seal, answer",
        ("stage",),
    ),
    "queue": Metric("gauge", "Requests that wait"),
    "bytes_sent": Metric("counter", "Bytes sent to the other parties"),
    "bytes_received": Metric("counter", "Bytes received from the other parties"),
    "rounds": Metric("counter", "Rounds with the other parties"),
    "correlations_bytes": Metric(
        "gauge", "Bytes of correlations that the source makes or has made, and none has taken"
    ),
    "sessions_opened": Metric("counter", "Sessions opened with the other parties"),
    "is_ready": Metric("gauge", "1 while a session is open and all models are bound, else 0"),
}

#: A metric's name, and the values of its labels.
Series = tuple[str, tuple[str, ...]]


class Histogram(NamedTuple):
    """Seconds that were observed: how many in each bucket and beyond, and their sum."""

    #: Not cumulative; one more than there are bounds.
    counts: tuple[int, ...]
    sum: float


class Snapshot(NamedTuple):
    """All metrics at one moment."""

    values: dict[Series, float]
    histograms: dict[Series, Histogram]


class Observed:
    """The metrics of one party."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._values: dict[Series, float] = {}
        self._followed: dict[Series, Callable[[], float]] = {}
        self._histograms: dict[Series, tuple[list[int], float]] = {}

    def count(self, name: str, amount: float = 1, *labels: str) -> None:
        """Adds to a counter."""
        key = _series(name, "counter", labels)
        with self._lock:
            self._values[key] = self._values.get(key, 0) + amount

    def set(self, name: str, value: float, *labels: str) -> None:
        """Sets a gauge."""
        key = _series(name, "gauge", labels)
        with self._lock:
            self._values[key] = value

    def follow(self, name: str, read: Callable[[], float], *labels: str) -> None:
        """Reads a gauge anew each time that it is asked for."""
        self._followed[_series(name, "gauge", labels)] = read

    def time(self, name: str, seconds: float, *labels: str) -> None:
        """Adds an observation to a histogram."""
        key = _series(name, "histogram", labels)
        with self._lock:
            counts, total = self._histograms.get(key, ([0] * (len(BUCKETS) + 1), 0.0))
            counts[bisect_left(BUCKETS, seconds)] += 1
            self._histograms[key] = counts, total + seconds

    def value(self, name: str, *labels: str) -> float:
        """Returns a counter or a gauge; 0 if nothing was observed yet."""
        if (name, labels) in self._followed:
            return self._followed[name, labels]()
        with self._lock:
            return self._values.get((name, labels), 0)

    def snapshot(self) -> Snapshot:
        """Returns all metrics, as they are at one moment."""
        followed = {key: read() for key, read in self._followed.items()}
        with self._lock:
            return Snapshot(
                self._values | followed,
                {
                    key: Histogram(tuple(counts), total)
                    for key, (counts, total) in self._histograms.items()
                },
            )


def _series(name: str, kind: str, labels: tuple[str, ...]) -> Series:
    metric = METRICS[name]
    assert metric.kind == kind, f"{name} is a {metric.kind}"
    assert len(labels) == len(metric.labels), f"{name} has the labels {metric.labels}"
    return name, labels
