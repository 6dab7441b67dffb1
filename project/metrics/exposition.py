"""The shared counters as figures: requests, fetches, times and jobs."""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from project.metrics.collectors import BUCKETS, FETCH, JOB_SECONDS, JOBS, REQUESTS, SECONDS, TIMES
from project.metrics.counters import Field

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
PREFIX = "dramatis_"
Labels = Mapping[str, str]


@dataclass(frozen=True)
class Sample:
    """One number with its labels; histograms add a word to the name."""

    value: float
    labels: Labels = field(default_factory=dict)
    suffix: str = ""


@dataclass(frozen=True)
class Figure:
    """A name, what it says, and its numbers."""

    name: str
    words: str
    samples: Sequence[Sample]
    kind: str = "gauge"


def gauge(name: str, words: str, value: float | None) -> Figure:
    """A single number; none where it could not be found out."""
    return Figure(name, words, [] if value is None else [Sample(value)])


def written(figures: Iterable[Figure]) -> str:
    return "".join(line + "\n" for figure in figures if figure.samples for line in lines_of(figure))


def lines_of(figure: Figure) -> Iterator[str]:
    name = PREFIX + figure.name
    yield f"# HELP {name} {figure.words}"
    yield f"# TYPE {name} {figure.kind}"
    for sample in figure.samples:
        labels = ",".join(f'{label}="{escaped(value)}"' for label, value in sample.labels.items())
        yield f"{name}{sample.suffix}{f'{{{labels}}}' if labels else ''} {number(sample.value)}"


def escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def number(value: float) -> str:
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if value == int(value) else repr(float(value))


Sums = Mapping[Field, int]
ENDS = (*(f"{end:g}" for end in BUCKETS), "+Inf")


def counted_figures(sums: Sums) -> list[Figure]:
    return [
        Figure(
            "requests_total",
            "Answers given, by family of routes and status.",
            labelled(sums, REQUESTS, "family", "status"),
            "counter",
        ),
        Figure("fetches_total", "Fetches of a prompt by what came of them.", fetches(sums), "counter"),
        Figure("request_seconds", "How long answers took.", times(sums), "histogram"),
        Figure("jobs_total", "Jobs by name and outcome.", labelled(sums, JOBS, "job", "state"), "counter"),
        Figure(
            "job_seconds_total",
            "Seconds spent in jobs.",
            [
                Sample(sample.value / 1_000_000, sample.labels)
                for sample in labelled(sums, JOB_SECONDS, "job")
            ],
            "counter",
        ),
    ]


def labelled(sums: Sums, name: str, *labels: str) -> list[Sample]:
    chosen = sorted((key[1:], value) for key, value in sums.items() if key[0] == name)
    return [Sample(value, dict(zip(labels, said, strict=True))) for said, value in chosen]


def fetches(sums: Sums) -> list[Sample]:
    found: dict[str, int] = defaultdict(int)
    for (name, family, status), value in ((key, sums[key]) for key in sums if len(key) == 3):
        if (name, family) == (REQUESTS, FETCH):
            found[outcome(int(status))] += value
    return [Sample(value, {"outcome": said}) for said, value in sorted(found.items())]


def outcome(status: int) -> str:
    """Handed out, known to the caller already, refused for a reason of the caller's, or failed for ours."""
    if status < 300:
        return "handed_out"
    if status == 304:
        return "unchanged"
    return "refused" if status < 500 else "failed"


def times(sums: Sums) -> list[Sample]:
    families = sorted({field[1] for field in sums if field[0] == TIMES})
    return [sample for family in families for sample in histogram(sums, family)]


def histogram(sums: Sums, family: str) -> Iterator[Sample]:
    each: Sequence[int] = [sums.get((TIMES, family, str(place)), 0) for place in range(len(ENDS))]
    labels = {"family": family}
    for end, count in zip(ENDS, accumulate(each), strict=True):
        yield Sample(count, {**labels, "le": end}, "_bucket")
    yield Sample(sums.get((SECONDS, family), 0) / 1_000_000, labels, "_sum")
    yield Sample(sum(each), labels, "_count")
