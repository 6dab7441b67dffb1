"""How quick assembly is: full builds beside Jinja2, slot fills beside full builds, and growth with the memories."""

import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from benches import jinja
from benches.inputs import INPUTS, SLOTS, memories
from benches.timing import typical
from prompts.assembly.builder import build, render
from prompts.assembly.inputs import PromptInputs
from prompts.assembly.layout import Layout
from prompts.assembly.layouts import LAYOUTS
from prompts.assembly.slots import fill, skeleton

ROUNDS = 1_500
GROWTH_ROUNDS = 300
FEW, MANY = 200, 2_000
# At most this many times a Jinja2 render, a full build, and the time of a tenth of the memories.
BUILD_GOAL, FILL_GOAL, GROWTH_GOAL = 1.0, 0.1, 11.0


class Row(NamedTuple):
    """Microseconds of one layout, and how much longer ten times the memories take where they are shown."""

    layout: str
    characters: int
    build: float
    jinja: float
    fill: float
    growth: float | None

    @property
    def build_ratio(self) -> float:
        return self.build / self.jinja

    @property
    def fill_ratio(self) -> float:
        return self.fill / self.build


def main() -> int:
    print(f"{'layout':<10}{'characters':>11}{'build':>9}{'Jinja2':>9}{'ratio':>7}{'fill':>8}{'ratio':>7}{'×10':>7}")
    rows = []
    for layout in LAYOUTS.values():
        rows.append(measured(layout))
        print(line(rows[-1]), flush=True)
    print("Times in microseconds; ×10 is the time of 2,000 memories over that of 200.")
    return verdict(rows)


def measured(layout: Layout) -> Row:
    """One layout, after a look that everything timed says the same words."""
    built = build(layout, INPUTS)
    template, values = jinja.template(layout.name), jinja.values(INPUTS)
    stored = skeleton(built.segments)
    if template.render(values) != built.text:
        raise SystemExit(f"The template of {layout.name} says something else than the build.")
    if fill(stored, SLOTS) != render(layout, INPUTS, SLOTS).text:
        raise SystemExit(f"Filling a stored build of {layout.name} says something else than rendering.")
    works = (whole_build(layout, INPUTS), partial(template.render, values), partial(fill, stored, SLOTS))
    built_in, rendered_in, filled_in = typical(works, ROUNDS)
    return Row(layout.name, len(built.text), built_in, rendered_in, filled_in, growth(layout))


def whole_build(layout: Layout, inputs: PromptInputs) -> Callable[[], object]:
    """A build of which everything is looked at, so that nothing can be put off."""

    def work() -> object:
        prompt = build(layout, inputs)
        report = prompt.report
        return (
            *(prompt.segments, prompt.text, prompt.tools),
            *(report.parts, report.problems, report.lost, report.boundaries),
        )

    return work


def growth(layout: Layout) -> float | None:
    """Memories alone, so that nothing else hides what they cost."""
    if not any("memories" in part.uses for part in layout.parts):
        return None
    few, many = typical([whole_build(layout, of_memories(count)) for count in (FEW, MANY)], GROWTH_ROUNDS)
    return many / few


def of_memories(count: int) -> PromptInputs:
    return replace(PromptInputs(), memories=memories(count))


def line(row: Row) -> str:
    growth = "" if row.growth is None else f"{row.growth:.1f}"
    return (
        f"{row.layout:<10}{row.characters:>11,}{row.build:>9.1f}{row.jinja:>9.1f}{row.build_ratio:>7.2f}"
        f"{row.fill:>8.2f}{row.fill_ratio:>7.3f}{growth:>7}"
    )


def verdict(rows: list[Row]) -> int:
    """The worst layout decides each goal."""
    goals = (
        ("build", max(row.build_ratio for row in rows), BUILD_GOAL, "Jinja2"),
        ("fill", max(row.fill_ratio for row in rows), FILL_GOAL, "build"),
        ("ten times the memories", max(row.growth or 0 for row in rows), GROWTH_GOAL, "time"),
    )
    said = [
        f"{what} {found:.2f}× {of} of {goal:g}× {'met' if found <= goal else 'MISSED'}"
        for what, found, goal, of in goals
    ]
    print("Goals: " + "; ".join(said) + ".")
    return 0 if all(found <= goal for _, found, goal, _ in goals) else 1


if __name__ == "__main__":
    sys.exit(main())
