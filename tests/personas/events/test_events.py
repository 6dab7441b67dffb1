"""Events: recorded with their cause, numbered without gaps, listed by the API and shown on a page."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack
from pathlib import Path

import pytest
from django.conf import settings
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from jsonschema import Draft202012Validator

from core.db.before_commit import atomic_with_hooks
from personas.actors import Actor
from personas.events import api as events_api
from personas.events.selectors import delete_events_before, event_json, list_events_after
from personas.events.services import build_event, number_events, record_event
from personas.events.types import EVENT_TYPES, InvalidEvent
from personas.limits.persons import get_share_key
from personas.memories.services import approve_memory, create_memory, reject_memory
from personas.models import ApiKey, Event, Workspace
from personas.records.services import archive_record, edit_record, restore_record
from project.api.examples import build_value
from tests.database_locks import patient_connection
from tests.factories import make_agent, make_channel, make_soul, make_user, make_workspace

CHANGE = {"kind": "soul", "id": 1, "revision": 1, "action": "edited"}


def record(workspace: Workspace, count: int = 1) -> None:
    for _ in range(count):
        record_event(workspace, "record.changed", CHANGE)


def list_numbers(workspace: Workspace, after: int = 0) -> list[int]:
    return [event.sequence or 0 for event in list_events_after(workspace, after)]


def list_types(workspace: Workspace, after: int = 0) -> list[str]:
    return [event.type for event in list_events_after(workspace, after)]


@pytest.mark.django_db
def test_events_are_numbered_from_one_in_each_workspace(workspace, elsewhere):
    record(workspace, 3)
    record(elsewhere)
    start = list_numbers(workspace, 0)
    assert start == list(range(1, len(start) + 1))
    assert list_numbers(elsewhere)[-1] == len(list_events_after(elsewhere, 0))
    record(workspace)
    assert list_numbers(workspace, start[-1]) == [start[-1] + 1]


@pytest.mark.django_db(transaction=True)
def test_an_event_is_undone_with_its_cause_and_leaves_no_gap(workspace):
    start = len(list_events_after(workspace, 0))

    def fail(*, has_hooks: bool) -> None:
        with atomic_with_hooks() if has_hooks else transaction.atomic():
            record(workspace)
            raise RuntimeError("no")

    for has_hooks in (True, False):
        with pytest.raises(RuntimeError):
            fail(has_hooks=has_hooks)
    with atomic_with_hooks():
        with pytest.raises(RuntimeError):
            fail(has_hooks=True)
        record(workspace)
    assert list_numbers(workspace, start) == [start + 1]


@pytest.mark.django_db(transaction=True)
def test_concurrent_writers_and_readers_number_without_gaps(workspace):
    start = len(list_events_after(workspace, 0))
    seen: list[list[int]] = [[], []]
    is_done = threading.Event()

    def write() -> None:
        with patient_connection():
            for _ in range(20):
                with transaction.atomic():
                    record(workspace)

    def read(numbers: list[int]) -> None:
        while True:
            is_last = is_done.is_set()
            numbers += list_numbers(workspace, numbers[-1] if numbers else start)
            if is_last:
                break
        connection.close()

    with ThreadPoolExecutor(6) as threads:
        readers = [threads.submit(read, numbers) for numbers in seen]
        list(threads.map(lambda _: write(), range(4)))
        is_done.set()
        wait(readers)
    assert seen == [list(range(start + 1, start + 81))] * 2


@pytest.mark.django_db
def test_deleted_events_keep_their_numbers(workspace):
    record(workspace, 2)
    last = list_numbers(workspace)[-1]
    assert delete_events_before(timezone.now()) >= 2
    record(workspace)
    assert list_numbers(workspace, 0) == [last + 1]


@pytest.mark.django_db
def test_unnumbered_events_are_not_deleted(workspace):
    record(workspace)
    delete_events_before(timezone.now())
    assert Event.objects.in_workspace(workspace).filter(sequence=None).exists()


def test_data_that_does_not_match_its_type_is_rejected():
    for data in (
        {**CHANGE, "text": "Be kind."},
        {**CHANGE, "kind": "Be kind, and write short sentences."},
        {name: value for name, value in CHANGE.items() if name != "id"},
        {**CHANGE, "id": "1"},
    ):
        with pytest.raises(InvalidEvent):
            build_event(1, "record.changed", data)
    with pytest.raises(InvalidEvent):
        build_event(1, "record.exploded", CHANGE)


VALUES = [
    *(0, 1, -1, 2**40, True, 1.0, None, "", "a", "a-b", "A", "a_b", "a-", "a\n", "You are kind.", "x" * 65),
    *(
        "x" * 41,
        "0" * 64,
        "f" * 65,
        "2026-11-17T09:00:00Z",
        "2026-11-17T09:00:00+00:00",
        "2026-11-17",
        [],
        [1],
    ),
]


def test_the_quick_check_accepts_only_what_the_schema_accepts():
    accepted = 0
    for event_type in EVENT_TYPES.values():
        for name, schema in event_type.data.fields.items():
            check = event_type.data.checks[name]
            quick = [value for value in VALUES if check(value)]
            accepted += len(quick)
            validator = Draft202012Validator(schema)
            assert all(validator.is_valid(value) for value in quick), f"{event_type.name}.{name}: {quick}"
    assert accepted > 100


def test_no_field_of_any_type_accepts_a_sentence():
    for event_type in EVENT_TYPES.values():
        for name, schema in event_type.data.fields.items():
            assert not Draft202012Validator(schema).is_valid("You are kind."), f"{event_type.name}.{name}"


@pytest.mark.django_db
def test_changes_of_records_are_events(workspace, alice):
    soul, by = make_soul(workspace), Actor.person(alice)
    start = len(list_events_after(workspace, 0))
    soul = edit_record(soul, {"text": "Canary words."}, expected=soul.revision, by=by)
    archive_record(soul, by=by)
    restore_record(soul, by=by)
    events = list_events_after(workspace, start)
    assert [(event.type, event.data["action"]) for event in events] == [
        ("record.changed", "edited"),
        ("record.changed", "archived"),
        ("record.changed", "restored"),
    ]
    assert events[0].data == {"kind": "soul", "id": soul.pk, "revision": soul.revision, "action": "edited"}
    assert "Canary" not in str([event.data for event in events])


@pytest.mark.django_db
def test_an_edit_without_a_change_is_no_event(workspace, alice):
    soul = make_soul(workspace)
    start = len(list_events_after(workspace, 0))
    edit_record(soul, {"text": soul.text}, expected=soul.revision, by=Actor.person(alice))
    assert list_events_after(workspace, start) == []


@pytest.mark.django_db
def test_a_proposed_memory_and_the_decision_are_events(agent, alice):
    bot, by, workspace = Actor.bot("desk"), Actor.person(alice), agent.workspace
    start = len(list_events_after(workspace, 0))
    first, second = [
        create_memory(workspace, {"text": text, "agent": agent}, by=bot)
        for text in ("Likes tea.", "Likes rum.")
    ]
    approve_memory(first, by=by)
    reject_memory(second, by=by)
    types = [name for name in list_types(workspace, start) if name.startswith("memory.")]
    assert types == ["memory.proposed", "memory.proposed", "memory.approved", "memory.rejected"]


@pytest.mark.django_db(transaction=True)
def test_an_edit_that_builds_a_prompt_records_its_events_with_one_statement(workspace, admin):
    soul = make_soul(workspace)
    make_agent(workspace, soul=soul, channels=[make_channel(workspace), make_channel(workspace)])
    start = len(list_events_after(workspace, 0))
    etag = admin.get(f"souls/{soul.slug}")["ETag"]
    with CaptureQueriesContext(connection) as queries:
        assert admin.patch(f"souls/{soul.slug}", {"text": "Speak plainly."}, etag).status_code == 200
    events = list_events_after(workspace, start)
    channels = {event.data["channel"] for event in events if event.type == "version.created"}
    counts = {name: [event.type for event in events].count(name) for name in {event.type for event in events}}
    assert counts == {"record.changed": 1, "version.created": len(channels), "label.moved": len(channels)}
    statements = [query["sql"] for query in queries if "personas_event" in query["sql"]]
    assert len(statements) == 1
    assert statements[0].startswith("INSERT")


@pytest.mark.django_db(transaction=True)
def test_a_failed_build_keeps_the_event_of_the_edit(workspace, alice, monkeypatch):
    soul = make_soul(workspace)
    make_agent(workspace, soul=soul, channels=[make_channel(workspace)])
    start = len(list_events_after(workspace, 0))

    def fail(*args: object) -> None:
        raise RuntimeError("no")

    # After the batch with the events was sent.
    monkeypatch.setattr("prompts.publishing.builds.services.confirm_events", fail)
    edit_record(soul, {"text": "Speak plainly."}, expected=soul.revision, by=Actor.person(alice))
    assert list_types(workspace, start) == ["record.changed"]


# --- API and page ------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_the_api_lists_events_after_a_number(workspace, admin):
    record(workspace, 3)
    everything = admin.get("events?after=0").json()["items"]
    assert [item["sequence"] for item in everything] == list(range(1, len(everything) + 1))
    last = everything[-1]
    assert (last["type"], last["workspace"], last["data"]) == ("record.changed", workspace.slug, CHANGE)
    assert last["id"] == f"evt_{Event.objects.in_workspace(workspace).get(sequence=last['sequence']).pk}"
    assert admin.get(f"events?after={last['sequence']}").json() == {"items": [], "next_cursor": None}


@pytest.mark.django_db
def test_pages_of_events_follow_each_other(workspace, admin):
    record(workspace, 5)
    numbers, path = [], "events?limit=2"
    while path:
        response = admin.get(path)
        numbers += [item["sequence"] for item in response.json()["items"]]
        cursor = response.json()["next_cursor"]
        path = f"events?limit=2&cursor={cursor}" if cursor else ""
    assert numbers == list(range(1, len(numbers) + 1))


@pytest.mark.django_db(transaction=True)
def test_a_waiting_request_gets_the_next_event(workspace, admin):
    last = len(list_events_after(workspace, 0))

    def write_later() -> None:
        time.sleep(0.7)
        record(workspace)
        connection.close()

    thread = threading.Thread(target=write_later)
    thread.start()
    began = time.monotonic()
    items = admin.get(f"events?after={last}&wait=20").json()["items"]
    thread.join()
    assert [item["sequence"] for item in items] == [last + 1]
    assert time.monotonic() - began < 15


@pytest.mark.django_db
def test_a_request_waits_no_longer_than_it_asked_for(workspace, admin):
    last = len(list_events_after(workspace, 0))
    began = time.monotonic()
    assert admin.get(f"events?after={last}&wait=1").json()["items"] == []
    assert 0.9 < time.monotonic() - began < 15
    assert admin.get("events?wait=21").status_code == 422


@pytest.mark.django_db
def test_no_more_than_a_few_requests_wait(workspace, admin):
    last = len(list_events_after(workspace, 0))
    for _ in range(events_api.MAX_WAITING):
        assert events_api.waiting_slots.acquire(blocking=False)
    try:
        began = time.monotonic()
        assert admin.get(f"events?after={last}&wait=20").json()["items"] == []
        assert time.monotonic() - began < 15
    finally:
        for _ in range(events_api.MAX_WAITING):
            events_api.waiting_slots.release()


@pytest.mark.django_db
def test_one_person_does_not_take_all_waiting_requests(workspace, elsewhere, alice):
    """Two workspaces of one person share; another tenant still waits for events."""
    other = make_workspace("Quay", owner=alice)
    shares = [get_share_key(pk) for pk in (workspace.pk, other.pk, other.pk, elsewhere.pk)]
    with ExitStack() as stack:
        taken = [stack.enter_context(events_api.waiting_slot(share)) for share in shares]
        assert taken == [True, True, False, True]
    assert not events_api.waiting_by_person
    with events_api.waiting_slot(shares[0]) as is_waiting:
        assert is_waiting


@pytest.mark.django_db(transaction=True)
def test_a_key_revoked_while_it_waits_gets_no_event(key_for):
    alice = make_user("Alice")
    workspace = make_workspace("Harbour", owner=alice)
    admin = key_for(workspace, alice)
    last = len(list_events_after(workspace, 0))

    def revoke_and_write():
        time.sleep(0.3)
        ApiKey.objects.in_workspace(workspace).update(revoked_at=timezone.now())
        record(workspace)
        connection.close()

    thread = threading.Thread(target=revoke_and_write)
    thread.start()
    answer = admin.get(f"events?after={last}&wait=20")
    thread.join()
    assert (answer.status_code, answer.json().get("code")) == (401, "invalid_key")


@pytest.mark.planted
@pytest.mark.django_db(transaction=True)
def test_a_key_that_is_not_checked_again_is_found(key_for, monkeypatch):
    monkeypatch.setattr(events_api, "authenticate", lambda *_: None)
    monkeypatch.setattr(events_api, "check_operation_permission", lambda *_: None)
    with pytest.raises(AssertionError):
        test_a_key_revoked_while_it_waits_gets_no_event(key_for)


@pytest.mark.django_db
def test_the_page_shows_new_events(workspace, as_alice):
    record(workspace)
    page = as_alice.get(f"/w/{workspace.slug}/events/")
    assert "record.changed" in page.content.decode()
    newest = list_numbers(workspace)[-1]
    live = f"/w/{workspace.slug}/events/live/?seen={newest}"
    assert as_alice.get(live).status_code == 204
    record(workspace)
    assert f'<th class="dr-when" scope="row">{newest + 1}</th>' in as_alice.get(live).content.decode()
    filtered = as_alice.get(f"/w/{workspace.slug}/events/?type=label.moved").content.decode()
    assert "<td data-label" not in filtered or "record.changed</span>" not in filtered


# --- the document -------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_the_document_has_a_schema_that_accepts_each_type(workspace, client):
    document = client.get("/api/v1/openapi.json").json()
    assert set(document["webhooks"]) == set(EVENT_TYPES)
    body = document["webhooks"]["label.moved"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    schema = {**body, "components": document["components"]}
    move = {**dict.fromkeys(("number", "version_id"), 2), "previous_number": None, "reason": "moved"}
    event = build_event(
        workspace, "label.moved", {"agent": "pilot", "channel": "web", "label": "production", **move}
    )
    event.pk = event.sequence = 1
    valid = event_json(event, workspace)
    assert Draft202012Validator(schema).is_valid(valid)
    assert not Draft202012Validator(schema).is_valid({**valid, "data": {"agent": "pilot"}})
    assert not Draft202012Validator(schema).is_valid({**valid, "sequence": "1"})
    # The document lets later releases add fields; what is recorded has exactly these.
    data = Draft202012Validator(EVENT_TYPES["label.moved"].data.schema)
    assert data.is_valid(valid["data"])
    assert not data.is_valid({**valid["data"], "text": "Be kind."})


@pytest.mark.django_db
@pytest.mark.parametrize("name", EVENT_TYPES)
def test_an_event_of_each_type_is_valid_by_the_published_schema_and_has_no_other_fields(
    workspace, client, name
):
    """An example is built from the rule that `record_event` enforces, and checked by the document."""
    document = client.get("/api/v1/openapi.json").json()
    published = document["webhooks"][name]["post"]["requestBody"]["content"]["application/json"]["schema"]
    validator = Draft202012Validator({**published, "components": document["components"]})
    Draft202012Validator.check_schema(validator.schema)
    example = build_value(EVENT_TYPES[name].data.schema, "", "")
    record_event(
        workspace, name, {field: "any" if value == "" else value for field, value in example.items()}
    )
    number_events(workspace.pk)
    [event] = list_events_after(workspace, 0)
    body = event_json(event, workspace)
    assert [error.message for error in validator.iter_errors(body)] == []
    assert body["type"] == name
    assert not validator.is_valid({**body, "data": {"unknown": True}})


@pytest.mark.django_db
def test_numbering_again_changes_nothing(workspace):
    record(workspace)
    number_events(workspace)
    first = list(Event.objects.in_workspace(workspace).order_by("pk").values_list("sequence", flat=True))
    number_events(workspace)
    assert (
        list(Event.objects.in_workspace(workspace).order_by("pk").values_list("sequence", flat=True)) == first
    )


def test_the_guide_names_every_type():
    guide = (Path(settings.BASE_DIR) / "docs" / "events.md").read_text()
    assert [name for name in EVENT_TYPES if f"`{name}`" not in guide] == []
