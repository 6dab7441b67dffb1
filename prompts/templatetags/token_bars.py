"""The stacked bar of a prompt's tokens: one block per section, the budget line and the cached prefix."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django import template

register = template.Library()

# Width of the SVG view box: large enough that rounding is invisible.
BAR_WIDTH = 1_000
# Blocks are at least this wide, so that small sections stay visible.
MIN_BLOCK_WIDTH = 2.0


@dataclass(frozen=True)
class TokenBarBlock:
    """One section of the bar."""

    name: str
    tokens: int
    css_class: str
    x: str
    width: str
    share: int


@dataclass(frozen=True)
class TokenBar:
    """The data of the SVG bar.

    Positions are strings: templates localize numbers, and a decimal comma is invalid in SVG attributes.
    """

    blocks: list[TokenBarBlock]
    tokens: int
    budget: int | None
    budget_at: str
    cache_at: str
    cache_share: int
    tokens_over_budget: int


@register.simple_tag
def build_token_bar(
    sections: Iterable[Any], tokens: int, budget: int | None = None, cache_share: float | None = None
) -> TokenBar:
    """Build the bar; its full width is the token count or the budget, whichever is larger.

    A section has `name`, `tokens`, and `look` (a CSS class) or `kind`, as attributes or keys.
    """
    scale = max(tokens, budget or 0, 1)
    blocks, x = [], 0.0
    for section in sections:
        name, count, css_class = get_section_values(section)
        width = count / scale * BAR_WIDTH
        visible_width = max(width, MIN_BLOCK_WIDTH) if count else 0.0
        blocks.append(
            TokenBarBlock(
                name,
                count,
                css_class,
                f"{x:.1f}",
                f"{visible_width:.1f}",
                round(100 * count / max(tokens, 1)),
            )
        )
        x += width
    cached = min(max(cache_share or 0.0, 0.0), 1.0)
    return TokenBar(
        blocks,
        tokens,
        budget,
        f"{(budget or 0) / scale * BAR_WIDTH:.1f}" if budget is not None else "",
        f"{cached * tokens / scale * BAR_WIDTH:.1f}" if cache_share is not None else "",
        round(100 * cached),
        max(0, tokens - budget) if budget is not None else 0,
    )


def get_section_values(section: Any) -> tuple[str, int, str]:
    get = (
        section.get
        if isinstance(section, Mapping)
        else lambda name, default="": getattr(section, name, default)
    )
    css_class = get("look", "") or f"is-{str(get('kind', '') or 'layout').replace('_', '-')}"
    return str(get("name", "")), int(get("tokens", 0) or 0), css_class
