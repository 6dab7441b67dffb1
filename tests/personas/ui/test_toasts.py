"""Toasts with an undo button: it reverses the action and is shown only with the permission."""

import json
import re

import pytest
from django.contrib.messages.storage.base import Message
from django.contrib.messages.storage.fallback import FallbackStorage
from django.http import HttpResponse
from django.test import RequestFactory

from personas.memories.services import approve_memory, revoke_memory
from personas.models import Memory, MemoryStatus, Soul
from personas.roles import Role
from personas.ui.toasts import add_toast, attach_toasts, get_undo_action
from tests.factories import BY, join, make_memory, make_soul, make_user, signed_in
from tests.shared_cast import (  # noqa: F401  # fixtures
    shared_alice,
    shared_as_alice,
    shared_as_bob,
    shared_as_mallory,
    shared_bob,
    shared_cast,
    shared_elsewhere,
    shared_mallory,
    shared_workspace,
)

pytestmark = pytest.mark.django_db
FORM = re.compile(r'<form method="post" action="([^"]+)">(?:(?!</form>).)*data-key="u"', re.DOTALL)
FIELD = re.compile(r'<input type="hidden" name="(\w+)" value="([^"]*)">')


def post_and_follow(client, url, **fields):
    """Submit a form, follow the redirect and return the page."""
    return client.post(url, fields, follow=True).content.decode()


def find_undo(page):
    """Return the URL and the form fields of the Undo button, or None."""
    match = FORM.search(page.split("<template")[0])
    return (match[1], dict(FIELD.findall(match[0]))) if match else None


def press_undo(client, page):
    url, fields = find_undo(page)
    fields.pop("csrfmiddlewaretoken", None)
    return post_and_follow(client, url, **fields)


def test_archiving_can_be_undone_and_the_undo_too(as_bob, workspace):
    soul = make_soul(workspace, "Calm")
    page = post_and_follow(as_bob, f"/w/{workspace.slug}/souls/calm/archive/")
    page = press_undo(as_bob, page)
    assert not Soul.objects.in_workspace(workspace).get(pk=soul.pk).is_archived
    press_undo(as_bob, page)
    assert Soul.objects.in_workspace(workspace).get(pk=soul.pk).is_archived


def test_archiving_twice_offers_no_undo(as_bob, workspace):
    make_soul(workspace, "Calm")
    post_and_follow(as_bob, f"/w/{workspace.slug}/souls/calm/archive/")
    assert find_undo(post_and_follow(as_bob, f"/w/{workspace.slug}/souls/calm/archive/")) is None


@pytest.mark.slow
def test_undoing_an_approval_makes_the_memory_proposed(as_alice, workspace):
    memory = make_memory(workspace, status=MemoryStatus.PROPOSED)
    page = post_and_follow(as_alice, f"/w/{workspace.slug}/memories/{memory.pk}/approve/")
    assert get_state(memory) == MemoryStatus.ACTIVE
    press_undo(as_alice, page)
    assert get_state(memory) == MemoryStatus.PROPOSED


def test_a_reviewer_who_may_not_edit_is_offered_no_undo(workspace):
    rita = make_user("Rita")
    join(workspace, rita, Role.REVIEWER)
    memory = make_memory(workspace, status=MemoryStatus.PROPOSED)
    page = post_and_follow(signed_in(rita), f"/w/{workspace.slug}/memories/{memory.pk}/approve/")
    assert "Approved" in page
    assert find_undo(page) is None


@pytest.mark.slow
def test_undo_never_activates_a_memory_that_was_only_proposed(as_bob, workspace):
    proposed = make_memory(workspace, status=MemoryStatus.PROPOSED)
    assert find_undo(post_and_follow(as_bob, f"/w/{workspace.slug}/memories/{proposed.pk}/archive/")) is None
    active = approve_memory(make_memory(workspace, "Sure.", status=MemoryStatus.PROPOSED), by=BY)
    page = post_and_follow(as_bob, f"/w/{workspace.slug}/memories/{active.pk}/archive/")
    press_undo(as_bob, page)
    assert get_state(active) == MemoryStatus.ACTIVE


@pytest.mark.slow
def test_superseding_and_reinstating_can_be_undone(as_bob, workspace):
    old, new = make_memory(workspace, "Old."), make_memory(workspace, "New.")
    page = post_and_follow(as_bob, f"/w/{workspace.slug}/memories/{old.pk}/supersede/", successor=new.pk)
    assert get_state(old) == MemoryStatus.SUPERSEDED
    page = press_undo(as_bob, page)
    assert get_state(old) == MemoryStatus.ACTIVE
    revoke_memory(old, by=BY)
    press_undo(as_bob, post_and_follow(as_bob, f"/w/{workspace.slug}/memories/{old.pk}/restore/"))
    assert get_state(old) == MemoryStatus.REVOKED


def get_state(memory):
    return Memory.objects.in_workspace(memory.workspace_id).get(pk=memory.pk).status


@pytest.fixture
def request_with_messages(rf: RequestFactory):
    return build_request(rf)


@pytest.fixture
def request_with_none(rf: RequestFactory):
    return build_request(rf)


def build_request(rf):
    request = rf.get("/")
    request.session = {}
    request._messages = FallbackStorage(request)
    return request


def test_a_fragment_carries_pending_messages(request_with_messages, request_with_none):
    add_toast(request_with_messages, "Moved “é”.", undo_url="/back/", undo_fields={"to": "3"})
    answer = attach_toasts(request_with_messages, HttpResponse())
    assert json.loads(answer["HX-Trigger"])["dr:toast"]["toasts"] == [
        {"text": "Moved “é”.", "tone": "success", "undo": "/back/", "fields": {"to": "3"}}
    ]
    assert "HX-Trigger" not in attach_toasts(request_with_none, HttpResponse())


@pytest.mark.parametrize("tags", ["", "safe", "[]", "3", "{}", '{"undo": "/x/"}'])
def test_other_message_tags_are_no_undo_action(tags):
    assert get_undo_action(Message(25, "Words.", tags)) is None
