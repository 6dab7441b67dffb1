"""The note on a page that tells how far the workers have come with a wide change."""

from typing import Any

from django import template

from prompts.builds.middleware import REBUILDING_SINCE
from prompts.builds.progress import progress_of, progress_shown, read_since

register = template.Library()


@register.inclusion_tag("components/rebuilding.html", takes_context=True)
def rebuilding(context: dict[str, Any], everything: bool = False) -> dict[str, Any]:
    """Whoever has just saved is also told when it is over already; others only while something waits."""
    since = read_since(context["request"].session.pop(REBUILDING_SINCE, ""))
    workspace = context["workspace"]
    return progress_shown(workspace, progress_of(workspace, since), everything=everything)
