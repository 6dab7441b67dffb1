"""Renderer of forms: the templates of Django's own widgets with Jinja2, all others with Django."""

from functools import cached_property
from typing import Any

from django.forms.renderers import DjangoTemplates, Jinja2

OWN_TEMPLATES = "django/forms/"


class WidgetRenderer(DjangoTemplates):
    """Django has its widgets as templates of both engines, with the same HTML."""

    @cached_property
    def jinja(self) -> Jinja2:
        return Jinja2()

    def get_template(self, template_name: str) -> Any:
        is_own = template_name.startswith(OWN_TEMPLATES)
        return self.jinja.get_template(template_name) if is_own else super().get_template(template_name)
