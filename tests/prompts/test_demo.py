"""The demo workspace: complete, believable, and the same after a second run."""

from collections import Counter

import pytest
from django.apps import apps
from django.core.management import CommandError, call_command

from personas.models import LAYOUTS, Agent, Memory, MemoryState, Soul, WorkspaceOwned
from prompts.demo.load import load_demo


def counts():
    models = [model for model in apps.get_models() if issubclass(model, WorkspaceOwned)]
    return {model.__name__: model.unscoped.count() for model in models}


@pytest.mark.django_db
def test_a_second_run_leaves_the_same_counts():
    load_demo()
    first = counts()
    load_demo()
    assert counts() == first


@pytest.mark.django_db
def test_the_cast_shows_all_the_product_can_do():
    workspace = load_demo()
    agents = Agent.objects.in_workspace(workspace)
    memories = Memory.objects.in_workspace(workspace)
    assert set(agents.values_list("layout", flat=True)) == set(LAYOUTS)
    assert agents.filter(parent=None).count() == 6
    assert agents.exclude(parent=None).count() == 1
    assert memories.count() == 30
    assert set(memories.values_list("state", flat=True)) == set(MemoryState.values)
    shared = Counter(agents.exclude(soul=None).values_list("soul", flat=True))
    assert max(shared.values()) >= 2
    assert Soul.objects.in_workspace(workspace).count() >= 3


@pytest.mark.django_db
def test_what_someone_changed_in_the_demo_is_left_alone():
    workspace = load_demo()
    Soul.objects.in_workspace(workspace).update(text="Mine now.")
    load_demo()
    assert set(Soul.objects.in_workspace(workspace).values_list("text", flat=True)) == {"Mine now."}


@pytest.mark.django_db
def test_production_refuses_the_demo(settings):
    settings.PRODUCTION = True
    with pytest.raises(CommandError, match="not for production"):
        call_command("demo")
