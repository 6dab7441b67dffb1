"""Template tag for sortable column headers."""

from typing import Any

from django import template
from django.utils.html import format_html
from django.utils.http import urlencode
from django.utils.safestring import SafeString

from personas.templatetags.ui import icon
from personas.ui.sorting import SortOrder

register = template.Library()


@register.simple_tag(takes_context=True)
def sortable_column(
    context: dict[str, Any], name: str, label: str, first: str = "", look: str = ""
) -> SafeString:
    """Render a column header with a link that sorts the list by this column or reverses the order.

    With `first="-"`, the first click sorts in descending order.
    """
    sorting: SortOrder = context.get("sorting") or SortOrder()
    is_current = sorting.name == name
    next_sort = f"{first}{name}" if not is_current else name if sorting.is_descending else f"-{name}"
    params = [
        (key, value) for key, value in context["request"].GET.items() if key not in {"sort", "page", "before"}
    ]
    order = ("descending" if sorting.is_descending else "ascending") if is_current else ""
    return format_html(
        '<th scope="col"{}{}><a class="dr-sort" href="?{}">{}{}</a></th>',
        format_html(' class="{}"', look) if look else "",
        format_html(' aria-sort="{}"', order) if order else "",
        urlencode([*params, ("sort", next_sort)]),
        label,
        icon("arrow-down" if sorting.is_descending else "arrow-up") if is_current else icon("sort"),
    )
