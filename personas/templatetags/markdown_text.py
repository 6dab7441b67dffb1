"""Template filter that renders Markdown."""

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from core.text.markdown import MAX_RENDERED_LENGTH, render_markdown

register = template.Library()


@register.filter
def markdown(text: str) -> SafeString:
    """Render Markdown as HTML; very long texts as they are."""
    if len(text) > MAX_RENDERED_LENGTH:
        return format_html('<div class="dr-prose">{}</div>', text)
    return mark_safe(render_markdown(text))  # noqa: S308  # the renderer escapes HTML in the text
