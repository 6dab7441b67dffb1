"""R19 in a small form: the workspaces of one person have the share of one in queues and in stored bytes."""

import time
from types import SimpleNamespace
from typing import Any, cast

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.utils import timezone

from core.outgoing.http_sender import HttpSender
from personas.actors import Actor
from personas.events.services import record_event
from personas.limits import persons, storage_quota
from personas.limits.storage_quota import CallQuotaExceeded
from personas.models import Content, DailyUsage, WebhookDelivery, Workspace
from personas.webhooks import deliver
from personas.webhooks.services import create_endpoint
from skills import tasks
from skills.archives import write_zip
from skills.models import PushedFile, RefreshRun
from skills.refresh.runs import list_runs_to_send, request_refresh
from skills.refresh.source_changes import add_source
from skills.uploads.services import push_file
from tests.factories import BY, make_source, make_workspace, signed_in

pytestmark = [pytest.mark.django_db, pytest.mark.promise("R19"), pytest.mark.usefixtures("stopped_clock")]
COUNT, QUOTA, SHARE = 5, 20_000, 2
CHANGE = {"kind": "soul", "id": 1, "revision": 1, "action": "edited"}


@pytest.fixture(autouse=True)
def limits(settings):
    settings.DRAMATIS_WORKSPACES_PER_PERSON, settings.DRAMATIS_WORKSPACE_JOBS = 0, 2
    settings.DRAMATIS_CALL_BYTES_PER_DAY, settings.DRAMATIS_PERSON_SHARE = QUOTA, SHARE


@pytest.fixture
def own(alice):
    """Workspaces of one person."""
    return [make_workspace(f"Quay {number}", owner=alice) for number in range(COUNT)]


@pytest.fixture
def per_workspace(monkeypatch):
    """The planted fault: a share per workspace only."""
    monkeypatch.setattr(persons, "find_person_id", lambda workspace_id: None)
    monkeypatch.setattr(storage_quota, "find_person_id", lambda workspace_id: None)


def make_pushed_source(workspace: Workspace):
    values = {"name": "Pushed", "source_kind": "pushed", "approval": "automatic"}
    return add_source(workspace, values, by=BY)[0]


# --- stored bytes ---------------------------------------------------------------------------------------


