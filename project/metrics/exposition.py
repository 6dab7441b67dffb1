"""The shared counters as figures: requests, fetches, times and jobs."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate

from project.metrics.collectors import BUCKETS, FETCH, REQUESTS, SECONDS, TIMES
from project.metrics.counters import Field
from project.metrics.jobs import JOBS
from project.metrics.jobs import SECONDS as JOB_SECONDS
from project.metrics.text import Figure, Sample

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
    chosen = sorted((field[1:], value) for field, value in sums.items() if field[0] == name)
    return [Sample(value, dict(zip(labels, said, strict=True))) for said, value in chosen]


def fetches(sums: Sums) -> list[Sample]:
    found: dict[str, int] = defaultdict(int)
    for (name, family, status), value in ((field, sums[field]) for field in sums if len(field) == 3):
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
