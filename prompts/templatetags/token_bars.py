"""The stacked bar of a prompt's tokens: where each section begins and ends, budget and cache line."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django import template

register = template.Library()

# The bar is drawn in these units, so that rounding stays invisible.
BAR_WIDTH = 1_000
# What is too small to be seen still has to be there.
MIN_BLOCK_WIDTH = 2.0


@dataclass(frozen=True)
class TokenBarBlock:
    """One section of the bar."""

    name: str
    tokens: int
    look: str
    x: str
    width: str
    share: int


@dataclass(frozen=True)
class TokenBar:
    """Everything the drawing needs; positions are texts, for a language may write them with a comma."""

    blocks: list[TokenBarBlock]
    tokens: int
    budget: int | None
    budget_at: str
    cache_at: str
    cache_share: int
    over: int


@register.simple_tag
def build_token_bar(
    sections: Iterable[Any], tokens: int, budget: int | None = None, cache_share: float | None = None
) -> TokenBar:
    """From sections with name, tokens and look (or kind); the scale is the budget, or all if that is more."""
    whole = max(tokens, budget or 0, 1)
    blocks, at = [], 0.0
    for section in sections:
        name, count, look = get_section_values(section)
        width = count / whole * BAR_WIDTH
        shown = max(width, MIN_BLOCK_WIDTH) if count else 0.0
        blocks.append(
            TokenBarBlock(name, count, look, f"{at:.1f}", f"{shown:.1f}", round(100 * count / max(tokens, 1)))
        )
        at += width
    kept = min(max(cache_share or 0.0, 0.0), 1.0)
    return TokenBar(
        blocks,
        tokens,
        budget,
        f"{(budget or 0) / whole * BAR_WIDTH:.1f}" if budget is not None else "",
        f"{kept * tokens / whole * BAR_WIDTH:.1f}" if cache_share is not None else "",
        round(100 * kept),
        max(0, tokens - budget) if budget is not None else 0,
    )


def get_section_values(section: Any) -> tuple[str, int, str]:
    get = (
        section.get
        if isinstance(section, Mapping)
        else lambda name, default="": getattr(section, name, default)
    )
    look = get("look", "") or f"is-{str(get('kind', '') or 'layout').replace('_', '-')}"
    return str(get("name", "")), int(get("tokens", 0) or 0), look
