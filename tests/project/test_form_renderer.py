"""Widgets are rendered with Jinja2, and have the HTML that Django's engine makes of them."""

import re
from typing import Any

import pytest
from django import forms
from django.forms.renderers import DjangoTemplates
from django.forms.widgets import Widget

from project.form_renderer import WidgetRenderer

CHOICES = [("", "Any"), ("a", "<b>Ann & Bob</b>"), ("Group", [("c", 'Say "hello"'), ("d", "Dora")])]
FIELDS: dict[str, tuple[forms.Field, Any]] = {
    "text": (forms.CharField(), '<script>alert("1")</script>'),
    "area": (forms.CharField(widget=forms.Textarea(attrs={"rows": 3, "required": True})), "\n<p>&amp;"),
    "select": (forms.ChoiceField(choices=CHOICES), "a"),
    "many": (forms.MultipleChoiceField(choices=CHOICES), ["a", "d"]),
    "boxes": (forms.MultipleChoiceField(choices=CHOICES, widget=forms.CheckboxSelectMultiple), ["c"]),
    "radio": (forms.ChoiceField(choices=CHOICES, widget=forms.RadioSelect), "d"),
    "check": (forms.BooleanField(), True),
    "empty": (forms.NullBooleanField(), None),
    "hidden": (forms.CharField(widget=forms.HiddenInput), "x"),
    "number": (forms.IntegerField(min_value=1), 5),
    "day": (forms.DateField(), "2026-03-07"),
    "moment": (forms.SplitDateTimeField(), ["2026-03-07", "12:00"]),
    "file": (forms.ImageField(), None),
    "password": (forms.CharField(widget=forms.PasswordInput), "secret"),
}


def render(widget: Widget, value: Any, renderer: Any) -> str:
    html: str = widget.render("name", value, {"class": "input", "data-x": 'a"b', "disabled": False}, renderer)
    html = re.sub(r"\s+(?=[<>])|(?<=>)\s+", "", html)
    # The engines write quotes differently.
    return html.replace("&#34;", "&quot;").replace("&#39;", "&#x27;")


@pytest.mark.parametrize("name", FIELDS)
def test_a_widget_has_the_html_of_djangos_engine(name):
    field, value = FIELDS[name]
    assert render(field.widget, value, WidgetRenderer()) == render(field.widget, value, DjangoTemplates())


def test_texts_of_options_are_escaped():
    html = render(FIELDS["select"][0].widget, "a", WidgetRenderer())
    assert "&lt;b&gt;Ann &amp; Bob&lt;/b&gt;" in html
    assert "<b>" not in html


def test_forms_of_the_product_use_it():
    class Form(forms.Form):
        name = forms.CharField()

    assert isinstance(Form().renderer, WidgetRenderer)


def test_a_template_of_an_app_is_rendered_by_django():
    template = WidgetRenderer().get_template("admin/widgets/url.html")
    assert type(template.backend).__module__ == "django.template.backends.django"
