"""The same persona in all layouts, side by side: how large, how many sections, what is lost or cut."""

from collections.abc import Sequence
from dataclasses import dataclass

from personas.models import LAYOUTS
from prompts.assembly.sizes import section_texts
from prompts.builds.compiler import NotBuildable, assembled, tokens_in
from prompts.preview.services import Preview
from prompts.studio.location import Place


@dataclass(frozen=True)
class LayoutRow:
    """One layout: what it would make of the draft, or why it can make nothing."""

    name: str
    href: str
    tokens: int = 0
    sections: int = 0
    lost: Sequence[str] = ()
    # By section, how many characters did not fit.
    cut: Sequence[tuple[str, int]] = ()
    problems: Sequence[str] = ()
    failure: str = ""


def layout_rows(found: Preview, place: Place) -> list[LayoutRow]:
    return [layout_row(found.in_layout(name), place.at(layout=name).url()) for name in LAYOUTS]


def layout_row(found: Preview, href: str) -> LayoutRow:
    name = found.gathered.layout
    try:
        prompt = assembled(found.gathered)
    except NotBuildable as error:
        return LayoutRow(name, href, failure=str(error))
    texts = section_texts(prompt.segments)
    return LayoutRow(
        name,
        href,
        sum(tokens_in(text) for text in texts.values()),
        len(texts),
        prompt.report.lost,
        [(part.name, part.cut) for part in prompt.report.parts if part.cut],
        prompt.report.problems,
    )
