"""What memories mean to prompts, for the board."""

from collections.abc import Sequence
from typing import Any

from django import template

from personas.models import Memory
from prompts.provenance.memory_reach import Reach, Reaches, reaches_of

register = template.Library()


@register.simple_tag(takes_context=True)
def reaches(context: dict[str, Any], memories: Sequence[Memory]) -> Reaches:
    """For all memories of a page at once."""
    return reaches_of(context["workspace"], memories)


@register.filter
def reach_of(found: Reaches, memory: Memory) -> Reach:
    return found.by_memory.get(memory.pk, Reach(0, 0))
