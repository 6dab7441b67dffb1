"""Template tags of the Studio: the text of a row as spans with sources; edited spans are highlighted."""

from collections.abc import Iterator

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from prompts.studio.text_view import StudioRow, StudioSpan
from prompts.templatetags.versions import count_leading_line_ends, kind_css_class, render_slot_text
from skills.files.visible_text import VisibleText
from skills.templatetags.text_html import render_pieces

register = template.Library()

SPAN_HTML = '<span class="dr-stretch dr-seg {}{}"{}>{}</span>'


@register.simple_tag
def studio_row_text(row: StudioRow, visible_text: VisibleText, is_first: bool = False) -> SafeString:
    """Render the text of a row without its final line break."""
    return format_html_join("", "{}", ((html,) for html in render_studio_spans(row, visible_text, is_first)))


def render_studio_spans(row: StudioRow, visible_text: VisibleText, is_first: bool) -> Iterator[SafeString]:
    for span in row.spans:
        start, end = span.start, span.end
        if is_first and start == row.start:
            start += count_leading_line_ends(visible_text.text, start, end)
        if end == row.end and visible_text.text.endswith("\n", start, end):
            end -= 1
        if start < end:
            chunks = visible_text.split_chunks(start, end)
            html = render_slot_text(chunks) if span.slot else render_pieces(chunks)
            yield render_studio_span(span, html)


def render_studio_span(span: StudioSpan, html: SafeString) -> SafeString:
    css_class = kind_css_class(span.source.origin_label.kind)
    return format_html(
        SPAN_HTML, css_class, " is-edited" if span.is_edited else "", span.source.attributes, html
    )


@register.filter
def field_error_id(auto_id: str) -> str:
    """Return the id of the element in which the live preview shows the errors of a field."""
    return f"{auto_id}_mistake"


@register.filter
def cached_share(cached: int, tokens: int) -> float:
    return cached / tokens if tokens else 0.0
