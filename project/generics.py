"""Let Django's classes take type arguments when running, as their stubs do when checked."""

from typing import Any

from django.contrib.admin.options import BaseModelAdmin
from django.db.models import Field
from django.forms.models import BaseModelForm


def same_class(cls: type, _arguments: Any) -> type:
    return cls


def allow_type_arguments() -> None:
    """Without this a base class such as ModelForm[Agent] fails at import."""
    classes: tuple[Any, ...] = (Field, BaseModelForm, BaseModelAdmin)
    for cls in classes:
        cls.__class_getitem__ = classmethod(same_class)
