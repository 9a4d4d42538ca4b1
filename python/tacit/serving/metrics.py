"""A party's metrics in the text format of Prometheus, version 0.0.4.

The format is lines of text, so that no package is needed to write them. Values of labels are names
of the configuration and of this package, so that no client can make their number grow."""

from collections.abc import Iterator, Mapping
from itertools import accumulate

import tacit
from tacit.serving.observed import BUCKETS, METRICS, Histogram, Metric, Snapshot

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

#: A sample: the end of its name, its labels, and its value.
_Sample = tuple[str, Mapping[str, str], float]

_BUILD = Metric("gauge", "The release that runs", ("version",))


def text(found: Snapshot) -> str:
    """Returns the page of a party's metrics.

    A counter or gauge without labels is there from the start, so that its rate is known."""
    pages = [_family("build_info", _BUILD, [("", {"version": tacit.__version__}, 1)])]
    for name, metric in METRICS.items():
        if metric.kind == "histogram":
            samples = [
                sample
                for (series, values), histogram in sorted(found.histograms.items())
                if series == name
                for sample in _of_histogram(_labels(metric, values), histogram)
            ]
        else:
            values_of = {
                key: value for (series, key), value in found.values.items() if series == name
            }
            if not metric.labels:
                values_of.setdefault((), 0)
            samples = [
                ("", _labels(metric, values), value) for values, value in sorted(values_of.items())
            ]
        pages.append(_family(name, metric, samples))
    return "".join(pages)


def _labels(metric: Metric, values: tuple[str, ...]) -> dict[str, str]:
    return dict(zip(metric.labels, values, strict=True))


def _of_histogram(labels: dict[str, str], found: Histogram) -> Iterator[_Sample]:
    counts = list(accumulate(found.counts))
    for bound, count in zip([*map(str, BUCKETS), "+Inf"], counts, strict=True):
        yield "_bucket", {**labels, "le": bound}, count
    yield "_sum", labels, found.sum
    yield "_count", labels, counts[-1]


def _family(name: str, metric: Metric, samples: list[_Sample]) -> str:
    name = f"tacit_{name}_total" if metric.kind == "counter" else f"tacit_{name}"
    lines = [f"# HELP {name} {metric.help}", f"# TYPE {name} {metric.kind}"]
    for end, labels, value in samples:
        inner = ",".join(f'{label}="{_escaped(said)}"' for label, said in labels.items())
        lines.append(f"{name}{end}{{{inner}}} {value}" if inner else f"{name}{end} {value}")
    return "\n".join(lines) + "\n"


def _escaped(said: str) -> str:
    return said.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
