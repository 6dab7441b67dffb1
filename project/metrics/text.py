"""Figures as Prometheus reads them: its text format, version 0.0.4."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

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
