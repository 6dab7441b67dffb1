"""Rendering of form fields: control, CSS classes and ARIA attributes for each widget."""

from __future__ import annotations

from copy import copy
from typing import Any

from django import forms
from django.forms import BoundField, Widget

NATIVE_INPUT_TYPES = {forms.DateTimeInput: "datetime-local", forms.DateInput: "date", forms.TimeInput: "time"}
NATIVE_INPUT_FORMATS = {"datetime-local": "%Y-%m-%dT%H:%M", "date": "%Y-%m-%d", "time": "%H:%M"}
WIDGET_CSS_CLASSES = {
    "input": "input",
    "textarea": "textarea",
    "select": "select",
    "file": "file-input",
    "check": "checkbox",
}


def build_field_context(
    bound: BoundField, *, mono: bool, rows: int | None, hide_label: bool, prefix_icon: str
) -> dict[str, Any]:
    """Build the template context of components/field.html for one form field."""
    kind = _get_widget_kind(bound.field.widget)
    context = {
        "bound": bound,
        "kind": kind,
        "hide_label": hide_label,
        "prefix_icon": prefix_icon if kind == "input" else "",
        "described_by": _get_described_by(bound),
    }
    if kind == "choices":
        return context | {
            "groups": _list_option_groups(bound),
            "single": not _is_multiple(bound.field.widget),
        }
    return context | {
        "control": _render_control(bound, kind, mono=mono, rows=rows, bare=bool(context["prefix_icon"]))
    }


def _is_multiple(widget: Widget) -> bool:
    return isinstance(widget, forms.SelectMultiple | forms.CheckboxSelectMultiple)


def _get_widget_kind(widget: Widget) -> str:
    if widget.is_hidden:
        return "hidden"
    if _is_multiple(widget) or isinstance(widget, forms.RadioSelect):
        return "choices"
    if isinstance(widget, forms.CheckboxInput):
        return "check"
    if isinstance(widget, forms.Textarea):
        return "textarea"
    if isinstance(widget, forms.Select):
        return "select"
    return "file" if isinstance(widget, forms.FileInput) else "input"


def _get_described_by(bound: BoundField) -> str:
    ids = [f"{bound.auto_id}_helptext"] if bound.help_text else []
    return " ".join([*ids, f"{bound.auto_id}_error"] if bound.errors else ids)


def _render_control(bound: BoundField, kind: str, *, mono: bool, rows: int | None, bare: bool) -> str:
    widget = _use_native_picker(bound.field.widget)
    own_class = str(widget.attrs.get("class", ""))
    css_class = "" if bare else WIDGET_CSS_CLASSES.get(kind, "")
    attrs: dict[str, Any] = {}
    if class_names := " ".join(filter(None, [css_class, own_class, "dr-mono" if mono else ""])):
        attrs["class"] = class_names
    if described_by := _get_described_by(bound):
        attrs["aria-describedby"] = described_by
    if _is_redundant_placeholder(str(widget.attrs.get("placeholder", "")), str(bound.label)):
        attrs["placeholder"] = False
    if rows and kind == "textarea":
        attrs["rows"] = rows
    return bound.as_widget(widget=widget, attrs=attrs)


def _is_redundant_placeholder(placeholder: str, label: str) -> bool:
    """Return whether the placeholder repeats the label. Users mistake such a placeholder for a value."""
    return bool(placeholder) and label.lower() in placeholder.lower()


def _use_native_picker(widget: Widget) -> Widget:
    """Return a copy of a date or time widget that uses the browser's native input and its ISO format.

    Other widgets are returned unchanged.
    """
    for widget_class, input_type in NATIVE_INPUT_TYPES.items():
        if isinstance(widget, widget_class):
            widget = copy(widget)
            widget.input_type, widget.format = input_type, NATIVE_INPUT_FORMATS[input_type]
            return widget
    return widget


def _list_option_groups(bound: BoundField) -> list[tuple[str | None, list[dict[str, Any]]]]:
    """List the options of checkboxes or radio buttons by group. Each option gets its own HTML id."""
    widget: Any = bound.field.widget
    groups = widget.optgroups(bound.html_name, widget.format_value(bound.value()))
    return [
        (
            title,
            [option | {"id": f"{bound.auto_id}_{number}_{index}"} for index, option in enumerate(options)],
        )
        for number, (title, options, _) in enumerate(groups)
    ]
