"""Build Prometheus metric families from the counter sums, and format metric families as text."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from project.metrics.collectors import (
    BUCKET_SECONDS,
    FETCH_FAMILY,
    JOB_COUNT,
    JOB_MICROSECONDS,
    REQUEST_COUNT,
    REQUEST_MICROSECONDS,
    REQUEST_TIME_BUCKETS,
)
from project.metrics.counters import CounterField

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
METRIC_PREFIX = "dramatis_"
CounterSums = Mapping[CounterField, int]
BUCKET_BOUNDS = (*(f"{end:g}" for end in BUCKET_SECONDS), "+Inf")


class FixedCollector(Collector):
    """Collector for prometheus_client that returns the given metric families, if they have samples."""

    def __init__(self, families: Iterable[Metric]) -> None:
        self.families = list(families)

    def collect(self) -> Iterator[Metric]:
        return (family for family in self.families if family.samples)


def format_metrics(families: Iterable[Metric]) -> str:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(FixedCollector(families))
    return generate_latest(registry).decode()


def build_gauge(name: str, help_text: str, value: float | None) -> Metric:
    """Return a gauge without labels; it has no sample if the value is None."""
    family = GaugeMetricFamily(METRIC_PREFIX + name, help_text)
    if value is not None:
        family.add_metric([], float(value))
    return family


def build_labelled_gauge(name: str, help_text: str, label: str, values: Mapping[str, float]) -> Metric:
    family = GaugeMetricFamily(METRIC_PREFIX + name, help_text, labels=[label])
    for label_value, value in values.items():
        family.add_metric([label_value], float(value))
    return family


def build_counter(
    name: str, help_text: str, labels: list[str], values: Iterable[tuple[tuple[str, ...], float]]
) -> Metric:
    family = CounterMetricFamily(METRIC_PREFIX + name, help_text, labels=labels)
    for label_values, value in values:
        family.add_metric(label_values, float(value))
    return family


def build_counter_families(sums: CounterSums) -> list[Metric]:
    return [
        build_counter(
            "requests_total",
            "Responses, by route family and status.",
            ["family", "status"],
            select_sums(sums, REQUEST_COUNT),
        ),
        build_counter(
            "fetches_total", "Prompt fetches, by outcome.", ["outcome"], count_fetch_outcomes(sums)
        ),
        build_request_histogram(sums),
        build_counter(
            "jobs_total", "Jobs, by name and state.", ["job", "state"], select_sums(sums, JOB_COUNT)
        ),
        build_counter(
            "job_seconds_total",
            "Seconds spent in jobs.",
            ["job"],
            [(labels, value / 1_000_000) for labels, value in select_sums(sums, JOB_MICROSECONDS)],
        ),
    ]


def select_sums(sums: CounterSums, name: str) -> list[tuple[tuple[str, ...], int]]:
    return sorted((key[1:], value) for key, value in sums.items() if key[0] == name)


def count_fetch_outcomes(sums: CounterSums) -> list[tuple[tuple[str, ...], int]]:
    outcomes: dict[str, int] = defaultdict(int)
    for (family, status), value in select_sums(sums, REQUEST_COUNT):
        if family == FETCH_FAMILY:
            outcomes[get_fetch_outcome(int(status))] += value
    return [((name,), value) for name, value in sorted(outcomes.items())]


def get_fetch_outcome(status: int) -> str:
    """Return the outcome of a fetch: served, unchanged (304), refused (4xx) or failed (5xx)."""
    if status < 300:
        return "served"
    if status == 304:
        return "unchanged"
    return "refused" if status < 500 else "failed"


def build_request_histogram(sums: CounterSums) -> Metric:
    histogram = HistogramMetricFamily(METRIC_PREFIX + "request_seconds", "Response times.", labels=["family"])
    for family in sorted({key[1] for key in sums if key[0] == REQUEST_TIME_BUCKETS}):
        counts = [
            sums.get((REQUEST_TIME_BUCKETS, family, str(index)), 0) for index in range(len(BUCKET_BOUNDS))
        ]
        buckets = list(zip(BUCKET_BOUNDS, map(float, accumulate(counts)), strict=True))
        histogram.add_metric([family], buckets, sums.get((REQUEST_MICROSECONDS, family), 0) / 1_000_000)
    return histogram
