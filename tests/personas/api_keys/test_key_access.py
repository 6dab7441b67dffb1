"""A new key can access all agents only if that was chosen."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from personas.models import ApiKey
from tests.factories import make_agent

pytestmark = pytest.mark.django_db


def key_form(**values: Any) -> dict[str, Any]:
    expires = f"{timezone.localdate() + timedelta(days=30)}"
    form = {"name": "Bot", "kind": "bot", "verbs": ["fetch"], "expires_at": expires}
    return form | {"agents_access": "all", "channels_access": "all", "labels_access": "all"} | values


def create(client: Any, workspace: Any, **values: Any) -> Any:
    return client.post(f"/w/{workspace.slug}/keys/new/", key_form(**values), follow=True)


def test_all_agents_must_be_chosen(as_alice, workspace):
    page = create(as_alice, workspace, agents_access="")
    assert page.status_code == 422
    assert "Choose “All, including ones added later” or “Only selected”." in page.content.decode()
    create(as_alice, workspace)
    assert ApiKey.objects.in_workspace(workspace).get().scopes == {"verbs": ["fetch"]}


def test_only_selected_agents_need_a_selection(as_alice, workspace):
    make_agent(workspace, "pilot")
    assert (
        "Select at least one item." in create(as_alice, workspace, agents_access="selected").content.decode()
    )
    create(as_alice, workspace, agents_access="selected", agents=["pilot"])
    assert ApiKey.objects.in_workspace(workspace).get().scopes["agents"] == ["pilot"]


def test_all_with_a_selection_is_a_contradiction(as_alice, workspace):
    make_agent(workspace, "pilot")
    page = create(as_alice, workspace, agents=["pilot"])
    assert "You chose “All” but also selected items." in page.content.decode()
    assert not ApiKey.objects.in_workspace(workspace).exists()


def test_nothing_is_chosen_for_agents_when_the_form_opens(as_alice, workspace):
    form = as_alice.get(f"/w/{workspace.slug}/keys/new/").context["form"]
    assert not form["agents_access"].value()
