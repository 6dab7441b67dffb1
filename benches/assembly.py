"""How quick assembly is: builds beside Jinja2, slot fills beside builds, and growth with the memories."""

import sys
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from benches import jinja
from benches.inputs import CALL, FULLEST_CALL, INPUTS, memories
from benches.timing import ratio, timed, typical
from prompts.assembly.builder import build_filled_prompt, build_prompt
from prompts.assembly.inputs import PromptInputs
from prompts.assembly.layout import Layout
from prompts.assembly.layouts import LAYOUTS
from prompts.assembly.slots import Slots, build_slot_spans, fill_spans

ROUNDS = 400
GROWTH_ROUNDS = 150
FEW, MANY = 200, 2_000
# At most this many times a Jinja2 render, a build, and the time that a tenth of the memories takes.
BUILD_GOAL, FILL_GOAL, GROWTH_GOAL = 1.0, 0.1, 11.0
HEADINGS = ("layout", "characters", "build", "Jinja2", "ratio", "fill", "ratio", "fullest", "×10")
WIDTHS = (10, 11, 9, 9, 7, 8, 7, 9, 7)
LEGEND = f"""
Microseconds; ratios are medians of rounds. build: segments, text and the whole report. fill: the slots of a
stored build for a usual call; fullest: with every slot. ×10: {MANY:,} memories over {FEW:,}, where they show.
"""


class Row(NamedTuple):
    """Microseconds of one layout, and how much longer ten times the memories take where they are shown."""

    layout: str
    characters: int
    build: float
    jinja: float
    build_ratio: float
    fill: float
    fill_ratio: float
    fullest: float
    growth: float | None

    def cells(self) -> tuple[str, ...]:
        return (
            *(self.layout, f"{self.characters:,}"),
            *(f"{self.build:.1f}", f"{self.jinja:.1f}", f"{self.build_ratio:.2f}"),
            *(f"{self.fill:.2f}", f"{self.fill_ratio:.3f}", f"{self.fullest:.2f}"),
            f"{self.growth:.1f}" if self.growth else "",
        )


def main() -> int:
    print(line(HEADINGS))
    rows = []
    for layout in LAYOUTS.values():
        rows.append(measured(layout))
        print(line(rows[-1].cells()), flush=True)
    print(LEGEND)
    return verdict(rows)


def line(cells: tuple[str, ...]) -> str:
    first, *others = zip(cells, WIDTHS, strict=True)
    return f"{first[0]:<{first[1]}}" + "".join([f"{cell:>{width}}" for cell, width in others])


def measured(layout: Layout) -> Row:
    """One layout, after a look that everything timed says the same words."""
    built = build_prompt(layout, INPUTS)
    template, values = jinja.template(layout.name), jinja.values(INPUTS)
    if template.render(values) != built.text:
        raise SystemExit(f"The template of {layout.name} says something else than the build.")
    stored = build_slot_spans(built.segments)
    builds, renders, fills, fullest = timed(
        (
            whole_build(layout, INPUTS),
            partial(template.render, values),
            *[filling(layout, partial(fill_spans, stored), call) for call in (CALL, FULLEST_CALL)],
        ),
        ROUNDS,
    )
    return Row(
        *(layout.name, len(built.text)),
        *(typical(builds), typical(renders), ratio(builds, renders)),
        *(typical(fills), ratio(fills, builds), typical(fullest)),
        growth(layout),
    )


def whole_build(layout: Layout, inputs: PromptInputs) -> Callable[[], object]:
    """A build of which everything is looked at, so that nothing can be put off."""

    def work() -> object:
        prompt = build_prompt(layout, inputs)
        report = prompt.report
        said = (report.parts, report.problems, report.lost, report.boundaries)
        return prompt.segments, prompt.text, prompt.tools, said

    return work


def filling(layout: Layout, filled: Callable[[Slots], str], call: Slots) -> Callable[[], object]:
    if filled(call) != build_filled_prompt(layout, INPUTS, call).text:
        raise SystemExit(f"Filling a stored build of {layout.name} says something else than rendering.")
    return partial(filled, call)


def growth(layout: Layout) -> float | None:
    """Memories alone, so that nothing else hides what they cost."""
    if not any("memories" in part.uses for part in layout.parts):
        return None
    alone = [PromptInputs(memories=memories(count)) for count in (FEW, MANY)]
    few, many = timed([whole_build(layout, inputs) for inputs in alone], GROWTH_ROUNDS)
    return ratio(many, few)


def verdict(rows: list[Row]) -> int:
    """The worst layout decides each goal."""
    goals = (
        ("build", max(row.build_ratio for row in rows), BUILD_GOAL),
        ("fill", max(row.fill_ratio for row in rows), FILL_GOAL),
        ("ten times the memories", max(row.growth or 0 for row in rows), GROWTH_GOAL),
    )
    said = [
        f"{what} {found:.2f}× (at most {goal:g}×) {'met' if found <= goal else 'MISSED'}"
        for what, found, goal in goals
    ]
    print(f"Goals, by the slowest layout: {'; '.join(said)}.")
    return 0 if all(found <= goal for _, found, goal in goals) else 1


if __name__ == "__main__":
    sys.exit(main())
