"""Build model instances from rows without `Model.__init__`, which accounts for most of the cost per row."""

from collections.abc import Collection
from functools import cache
from typing import Any, TypeVar

from django.db.models import Model
from django.db.models.base import ModelState
from django.db.models.fields.related_descriptors import ForeignKeyDeferredAttribute
from django.db.models.query_utils import DeferredAttribute
from django.db.models.signals import post_init, pre_init

M = TypeVar("M", bound=Model)


def build_instance(
    model: type[M], db: str | None, field_names: Collection[str], values: Collection[Any]
) -> M | None:
    """Return what Django's `from_db` returns, or None if only Django can build it.

    Columns that are not in `field_names` are deferred, as in Django: an instance has no attribute for them.
    """
    if pre_init.receivers or post_init.receivers or not has_plain_columns(model):
        return None
    instance = model.__new__(model)
    state = ModelState()
    state.adding, state.db = False, db
    attributes = instance.__dict__
    attributes["_state"] = state
    attributes.update(zip(field_names, values, strict=True))
    return instance


@cache
def has_plain_columns(model: type[Model]) -> bool:
    """Whether setting the attribute of a column does no more than that, and the model has no own __init__."""
    descriptors = {type(getattr(model, field.attname, None)) for field in model._meta.concrete_fields}
    # The descriptor of foreign keys also clears a cached related instance, but a new instance has none.
    is_plain = descriptors <= {DeferredAttribute, ForeignKeyDeferredAttribute}
    return is_plain and model.__init__ is Model.__init__
