"""Instances are built from rows without `Model.__init__`, and equal those that Django builds."""

from typing import Any

import pytest
from django.apps import apps
from django.db import models
from django.db.models.signals import post_init

from personas.models import Agent, Memory, Soul
from personas.tenancy.model_rows import build_instance, has_plain_columns
from personas.tenancy.models import WorkspaceOwned
from tests.factories import make_agent, make_memory, make_soul

OWNED = [model for model in apps.get_models() if issubclass(model, WorkspaceOwned)]


def get_state(instance: models.Model) -> dict[str, Any]:
    """Return all attributes, with those of Django's state."""
    own = {name: value for name, value in vars(instance).items() if name != "_state"}
    # Django creates the cache of related instances when it is first used.
    state = {name: value for name, value in vars(instance._state).items() if name != "fields_cache" or value}
    return own | {"state": state}


def build_by_django(model: type[models.Model], names: list[str], values: list[Any]) -> models.Model:
    from_db: Any = models.Model.from_db
    instance: models.Model = from_db.__func__(model, "default", names, values)
    return instance


@pytest.mark.parametrize("model", OWNED, ids=lambda model: model.__name__)
@pytest.mark.parametrize("step", [1, 2], ids=["all columns", "deferred"])
def test_an_instance_has_the_attributes_that_django_sets(model, step):
    names = [field.attname for field in model._meta.concrete_fields][::step]
    values = list(range(len(names)))
    built = build_instance(model, "default", names, values)
    expected = build_by_django(model, names, values)
    assert built is not None
    assert get_state(built) == get_state(expected)
    assert built.get_deferred_fields() == expected.get_deferred_fields()
    assert type(built) is type(expected)


@pytest.mark.django_db
def test_loaded_records_can_be_changed_and_saved(workspace):
    soul = make_soul(workspace, name="Calm", text="Be calm.")
    make_memory(workspace, "Berth 7 is closed.")
    agent = make_agent(workspace, "pilot", soul=soul)
    loaded = Agent.objects.in_workspace(workspace).select_related("soul").only("slug", "soul__text").get()
    assert (loaded, loaded.soul, loaded.soul and loaded.soul.text) == (agent, soul, "Be calm.")
    assert loaded.name == agent.name
    memory = Memory.objects.in_workspace(workspace).get()
    memory.text = "Berth 7 is open."
    memory.save()
    memory.refresh_from_db()
    assert (memory.text, memory.workspace) == ("Berth 7 is open.", workspace)


def test_receivers_of_django_signals_get_every_instance():
    """The planted fault is build_instance, which sends no signal: with a receiver it must not be used."""
    instances: list[models.Model] = []

    def note(instance: models.Model, **_: Any) -> None:
        instances.append(instance)

    names = [field.attname for field in Soul._meta.concrete_fields]
    Soul.from_db("default", names, list(range(len(names))))
    assert instances == []
    post_init.connect(note, sender=Soul)
    try:
        soul = Soul.from_db("default", names, list(range(len(names))))
    finally:
        post_init.disconnect(note, sender=Soul)
    assert instances == [soul]


def test_a_column_with_a_descriptor_is_left_to_django():
    class Loud(models.Model):
        picture = models.FileField()

        class Meta:
            app_label = "personas"
            managed = False

        def __str__(self) -> str:
            return str(self.picture)

    try:
        assert not has_plain_columns(Loud)
        assert build_instance(Loud, "default", ["id", "picture"], [1, "a.png"]) is None
    finally:
        del apps.all_models["personas"]["loud"]
        apps.clear_cache()
