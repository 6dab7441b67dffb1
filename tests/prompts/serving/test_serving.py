"""Serving a prompt: one statement, checked each time, never a text without its ledger row."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from itertools import product
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from core.shared_cache import SharedLRUCache
from personas.api_keys.format import generate_key_secret
from personas.api_keys.services import create_key, revoke_key, rotate_key
from personas.errors import InvalidInput
from personas.models import ApiKey, Content, Erasure, Membership, User
from personas.records.services import archive_record
from prompts.assembly.slots import PreviousError, Session, Slots, StepInput, TaskInput, fill_segments
from prompts.evidence.erasure.services import erase_record
from prompts.models import AgentPrompt, MoveReason, PromptLabel, PromptVersion
from prompts.proof_rows import build_ledger_row
from prompts.publishing.builds.services import rebuild_agents
from prompts.publishing.labels.moves import move_labels
from prompts.publishing.labels.planned_moves import PlannedMove
from prompts.publishing.labels.services import remove_label, roll_back
from prompts.publishing.versions.selectors import get_segments
from prompts.serving import ledger_insert
from prompts.serving.cache import ServingCache
from prompts.serving.call_contents.selectors import get_call_values
from prompts.serving.errors import (
    InvalidKey,
    NoVersion,
    OutOfScope,
    PromptNotFound,
    ServingUnavailable,
    VersionErased,
)
from prompts.serving.request import CallContext, KeyClient, MemberClient, PromptRequest
from prompts.serving.services import serve_prompt
from prompts.serving.slot_values import slots_from_json
from tests.factories import BY, make_agent, make_channel, make_memory, make_profile
from tests.prompts.served_digests import is_recorded
from tests.prompts.serving.serving_stage import Stage, fetch, make_stage
from tests.shared_cast import (  # noqa: F401  # fixtures
    SharedCast,
    shared_alice,
    shared_as_alice,
    shared_as_bob,
    shared_as_mallory,
    shared_bob,
    shared_cast,
    shared_elsewhere,
    shared_mallory,
    shared_props,
    shared_workspace,
)

pytestmark = pytest.mark.django_db


def set_stage(shared: SharedCast) -> Any:
    return make_stage(shared.workspace)


@pytest.fixture
def stage(props: Stage) -> Stage:
    return props


def put_label(stage: Stage, name: str, version: PromptVersion) -> None:
    prompt = stage.prompt
    move_labels(
        stage.workspace, [PlannedMove(prompt, name, version, MoveReason.MOVED, by="test")], at=timezone.now()
    )
    prompt.save()


def version(stage: Stage, number: int) -> PromptVersion:
    return PromptVersion.objects.in_workspace(stage.workspace).get(prompt=stage.prompt, number=number)


# --- what is served ------------------------------------------------------------------------------------


def test_a_bot_gets_the_version_that_production_points_to(stage):
    served = stage.fetch()
    assert served.status == 200
    assert "Be brave." in served.text
    assert (served.number, served.layout, served.digest) == (1, "dramatis", version(stage, 1).digest)
    assert served.etag == f'W/"{served.digest}"'


def test_the_row_says_who_got_what_and_its_seal_holds(stage):
    served = stage.fetch(slots=Slots(is_background=True))
    [row] = stage.rows
    assert (row.pk, row.key_id, row.user_id, row.reader_label) == (
        served.ledger_id,
        stage.key.pk,
        None,
        "Reception",
    )
    assert (row.label, row.version_id, row.status, row.request_id) == (
        "production",
        served.version_id,
        200,
        served.request_id,
    )
    assert row.size == len(served.text.encode())
    assert is_recorded(row, served.served_digest)
    assert row.seal == build_ledger_row(row).seal()


def test_a_fetch_is_one_statement_once_cached(stage):
    stage.fetch()
    # The first call with data stores it and reserves a portion of the daily quota.
    stage.fetch(slots=Slots(append="Hello"))
    for options in ({}, {"known": version(stage, 1).digest}, {"slots": Slots(append="Hello")}):
        with CaptureQueriesContext(
            connection,
        ) as queries:
            stage.fetch(**options)
        assert len(queries) == 1, queries.captured_queries
        assert queries[0]["sql"].lstrip().startswith("INSERT INTO prompts_ledgerentry")
    assert len(stage.rows) == 5


def test_the_latest_label_is_one_statement_too(stage):
    stage.fetch(label="latest")
    with CaptureQueriesContext(connection) as queries:
        assert stage.fetch(label="latest").number == 1
    assert len(queries) == 1


def test_a_member_is_one_statement_too(stage, alice):
    client, prompt_request = MemberClient(stage.workspace, alice), PromptRequest("pilot", "deck")
    serve_prompt(client, prompt_request, CallContext(Slots(), "r1"), cache=stage.cache)
    with CaptureQueriesContext(connection) as queries:
        served = serve_prompt(client, prompt_request, CallContext(Slots(), "r2"), cache=stage.cache)
    assert len(queries) == 1
    row = stage.rows[-1]
    assert (row.pk, row.key_id, row.user_id, row.reader_label) == (
        served.ledger_id,
        None,
        alice.pk,
        alice.email,
    )
    assert row.seal == build_ledger_row(row).seal()


def test_a_client_that_has_the_version_gets_a_row_and_no_text(stage):
    first = stage.fetch()
    again = stage.fetch(known=first.digest)
    assert (again.status, again.text, again.etag) == (304, "", first.etag)
    assert [row.status for row in stage.rows] == [200, 304]
    assert all(row.seal == build_ledger_row(row).seal() for row in stage.rows)
    assert stage.fetch(known="0" * 64).status == 200


def test_an_edit_is_in_the_next_fetch(stage):
    assert "Be brave." in stage.fetch().text
    stage.edit("Be wise.")
    served = stage.fetch()
    assert served.number == 2
    assert "Be wise." in served.text


def test_after_a_roll_back_the_old_version_is_served_again(stage, by_alice):
    stage.edit("Be wise.")
    assert stage.fetch().number == 2
    roll_back([stage.prompt], by=by_alice, note="Too wise")
    assert stage.fetch().number == 1
    assert stage.fetch(label="latest").number == 2


def test_a_timestamp_selects_the_version_of_that_time(stage):
    before = timezone.now()
    stage.edit("Be wise.")
    for label in ("production", "latest"):
        then = stage.fetch(label=label, at=before)
        assert (then.number, stage.fetch(label=label).number) == (1, 2)
        row = stage.rows[-2]
        assert row.label == f"{label}@{before.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
        assert row.seal == build_ledger_row(row).seal()


def test_a_long_label_is_cut_to_make_room_for_its_timestamp(stage):
    name = "l" * 40
    put_label(stage, name, version(stage, 1))
    stage.fetch(label=name, at=timezone.now())
    assert len(stage.rows[0].label) == 40


def test_before_the_first_version_there_was_nothing(stage):
    with pytest.raises(NoVersion, match="at that time"):
        stage.fetch(at=datetime(2020, 1, 1, tzinfo=UTC))
    for timestamp in (timezone.now() + timedelta(days=1), datetime(2026, 1, 1)):  # noqa: DTZ001  # meant
        with pytest.raises(NoVersion, match="in the past"):
            stage.fetch(at=timestamp)
    assert stage.rows == []


def test_the_past_of_an_archived_agent_can_still_be_fetched(stage):
    stage.fetch()
    timestamp = timezone.now()
    stage.agent.refresh_from_db()
    archive_record(stage.agent, by=BY)
    with pytest.raises(PromptNotFound):
        stage.fetch()
    assert stage.fetch(at=timestamp).number == 1


# --- slots ---------------------------------------------------------------------------------------------

IN_CHICAGO = datetime(2026, 3, 7, 8, 55, tzinfo=ZoneInfo("America/Chicago"))
FACTS = Slots(
    now=datetime(2026, 3, 7, 8, 55, 5, 250_000, tzinfo=UTC),
    timezone="Europe/Lisbon",
    zone="WET",
    host={
        "os": "linux",
        "model": 1.5,
        "session": None,
        "sudo_non_interactive": True,
        "deep": [1.25, {"a": 2}],
    },
    sandbox={"enabled": True, "image": "tag\r\nline"},
    session=Session("s-1", "/plan.md"),
    task=TaskInput(4, "Sort the shed", "All of it", "open", (StepInput("Open", True), StepInput("Sort"))),
    is_background=True,
    previous_error=PreviousError("Timeout", "too slow", "step 2"),
    append="A word\rfor this call — häufig 🦊",
)


CALLS = {
    "nothing": Slots(),
    "everything": FACTS,
    "replaced": replace(FACTS, tools=("read",), replace="Only this."),
    "local time": Slots(now=IN_CHICAGO),
}


@pytest.mark.parametrize("layout", ["dramatis", "opal", "pi", "moltis", "nova", "ptc"])
def test_the_stored_slots_reproduce_the_same_bytes(stage, layout):
    profile = make_profile(stage.workspace, display_name="Ada", timezone="Asia/Tokyo")
    stage.change_layout(layout, user_profile=profile)
    segments = get_segments(version(stage, 2))
    for slots in CALLS.values():
        served, row = stage.fetch(slots=slots), stage.rows[-1]
        again = fill_segments(segments, slots_from_json(get_call_values(row)))
        assert "".join(segment.text for segment in again) == served.text
        assert is_recorded(row, sha256(served.text.encode()).hexdigest())


def test_the_time_is_filled_in_unless_the_call_sends_it(stage):
    served = stage.fetch()
    now = timezone.now()
    assert f"{now.year} at " in served.text
    assert "(UTC)" in served.text
    assert "1999 at 07:30" in stage.fetch(slots=Slots(now=datetime(1999, 1, 2, 7, 30, tzinfo=UTC))).text
    there = stage.fetch(slots=Slots(timezone="Asia/Tokyo")).text
    assert "(Asia/Tokyo)" in there
    assert "(Nowhere/Else)" in stage.fetch(slots=Slots(timezone="Nowhere/Else")).text


@pytest.mark.parametrize("text", ["zero \0 byte", "half \ud800 pair"])
def test_slots_that_cannot_be_stored_are_rejected(stage, text):
    for slots in (Slots(append=text), Slots(host={"os": [text]})):
        with pytest.raises(InvalidInput):
            stage.fetch(slots=slots)
    assert stage.rows == []


def test_a_request_id_is_kept_as_far_as_it_fits(stage):
    call = CallContext(Slots(), "a b\0c\n" + "d" * 100)
    served = serve_prompt(KeyClient(stage.secret), PromptRequest("pilot", "deck"), call, cache=stage.cache)
    assert served.request_id == "abc" + "d" * 61


# --- who is refused ------------------------------------------------------------------------------------


def test_a_revoked_key_is_refused_on_the_next_request_by_every_process(stage, by_alice):
    processes = [ServingCache(), ServingCache()]
    for process in processes:
        fetch(stage.secret, cache=process)
    revoke_key(stage.key, by=by_alice)
    for process in processes:
        with pytest.raises(InvalidKey):
            fetch(stage.secret, cache=process)
    assert len(stage.rows) == 2


def test_an_expired_key_is_refused_on_the_next_request(stage):
    stage.fetch()
    ApiKey.unscoped.filter(pk=stage.key.pk).update(expires_at=timezone.now())
    with pytest.raises(InvalidKey):
        stage.fetch()


def test_after_a_rotation_the_old_key_ends_at_its_time(stage, by_alice):
    stage.fetch()
    _, secret = rotate_key(stage.key, ends_at=timezone.now(), by=by_alice)
    with pytest.raises(InvalidKey):
        stage.fetch()
    assert fetch(secret, cache=stage.cache).status == 200


def test_all_bad_keys_look_alike_and_malformed_ones_cost_no_query(stage, by_alice):
    revoked, secret = create_key(stage.workspace, "Gone", {}, by=by_alice)
    revoke_key(revoked, by=by_alice)
    messages = set()
    for bad in (secret, generate_key_secret()):
        with pytest.raises(InvalidKey) as caught:
            fetch(bad)
        messages.add((caught.value.code, caught.value.message))
    for bad in ("", "drm_bot_", stage.secret[:-1], stage.secret[:-1] + "é", "\ud800" * 44):
        with CaptureQueriesContext(connection) as queries, pytest.raises(InvalidKey) as caught:
            fetch(bad)
        assert len(queries) == 0
        messages.add((caught.value.code, caught.value.message))
    assert len(messages) == 1


@pytest.mark.slow
@pytest.mark.parametrize("most", [2, pytest.param(4, marks=pytest.mark.hard)])
def test_a_key_is_good_for_what_its_scopes_name_and_nothing_else(stage, by_alice, most):
    """Try all keys with up to `most` restricted dimensions; with two, every pair is covered."""
    channel = make_channel(stage.workspace, "mast")
    cook = make_agent(stage.workspace, "cook", channels=[channel])
    rebuild_agents(stage.workspace, [cook.pk])
    stage.edit("Be wise.")
    put_label(stage, "canary", version(stage, 1))
    own = {"verbs": "fetch", "agents": "pilot", "channels": "deck", "labels": "canary"}
    other = {"verbs": "render", "agents": "cook", "channels": "mast", "labels": "production"}
    # Each dimension is unrestricted, allows the requested value, or allows another one.
    choices = [one for one in product((None, own, other), repeat=4) if 4 - one.count(None) <= most]
    for number, choice in enumerate(choices):
        scopes = {
            name: [values[name]] for name, values in zip(own, choice, strict=True) if values is not None
        }
        _, secret = create_key(stage.workspace, f"Key {number}", scopes, by=by_alice)
        if other in choice:
            with pytest.raises(OutOfScope):
                fetch(secret, "pilot", "deck", "canary", cache=stage.cache)
        else:
            assert fetch(secret, "pilot", "deck", "canary", cache=stage.cache).number == 1
    assert len(stage.rows) == sum(other not in choice for choice in choices) == {2: 11, 4: 16}[most]


def test_out_of_scope_does_not_disclose_what_exists(stage, by_alice):
    _, secret = create_key(stage.workspace, "Narrow", {"agents": ["pilot"]}, by=by_alice)
    make_agent(stage.workspace, "cook", channels=[make_channel(stage.workspace, "mast")])
    messages = []
    for agent in ("cook", "nobody"):
        with pytest.raises(OutOfScope) as caught:
            fetch(secret, agent, "mast")
        messages.append(caught.value.message.replace(agent, "…"))
    assert messages[0] == messages[1] == "This key is limited to specific agents. “…” is not one of them."


NOWHERE = [
    ("nobody", "deck", "production"),
    ("pilot", "moon", "production"),
    ("pilot", "web", "production"),
    ("pilot", "deck", "canary"),
    ("pilot", "deck", ""),
    ("pilot", "deck", "Production"),
    ("pi\0lot", "deck", "production"),
    ("pilot", "de\ud800ck", "production"),
    ("' OR 1=1 --", "deck", "production"),
    ("pilot", "deck", "l" * 65),
]


def test_what_is_not_there_is_not_found(stage):
    for agent, channel, label in NOWHERE:
        with pytest.raises(PromptNotFound):
            stage.fetch(agent=agent, channel=channel, label=label)
    assert stage.rows == []


def test_another_workspaces_prompt_is_not_there(stage, elsewhere):
    spy = make_agent(elsewhere, "spy", channels=[make_channel(elsewhere, "attic")])
    rebuild_agents(elsewhere, [spy.pk])
    _, secret = create_key(elsewhere, "Theirs", {}, by=BY)
    assert fetch(secret, "spy", "attic").number == 1
    messages = []
    for key, agent, channel in (
        (stage.secret, "spy", "attic"),
        (stage.secret, "spy", "deck"),
        (secret, "pilot", "deck"),
        (stage.secret, "nobody", "nowhere"),
    ):
        with pytest.raises(PromptNotFound) as caught:
            fetch(key, agent, channel)
        messages.append((caught.value.code, caught.value.message.replace(agent, "…")))
    assert set(messages) == {("not_found", "No agent “…”.")}
    assert stage.rows == []


def test_equal_slugs_in_two_workspaces_do_not_mix(stage, elsewhere):
    theirs = make_stage(elsewhere, text="Be sly.")
    shared = ServingCache()
    for _ in range(2):
        assert "Be brave." in fetch(stage.secret, cache=shared).text
        assert "Be sly." in fetch(theirs.secret, cache=shared).text
    assert {row.workspace_id for row in stage.rows} == {stage.workspace.pk}
    assert (len(stage.rows), len(theirs.rows)) == (2, 2)


def test_a_user_is_served_as_a_member_only(stage, alice, mallory, elsewhere):
    prompt_request = PromptRequest("pilot", "deck")
    serve_prompt(
        MemberClient(stage.workspace, alice), prompt_request, CallContext(Slots(), "r"), cache=stage.cache
    )
    with pytest.raises(PromptNotFound):
        serve_prompt(
            MemberClient(stage.workspace, mallory),
            prompt_request,
            CallContext(Slots(), "r"),
            cache=stage.cache,
        )
    with pytest.raises(PromptNotFound):
        serve_prompt(
            MemberClient(elsewhere, alice), prompt_request, CallContext(Slots(), "r"), cache=stage.cache
        )


@pytest.mark.parametrize("end", ["removed", "inactive"])
def test_a_former_member_is_refused_on_the_next_request(stage, bob, end):
    client, prompt_request = MemberClient(stage.workspace, bob), PromptRequest("pilot", "deck")
    serve_prompt(client, prompt_request, CallContext(Slots(), "r"), cache=stage.cache)
    if end == "removed":
        Membership.objects.in_workspace(stage.workspace).filter(user=bob).delete()
    else:
        User.objects.filter(pk=bob.pk).update(is_active=False)
    with pytest.raises(PromptNotFound):
        serve_prompt(client, prompt_request, CallContext(Slots(), "r"), cache=stage.cache)


def test_not_released_is_distinguished_from_not_found(elsewhere):
    stage = make_stage(elsewhere, release_policy="reviewed")
    with pytest.raises(NoVersion):
        stage.fetch()
    with pytest.raises(PromptNotFound):
        stage.fetch(label="canary")
    stage.secret = create_key(elsewhere, "Test bot", {"labels": ["latest"]}, by=BY)[1]
    assert stage.fetch(label="latest").number == 1
    AgentPrompt.unscoped.update(latest=None)
    with pytest.raises(NoVersion):
        stage.fetch(label="latest")


def test_an_archived_agent_is_refused_on_the_next_request(stage):
    stage.fetch()
    stage.agent.refresh_from_db()
    archive_record(stage.agent, by=BY)
    with pytest.raises(PromptNotFound):
        stage.fetch()


def test_a_removed_label_is_refused_on_the_next_request(stage, by_alice):
    put_label(stage, "canary", version(stage, 1))
    stage.fetch(label="canary")
    remove_label(stage.prompt, "canary", by=by_alice)
    with pytest.raises(PromptNotFound):
        stage.fetch(label="canary")


@pytest.mark.parametrize("change", [{"name": "Porch"}, {"scopes": {"agents": ["nobody"]}}])
def test_a_key_changed_in_the_database_is_noticed(stage, change):
    stage.fetch()
    ApiKey.unscoped.filter(pk=stage.key.pk).update(**change)
    if "scopes" in change:
        with pytest.raises(OutOfScope):
            stage.fetch()
    else:
        stage.fetch()
        assert [row.reader_label for row in stage.rows] == ["Reception", "Porch"]


# --- erased text ---------------------------------------------------------------------------------------


def erase(stage: Stage) -> None:
    """Erase the content and write the tombstone in one transaction, as an erasure does."""
    digest = next(
        row["content"] for row in version(stage, 1).segments if row["section"] == "soul" and "content" in row
    )
    with transaction.atomic():
        Content.unscoped.filter(workspace=stage.workspace, digest=digest).update(
            data=None, erased_at=timezone.now()
        )
        Erasure(
            workspace=stage.workspace, kind="soul", object_id=1, reason="Requested", author_label="alice"
        ).save()


def test_erased_text_is_refused_at_once_by_processes_that_have_it_cached(stage):
    processes = [ServingCache(), ServingCache()]
    for process in processes:
        assert "Be brave." in fetch(stage.secret, cache=process).text
    erase(stage)
    for process in processes:
        with pytest.raises(VersionErased):
            fetch(stage.secret, cache=process)
        assert len(process.versions) == 0
    assert len(stage.rows) == 2


def test_an_erased_memory_is_in_no_fetch_any_more(stage, by_alice):
    memory = make_memory(stage.workspace, "The cook likes tea.")
    rebuild_agents(stage.workspace, [stage.agent.pk])
    assert "likes tea" in stage.fetch().text
    timestamp = timezone.now()
    erase_record(memory, reason="Requested", by=by_alice)
    assert "likes tea" not in stage.fetch().text
    with pytest.raises(VersionErased):
        stage.fetch(at=timestamp)


def test_text_erased_a_second_time_is_refused_as_well(stage):
    """Content written again after an erasure and erased again has the same tombstone with a new time."""
    erase(stage)
    Content.unscoped.filter(data=None).update(data=b"Be brave.", erased_at=None)
    stage.fetch()
    Content.unscoped.filter(data=b"Be brave.").update(data=None, erased_at=timezone.now())
    Erasure.unscoped.update(at=timezone.now())
    with pytest.raises(VersionErased):
        stage.fetch()


def test_an_unrelated_erasure_only_reloads_the_version_once(stage):
    stage.fetch()
    Erasure(
        workspace=stage.workspace, kind="memory", object_id=9, reason="Requested", author_label="x"
    ).save()
    assert "Be brave." in stage.fetch().text
    with CaptureQueriesContext(connection) as queries:
        stage.fetch()
    assert len(queries) == 1


# --- labels that move during a fetch -------------------------------------------------------------------


def move_before_statement(stage: Stage, times: int, monkeypatch) -> list[int]:
    """Move production each time after the text is prepared and before the INSERT runs."""
    numbers: list[int] = []
    real = ledger_insert.insert_ledger_row

    def meanwhile(*args):
        if len(numbers) < times:
            label = PromptLabel.objects.in_workspace(stage.workspace).get(name="production")
            other = version(stage, 3 - label.version.number)
            put_label(stage, "production", other)
            numbers.append(other.number)
        return real(*args)

    monkeypatch.setattr("prompts.serving.services.insert_ledger_row", meanwhile)
    return numbers


@pytest.mark.parametrize("times", [1, 2, 3])
def test_a_label_that_moves_during_a_fetch_is_followed(stage, monkeypatch, times):
    stage.edit("Be wise.")
    stage.fetch()
    numbers = move_before_statement(stage, times, monkeypatch)
    served = stage.fetch()
    assert served.number == numbers[-1]
    assert ("Be brave." in served.text) == (served.number == 1)
    row = stage.rows[-1]
    assert (len(stage.rows), row.version_id) == (2, version(stage, numbers[-1]).pk)


def test_a_label_that_keeps_moving_fails_the_fetch(stage, monkeypatch):
    stage.edit("Be wise.")
    stage.fetch()
    move_before_statement(stage, 100, monkeypatch)
    with pytest.raises(ServingUnavailable):
        stage.fetch()
    assert len(stage.rows) == 1


def test_inside_a_transaction_nothing_is_served(stage):
    with transaction.atomic(), pytest.raises(ledger_insert.InsideTransaction):
        stage.fetch()


def test_the_cache_is_bounded_and_evicts_the_least_recently_used():
    recent: SharedLRUCache[int, int] = SharedLRUCache(3)
    for number in (1, 2, 3):
        recent.store(number, number)
    recent.find(1)
    recent.store(4, 4)
    assert [recent.find(number) for number in (1, 2, 3, 4)] == [1, None, 3, 4]
    assert len(recent) == 3


def test_the_secret_is_not_in_caches_or_reprs(stage):
    stage.fetch()
    assert stage.secret not in str(dict(stage.cache.resolutions))
    assert stage.secret not in repr(KeyClient(stage.secret))