def push_until_refused(workspace: Workspace, size: int = 4_000) -> tuple[int, str]:
    """Push different files until the quota is used up; return the stored bytes and the reason."""
    source = make_pushed_source(workspace)
    for number in range(30):
        try:
            push_file(source, f"docs/{number}.md", f"{workspace.pk} {number} ".encode() * (size // 12), by=BY)
        except CallQuotaExceeded as error:
            files = PushedFile.objects.in_workspace(workspace).select_related("content")
            return sum(file.content.size for file in files), error.message
    pytest.fail("no push was refused")


def test_pushes_count_in_the_quota_of_the_workspace(own):
    stored, reason = push_until_refused(own[0])
    assert 0 < stored <= QUOTA
    assert f"This workspace has used up its daily quota of {QUOTA:,} bytes" in reason
    assert "DRAMATIS_CALL_BYTES_PER_DAY" in reason


def test_pushes_of_all_workspaces_of_a_person_count_together(own, elsewhere):
    results = [push_until_refused(one) for one in own]
    assert sum(stored for stored, _ in results) <= QUOTA * SHARE
    assert "DRAMATIS_PERSON_SHARE" in results[-1][1]
    push_file(make_pushed_source(elsewhere), "a.md", b"Be kind.\n", by=BY)


@pytest.mark.planted
def test_a_quota_per_workspace_only_is_found(own, per_workspace):
    assert sum(push_until_refused(one)[0] for one in own) > QUOTA * SHARE


def test_calls_count_with_the_pushes(own):
    push_until_refused(own[0])
    with pytest.raises(CallQuotaExceeded):
        storage_quota.take_call_bytes(own[0].pk, 10_000)
    storage_quota.take_call_bytes(own[1].pk, 10_000)


def test_a_refused_push_stores_and_charges_nothing(own, alice, key_for):
    """By key and by page."""
    workspace, text = own[0], "x" * QUOTA
    source = make_pushed_source(workspace)
    before = Content.objects.in_workspace(workspace).count()
    charged = list(DailyUsage.objects.values_list("kind", "amount"))
    key = key_for(workspace, alice)
    push = {"files": [{"path": "docs/a.md", "text": text}]}
    for answer in (
        key.post(f"sources/{source.slug}/files:push", push),
        key.call("PUT", f"sources/{source.slug}/files/docs/a.md", {"text": text}),
    ):
        assert (answer.status_code, answer.json()["code"]) == (429, "call_quota_exceeded"), answer.content
        assert "daily quota" in answer.json()["detail"]
        assert 0 < int(answer["Retry-After"]) <= 86_400
    archive = SimpleUploadedFile("files.zip", write_zip([("docs/a.md", text.encode())]))
    page = signed_in(alice).post(f"/w/{workspace.slug}/sources/{source.slug}/upload/", {"archive": archive})
    assert page.status_code == 429
    assert "This workspace has used up its daily quota" in page.content.decode()
    assert Content.objects.in_workspace(workspace).count() == before
    assert list(DailyUsage.objects.values_list("kind", "amount")) == charged


def test_the_same_push_again_and_again_is_not_free(own):
    source, pushes = make_pushed_source(own[0]), 0
    while pushes < 30:
        try:
            push_file(source, "a.md", b"Be kind.\n", by=BY)
        except CallQuotaExceeded:
            break
        pushes += 1
    assert 0 < pushes < 30


# --- scans ----------------------------------------------------------------------------------------------


@pytest.fixture
def tmp_root(tmp_path, settings):
    settings.DRAMATIS_SOURCE_ROOTS = [tmp_path]
    return tmp_path


def test_refreshes_of_all_workspaces_of_a_person_share_the_turns(own, elsewhere, tmp_root, monkeypatch):
    queue: list[tuple[int, int]] = []

    def enqueue(job: Any, *arguments: int) -> bool:
        queue.append((arguments[0], arguments[1]))
        return True

    monkeypatch.setattr(tasks, "enqueue_job", enqueue)

    def request(workspace: Workspace, number: int) -> None:
        folder = tmp_root / f"{workspace.pk}-{number}"
        folder.mkdir()
        source = make_source(workspace, folder, folder.name, refresh_minutes=None)
        RefreshRun.objects.in_workspace(workspace).filter(source=source).delete()
        request_refresh(source, cause="manual", by=BY)

    for one in own:
        for number in range(3):
            request(one, number)
    for one in own:
        tasks.send_waiting_runs(one.pk)
    assert len(queue) == 2
    # Of two workspaces: they take turns.
    assert len({workspace_id for workspace_id, _ in queue}) == 2
    request(elsewhere, 0)
    assert len(list_runs_to_send(elsewhere.pk, timezone.now())) == 1


@pytest.mark.planted
def test_scans_per_workspace_only_are_found(own, elsewhere, tmp_root, monkeypatch, per_workspace):
    test = test_refreshes_of_all_workspaces_of_a_person_share_the_turns
    with pytest.raises(AssertionError):
        test(own, elsewhere, tmp_root, monkeypatch)


# --- webhooks -------------------------------------------------------------------------------------------


class HangingSender:
    """A receiver that answers after some time, and counts the requests that wait at once."""

    def __init__(self) -> None:
        self.waiting = self.most = 0
        self.urls: list[str] = []

    def post(self, url, body, headers):
        self.waiting += 1
        self.most = max(self.most, self.waiting)
        self.urls.append(url)
        time.sleep(0.3)
        self.waiting -= 1
        return SimpleNamespace(status=200, body=b"", headers={})


def deliver_all(workspaces: list[Workspace], per_workspace: int = 3) -> HangingSender:
    for workspace in workspaces:
        for number in range(per_workspace):
            values = {"name": f"Desk {number}", "url": f"https://{workspace.pk}.example.com/{number}"}
            create_endpoint(workspace, values, by=Actor("alice"))
        record_event(workspace, "record.changed", CHANGE)
    sender = HangingSender()
    deliver.DeliveryLoop(sender=cast("HttpSender", sender)).run()
    return sender


def test_endpoints_of_all_workspaces_of_a_person_share_the_threads(own, elsewhere):
    sender = deliver_all(own)
    assert sender.most <= deliver.MAX_PER_PERSON
    assert len(sender.urls) == COUNT * 3
    assert not WebhookDelivery.unscoped.filter(status="pending").exists()
    assert deliver_all([elsewhere]).most == 3


@pytest.mark.planted
def test_threads_per_workspace_only_are_found(own, per_workspace):
    assert deliver_all(own).most > deliver.MAX_PER_PERSON
