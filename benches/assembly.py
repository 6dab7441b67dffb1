"""Benchmark of assembly: builds against Jinja2, slot fills against builds, growth with the memories."""

import sys
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from benches import jinja
from benches.inputs import CALL, FULLEST_CALL, INPUTS, memories
from benches.timing import get_lower_quartile, get_median_ratio, time_rounds
from prompts.assembly.builder import build_filled_prompt, build_prompt
from prompts.assembly.inputs import PromptInputs
from prompts.assembly.layout import Layout
from prompts.assembly.layouts import LAYOUTS
from prompts.assembly.slots import Slots, build_slot_spans, fill_spans

ROUNDS = 400
GROWTH_ROUNDS = 150
FEW, MANY = 200, 2_000
# Maximum ratios: build to Jinja2 render, slot fill to build, and ten times the memories to one time.
BUILD_GOAL, FILL_GOAL, GROWTH_GOAL = 1.0, 0.1, 11.0
HEADINGS = ("layout", "characters", "build", "Jinja2", "ratio", "fill", "ratio", "fullest", "×10")
WIDTHS = (10, 11, 9, 9, 7, 8, 7, 9, 7)
LEGEND = f"""
Microseconds; ratios are medians of rounds. build: segments, text and the whole report. fill: the slots of a
stored build for a usual call; fullest: with every slot. ×10: {MANY:,} memories over {FEW:,}, where they show.
"""


class LayoutTimes(NamedTuple):
    """Microseconds of one layout; the growth factor for ten times the memories is None if it shows none."""

    layout: str
    characters: int
    build: float
    jinja: float
    build_ratio: float
    fill: float
    fill_ratio: float
    fullest: float
    growth: float | None

    def format_cells(self) -> tuple[str, ...]:
        return (
            *(self.layout, f"{self.characters:,}"),
            *(f"{self.build:.1f}", f"{self.jinja:.1f}", f"{self.build_ratio:.2f}"),
            *(f"{self.fill:.2f}", f"{self.fill_ratio:.3f}", f"{self.fullest:.2f}"),
            f"{self.growth:.1f}" if self.growth else "",
        )


def main() -> int:
    print(format_line(HEADINGS))
    rows = []
    for layout in LAYOUTS.values():
        rows.append(measure_layout(layout))
        print(format_line(rows[-1].format_cells()), flush=True)
    print(LEGEND)
    return check_goals(rows)


def format_line(cells: tuple[str, ...]) -> str:
    first, *others = zip(cells, WIDTHS, strict=True)
    return f"{first[0]:<{first[1]}}" + "".join([f"{cell:>{width}}" for cell, width in others])


def measure_layout(layout: Layout) -> LayoutTimes:
    """Measure one layout, after a check that all workloads produce the same text."""
    built = build_prompt(layout, INPUTS)
    template, values = jinja.get_template(layout.name), jinja.get_variables(INPUTS)
    if template.render(values) != built.text:
        raise SystemExit(f"The template of {layout.name} says something else than the build.")
    stored = build_slot_spans(built.segments)
    builds, renders, fills, fullest = time_rounds(
        (
            make_build(layout, INPUTS),
            partial(template.render, values),
            *[make_fill(layout, partial(fill_spans, stored), call) for call in (CALL, FULLEST_CALL)],
        ),
        ROUNDS,
    )
    return LayoutTimes(
        *(layout.name, len(built.text)),
        *(get_lower_quartile(builds), get_lower_quartile(renders), get_median_ratio(builds, renders)),
        *(get_lower_quartile(fills), get_median_ratio(fills, builds), get_lower_quartile(fullest)),
        measure_growth(layout),
    )


def make_build(layout: Layout, inputs: PromptInputs) -> Callable[[], object]:
    """Return a workload that builds a prompt and reads every lazy attribute, so that no work is skipped."""

    def build() -> object:
        prompt = build_prompt(layout, inputs)
        report = prompt.report
        report_values = (report.parts, report.problems, report.lost, report.boundaries)
        return prompt.segments, prompt.text, prompt.tools, report_values

    return build


def make_fill(layout: Layout, fill: Callable[[Slots], str], call: Slots) -> Callable[[], object]:
    if fill(call) != build_filled_prompt(layout, INPUTS, call).text:
        raise SystemExit(f"Filling a stored build of {layout.name} says something else than rendering.")
    return partial(fill, call)


def measure_growth(layout: Layout) -> float | None:
    """Measure the growth with the number of memories; nothing else is in the inputs."""
    if not any("memories" in part.uses for part in layout.parts):
        return None
    inputs_by_count = [PromptInputs(memories=memories(count)) for count in (FEW, MANY)]
    few, many = time_rounds([make_build(layout, inputs) for inputs in inputs_by_count], GROWTH_ROUNDS)
    return get_median_ratio(many, few)


def check_goals(rows: list[LayoutTimes]) -> int:
    """Check each goal against the slowest layout."""
    goals = (
        ("build", max(row.build_ratio for row in rows), BUILD_GOAL),
        ("fill", max(row.fill_ratio for row in rows), FILL_GOAL),
        ("ten times the memories", max(row.growth or 0 for row in rows), GROWTH_GOAL),
    )
    results = [
        f"{name} {value:.2f}× (at most {goal:g}×) {'met' if value <= goal else 'MISSED'}"
        for name, value, goal in goals
    ]
    print(f"Goals, by the slowest layout: {'; '.join(results)}.")
    return 0 if all(value <= goal for _, value, goal in goals) else 1


if __name__ == "__main__":
    sys.exit(main())
