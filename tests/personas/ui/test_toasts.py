"""Messages that can be taken back: the button does the opposite, and only for those who may."""

import json
import re

import pytest
from django.contrib.messages.storage.base import Message
from django.contrib.messages.storage.fallback import FallbackStorage
from django.http import HttpResponse
from django.test import RequestFactory

from personas.memories.services import approve_memory, revoke_memory
from personas.models import Memory, MemoryState, Soul
from personas.roles import Role
from personas.ui.toasts import add_toast, attach_toasts, get_undo_action
from tests.factories import BY, join, make_memory, make_soul, make_user, signed_in
from tests.shared_workspaces import (  # noqa: F401  # fixtures
    housed_alice,
    housed_bob,
    housed_elsewhere,
    housed_mallory,
    housed_workspace,
    the_house,
)

pytestmark = pytest.mark.django_db
FORM = re.compile(r'<form method="post" action="([^"]+)">(?:(?!</form>).)*data-key="u"', re.DOTALL)
FIELD = re.compile(r'<input type="hidden" name="(\w+)" value="([^"]*)">')


def after(client, address, **fields):
    """Press a button and follow: the page that tells what happened."""
    return client.post(address, fields, follow=True).content.decode()


def undo_on(page):
    """Where the Undo button of a page leads, and what it sends."""
    found = FORM.search(page.split("<template")[0])
    return (found[1], dict(FIELD.findall(found[0]))) if found else None


def undone(client, page):
    address, fields = undo_on(page)
    fields.pop("csrfmiddlewaretoken", None)
    return after(client, address, **fields)


def test_an_archived_record_comes_back_by_undo_and_goes_again(as_bob, workspace):
    soul = make_soul(workspace, "Calm")
    page = after(as_bob, f"/w/{workspace.slug}/souls/calm/archive/")
    page = undone(as_bob, page)
    assert not Soul.objects.in_workspace(workspace).get(pk=soul.pk).is_archived
    undone(as_bob, page)
    assert Soul.objects.in_workspace(workspace).get(pk=soul.pk).is_archived


def test_what_was_archived_already_offers_no_way_back(as_bob, workspace):
    make_soul(workspace, "Calm")
    after(as_bob, f"/w/{workspace.slug}/souls/calm/archive/")
    assert undo_on(after(as_bob, f"/w/{workspace.slug}/souls/calm/archive/")) is None


def test_an_approval_is_taken_back_to_proposed(as_alice, workspace):
    memory = make_memory(workspace, state=MemoryState.PROPOSED)
    page = after(as_alice, f"/w/{workspace.slug}/memories/{memory.pk}/approve/")
    assert state_of(memory) == MemoryState.ACTIVE
    undone(as_alice, page)
    assert state_of(memory) == MemoryState.PROPOSED


def test_a_reviewer_who_may_not_edit_is_offered_no_undo(workspace):
    rita = make_user("Rita")
    join(workspace, rita, Role.REVIEWER)
    memory = make_memory(workspace, state=MemoryState.PROPOSED)
    page = after(signed_in(rita), f"/w/{workspace.slug}/memories/{memory.pk}/approve/")
    assert "Approved" in page
    assert undo_on(page) is None


def test_undo_never_believes_what_was_only_proposed(as_bob, workspace):
    proposed = make_memory(workspace, state=MemoryState.PROPOSED)
    assert undo_on(after(as_bob, f"/w/{workspace.slug}/memories/{proposed.pk}/archive/")) is None
    active = approve_memory(make_memory(workspace, "Sure.", state=MemoryState.PROPOSED), by=BY)
    page = after(as_bob, f"/w/{workspace.slug}/memories/{active.pk}/archive/")
    undone(as_bob, page)
    assert state_of(active) == MemoryState.ACTIVE


def test_a_replaced_memory_stands_again_by_undo(as_bob, workspace):
    old, new = make_memory(workspace, "Old."), make_memory(workspace, "New.")
    page = after(as_bob, f"/w/{workspace.slug}/memories/{old.pk}/supersede/", successor=new.pk)
    assert state_of(old) == MemoryState.SUPERSEDED
    page = undone(as_bob, page)
    assert state_of(old) == MemoryState.ACTIVE
    revoke_memory(old, by=BY)
    undone(as_bob, after(as_bob, f"/w/{workspace.slug}/memories/{old.pk}/restore/"))
    assert state_of(old) == MemoryState.REVOKED


def state_of(memory):
    return Memory.objects.in_workspace(memory.workspace_id).get(pk=memory.pk).state


@pytest.fixture
def request_with_messages(rf: RequestFactory):
    return ready(rf)


@pytest.fixture
def request_with_none(rf: RequestFactory):
    return ready(rf)


def ready(rf):
    request = rf.get("/")
    request.session = {}
    request._messages = FallbackStorage(request)
    return request


def test_a_fragment_brings_what_waits_to_be_said(request_with_messages, request_with_none):
    add_toast(request_with_messages, "Moved “é”.", undo_url="/back/", undo_fields={"to": "3"})
    answer = attach_toasts(request_with_messages, HttpResponse())
    assert json.loads(answer["HX-Trigger"])["dr:toast"]["toasts"] == [
        {"text": "Moved “é”.", "tone": "success", "undo": "/back/", "fields": {"to": "3"}}
    ]
    assert "HX-Trigger" not in attach_toasts(request_with_none, HttpResponse())


@pytest.mark.parametrize("tags", ["", "safe", "[]", "3", "{}", '{"undo": "/x/"}'])
def test_other_tags_are_no_way_back(tags):
    assert get_undo_action(Message(25, "Words.", tags)) is None
