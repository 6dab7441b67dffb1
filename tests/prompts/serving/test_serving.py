"""The bot path: one statement, checked each time, never words without a row."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from itertools import product
from zoneinfo import ZoneInfo

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from personas.api_keys.format import generate_key_secret
from personas.api_keys.services import create_key, revoke_key, rotate_key
from personas.errors import InvalidInput
from personas.models import ApiKey, Content, Erasure, Membership, User
from personas.records.services import archive_record
from prompts.assembly.slots import PreviousError, Session, Slots, Step, Task, fill_segments
from prompts.builds.services import rebuild_agents
from prompts.erasure.services import erase_record
from prompts.hashed_rows import build_ledger_row
from prompts.labels.moves import PlannedMove, move_labels
from prompts.labels.services import remove_label, roll_back
from prompts.models import AgentPrompt, PromptLabel, PromptVersion
from prompts.serving import (
    CallContext,
    InvalidKey,
    KeyClient,
    MemberClient,
    NoVersion,
    OutOfScope,
    PromptNotFound,
    PromptRequest,
    ServingCache,
    ServingUnavailable,
    VersionErased,
    ledger_insert,
    serve_prompt,
    slots_from_json,
)
from prompts.serving.cache import SharedLRUCache
from prompts.versions.selectors import get_segments
from tests.factories import BY, make_agent, make_channel, make_memory, make_profile
from tests.prompts.serving.serving_stage import Stage, fetch, make_stage
from tests.shared_cast import (  # noqa: F401  # fixtures
    cast,
    shared_alice,
    shared_bob,
    shared_props,
    shared_workspace,
)

pytestmark = pytest.mark.django_db

set_stage = make_stage


@pytest.fixture
def stage(props: Stage) -> Stage:
    return props


def put_label(stage: Stage, name: str, version: PromptVersion) -> None:
    prompt = stage.prompt
    move_labels(stage.workspace, [PlannedMove(prompt, name, version, "moved", by="test")], at=timezone.now())
    prompt.save()


def version(stage: Stage, number: int) -> PromptVersion:
    return PromptVersion.objects.in_workspace(stage.workspace).get(prompt=stage.prompt, number=number)


# --- what is served ------------------------------------------------------------------------------------


def test_a_bot_gets_the_words_that_production_points_at(stage):
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
    assert (row.served_digest, row.size) == (served.served_digest, len(served.text.encode()))
    assert row.seal == build_ledger_row(row).seal()


def test_a_fetch_is_one_statement_once_the_process_knows_it(stage):
    stage.fetch()
    for asked in ({}, {"known": version(stage, 1).digest}, {"slots": Slots(append="Hello")}):
        with CaptureQueriesContext(
            connection,
        ) as queries:
            stage.fetch(**asked)
        assert len(queries) == 1, queries.captured_queries
        assert queries[0]["sql"].lstrip().startswith("INSERT INTO prompts_ledgerentry")
    assert len(stage.rows) == 4


def test_the_latest_label_is_one_statement_too(stage):
    stage.fetch(label="latest")
    with CaptureQueriesContext(connection) as queries:
        assert stage.fetch(label="latest").number == 1
    assert len(queries) == 1


def test_a_member_is_one_statement_too(stage, alice):
    reader, wanted = MemberClient(stage.workspace, alice), PromptRequest("pilot", "deck")
    serve_prompt(reader, wanted, CallContext(Slots(), "r1"), recall=stage.recall)
    with CaptureQueriesContext(connection) as queries:
        served = serve_prompt(reader, wanted, CallContext(Slots(), "r2"), recall=stage.recall)
    assert len(queries) == 1
    row = stage.rows[-1]
    assert (row.pk, row.key_id, row.user_id, row.reader_label) == (
        served.ledger_id,
        None,
        alice.pk,
        alice.email,
    )
    assert row.seal == build_ledger_row(row).seal()


def test_whoever_has_the_version_already_gets_a_row_and_no_words(stage):
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


def test_after_a_roll_back_the_old_words_are_served_again(stage, by_alice):
    stage.edit("Be wise.")
    assert stage.fetch().number == 2
    roll_back([stage.prompt], by=by_alice, note="Too wise")
    assert stage.fetch().number == 1
    assert stage.fetch(label="latest").number == 2


def test_what_is_asked_for_by_moment_is_what_held_then(stage):
    before = timezone.now()
    stage.edit("Be wise.")
    for label in ("production", "latest"):
        then = stage.fetch(label=label, at=before)
        assert (then.number, stage.fetch(label=label).number) == (1, 2)
        row = stage.rows[-2]
        assert row.label == f"{label}@{before.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
        assert row.seal == build_ledger_row(row).seal()


def test_a_label_of_the_longest_name_leaves_room_for_its_moment(stage):
    name = "l" * 40
    put_label(stage, name, version(stage, 1))
    stage.fetch(label=name, at=timezone.now())
    assert len(stage.rows[0].label) == 40


def test_before_the_first_version_there_was_nothing(stage):
    with pytest.raises(NoVersion, match="at that moment"):
        stage.fetch(at=datetime(2020, 1, 1, tzinfo=UTC))
    for moment in (timezone.now() + timedelta(days=1), datetime(2026, 1, 1)):  # noqa: DTZ001  # meant
        with pytest.raises(InvalidInput):
            stage.fetch(at=moment)
    assert stage.rows == []


def test_the_past_of_an_archived_agent_can_still_be_asked_for(stage):
    stage.fetch()
    moment = timezone.now()
    stage.agent.refresh_from_db()
    archive_record(stage.agent, by=BY)
    with pytest.raises(PromptNotFound):
        stage.fetch()
    assert stage.fetch(at=moment).number == 1


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
    task=Task(4, "Sort the shed", "All of it", "open", (Step("Open", True), Step("Sort"))),
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
def test_the_stored_facts_fill_the_same_bytes_again(stage, layout):
    profile = make_profile(stage.workspace, name="Ada", timezone="Asia/Tokyo")
    stage.relay(layout, user_profile=profile)
    segments = get_segments(version(stage, 2))
    for slots in CALLS.values():
        served, row = stage.fetch(slots=slots), stage.rows[-1]
        again = fill_segments(segments, slots_from_json(row.slots))
        assert "".join(segment.text for segment in again) == served.text
        assert sha256(served.text.encode()).hexdigest() == row.served_digest


def test_the_time_is_filled_in_where_the_caller_says_none(stage):
    served = stage.fetch()
    now = timezone.now()
    assert f"{now.year} at " in served.text
    assert "(UTC)" in served.text
    assert "1999 at 07:30" in stage.fetch(slots=Slots(now=datetime(1999, 1, 2, 7, 30, tzinfo=UTC))).text
    there = stage.fetch(slots=Slots(timezone="Asia/Tokyo")).text
    assert "(Asia/Tokyo)" in there
    assert "(Nowhere/Else)" in stage.fetch(slots=Slots(timezone="Nowhere/Else")).text


@pytest.mark.parametrize("text", ["zero \0 byte", "half \ud800 pair"])
def test_facts_that_cannot_be_stored_are_refused_with_their_place(stage, text):
    for slots in (Slots(append=text), Slots(host={"os": [text]})):
        with pytest.raises(InvalidInput):
            stage.fetch(slots=slots)
    assert stage.rows == []


def test_a_request_id_is_kept_as_far_as_it_fits(stage):
    call = CallContext(Slots(), "a b\0c\n" + "d" * 100)
    served = serve_prompt(KeyClient(stage.secret), PromptRequest("pilot", "deck"), call, recall=stage.recall)
    assert served.request_id == "abc" + "d" * 61


# --- who is refused ------------------------------------------------------------------------------------


def test_a_revoked_key_is_refused_on_the_next_request_by_every_process(stage, by_alice):
    processes = [ServingCache(), ServingCache()]
    for process in processes:
        fetch(stage.secret, recall=process)
    revoke_key(stage.key, by=by_alice)
    for process in processes:
        with pytest.raises(InvalidKey):
            fetch(stage.secret, recall=process)
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
    assert fetch(secret, recall=stage.recall).status == 200


def test_all_bad_keys_look_alike_and_malformed_ones_cost_no_query(stage, by_alice):
    revoked, secret = create_key(stage.workspace, "Gone", {}, by=by_alice)
    revoke_key(revoked, by=by_alice)
    said = set()
    for bad in (secret, generate_key_secret()):
        with pytest.raises(InvalidKey) as caught:
            fetch(bad)
        said.add((caught.value.code, caught.value.message))
    for bad in ("", "drm_bot_", stage.secret[:-1], stage.secret[:-1] + "é", "\ud800" * 44):
        with CaptureQueriesContext(connection) as queries, pytest.raises(InvalidKey) as caught:
            fetch(bad)
        assert len(queries) == 0
        said.add((caught.value.code, caught.value.message))
    assert len(said) == 1


@pytest.mark.parametrize("most", [2, pytest.param(4, marks=pytest.mark.hard)])
def test_a_key_is_good_for_what_its_scopes_name_and_nothing_else(stage, by_alice, most):
    """All keys of so many dimensions: with two, each of them meets each other."""
    channel = make_channel(stage.workspace, "mast")
    cook = make_agent(stage.workspace, "cook", channels=[channel])
    rebuild_agents(stage.workspace, [cook.pk])
    stage.edit("Be wise.")
    put_label(stage, "canary", version(stage, 1))
    own = {"verbs": "fetch", "agents": "pilot", "channels": "deck", "labels": "canary"}
    other = {"verbs": "render", "agents": "cook", "channels": "mast", "labels": "production"}
    # Each dimension is left open, names what is asked for, or names something else.
    choices = [one for one in product((None, own, other), repeat=4) if 4 - one.count(None) <= most]
    for number, choice in enumerate(choices):
        scopes = {name: [said[name]] for name, said in zip(own, choice, strict=True) if said is not None}
        _, secret = create_key(stage.workspace, f"Key {number}", scopes, by=by_alice)
        if other in choice:
            with pytest.raises(OutOfScope):
                fetch(secret, "pilot", "deck", "canary", recall=stage.recall)
        else:
            assert fetch(secret, "pilot", "deck", "canary", recall=stage.recall).number == 1
    assert len(stage.rows) == sum(other not in choice for choice in choices) == {2: 11, 4: 16}[most]


def test_out_of_scope_tells_nothing_about_what_is_there(stage, by_alice):
    _, secret = create_key(stage.workspace, "Narrow", {"agents": ["pilot"]}, by=by_alice)
    make_agent(stage.workspace, "cook", channels=[make_channel(stage.workspace, "mast")])
    said = []
    for agent in ("cook", "nobody"):
        with pytest.raises(OutOfScope) as caught:
            fetch(secret, agent, "mast")
        said.append(caught.value.message)
    assert said[0] == said[1]


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
    said = []
    for key, agent, channel in (
        (stage.secret, "spy", "attic"),
        (stage.secret, "spy", "deck"),
        (secret, "pilot", "deck"),
        (stage.secret, "nobody", "nowhere"),
    ):
        with pytest.raises(PromptNotFound) as caught:
            fetch(key, agent, channel)
        said.append((caught.value.code, caught.value.message))
    assert len(set(said)) == 1
    assert stage.rows == []


def test_equal_slugs_in_two_workspaces_do_not_mix(stage, elsewhere):
    theirs = make_stage(elsewhere, words="Be sly.")
    shared = ServingCache()
    for _ in range(2):
        assert "Be brave." in fetch(stage.secret, recall=shared).text
        assert "Be sly." in fetch(theirs.secret, recall=shared).text
    assert {row.workspace_id for row in stage.rows} == {stage.workspace.pk}
    assert (len(stage.rows), len(theirs.rows)) == (2, 2)


def test_a_person_is_let_in_by_membership_only(stage, alice, mallory, elsewhere):
    wanted = PromptRequest("pilot", "deck")
    serve_prompt(MemberClient(stage.workspace, alice), wanted, CallContext(Slots(), "r"), recall=stage.recall)
    with pytest.raises(PromptNotFound):
        serve_prompt(
            MemberClient(stage.workspace, mallory), wanted, CallContext(Slots(), "r"), recall=stage.recall
        )
    with pytest.raises(PromptNotFound):
        serve_prompt(MemberClient(elsewhere, alice), wanted, CallContext(Slots(), "r"), recall=stage.recall)


@pytest.mark.parametrize("end", ["removed", "inactive"])
def test_a_person_who_has_left_is_refused_on_the_next_request(stage, bob, end):
    reader, wanted = MemberClient(stage.workspace, bob), PromptRequest("pilot", "deck")
    serve_prompt(reader, wanted, CallContext(Slots(), "r"), recall=stage.recall)
    if end == "removed":
        Membership.objects.in_workspace(stage.workspace).filter(user=bob).delete()
    else:
        User.objects.filter(pk=bob.pk).update(is_active=False)
    with pytest.raises(PromptNotFound):
        serve_prompt(reader, wanted, CallContext(Slots(), "r"), recall=stage.recall)


def test_nothing_released_is_told_from_nothing_there(elsewhere):
    stage = make_stage(elsewhere, release_policy="reviewed")
    with pytest.raises(NoVersion):
        stage.fetch()
    with pytest.raises(PromptNotFound):
        stage.fetch(label="canary")
    assert stage.fetch(label="latest").number == 1
    AgentPrompt.unscoped.update(latest=None)
    with pytest.raises(NoVersion):
        stage.fetch(label="latest")


def test_what_went_out_of_use_is_refused_on_the_next_request(stage):
    stage.fetch()
    stage.agent.refresh_from_db()
    archive_record(stage.agent, by=BY)
    with pytest.raises(PromptNotFound):
        stage.fetch()


def test_a_label_that_was_taken_off_is_refused_on_the_next_request(stage, by_alice):
    put_label(stage, "canary", version(stage, 1))
    stage.fetch(label="canary")
    remove_label(stage.prompt, "canary", by=by_alice)
    with pytest.raises(PromptNotFound):
        stage.fetch(label="canary")


@pytest.mark.parametrize("change", [{"name": "Porch"}, {"scopes": {"agents": ["nobody"]}}])
def test_a_key_changed_behind_our_back_is_seen(stage, change):
    stage.fetch()
    ApiKey.unscoped.filter(pk=stage.key.pk).update(**change)
    if "scopes" in change:
        with pytest.raises(OutOfScope):
            stage.fetch()
    else:
        stage.fetch()
        assert [row.reader_label for row in stage.rows] == ["Reception", "Porch"]


# --- erased words --------------------------------------------------------------------------------------


def erase(stage: Stage) -> None:
    """As an erasure leaves it: the words gone, a tombstone in their place, in one transaction."""
    digest = next(
        row["content"] for row in version(stage, 1).segments if row["section"] == "soul" and "content" in row
    )
    with transaction.atomic():
        Content.unscoped.filter(workspace=stage.workspace, digest=digest).update(
            data=None, erased_at=timezone.now()
        )
        Erasure(
            workspace=stage.workspace, kind="soul", object_id=1, reason="Asked for", person_label="alice"
        ).save()


def test_erased_words_are_refused_at_once_by_processes_that_still_hold_them(stage):
    processes = [ServingCache(), ServingCache()]
    for process in processes:
        assert "Be brave." in fetch(stage.secret, recall=process).text
    erase(stage)
    for process in processes:
        with pytest.raises(VersionErased):
            fetch(stage.secret, recall=process)
        assert len(process.words) == 0
    assert len(stage.rows) == 2


def test_a_memory_erased_by_its_verb_is_in_no_fetch_any_more(stage, by_alice):
    memory = make_memory(stage.workspace, "The cook likes tea.")
    rebuild_agents(stage.workspace, [stage.agent.pk])
    assert "likes tea" in stage.fetch().text
    moment = timezone.now()
    erase_record(memory, reason="Asked for", by=by_alice)
    assert "likes tea" not in stage.fetch().text
    with pytest.raises(VersionErased):
        stage.fetch(at=moment)


def test_words_erased_once_more_are_refused_as_well(stage):
    """Written anew after an erasure and erased again: the tombstone is the same, with another time."""
    erase(stage)
    Content.unscoped.filter(data=None).update(data=b"Be brave.", erased_at=None)
    stage.fetch()
    Content.unscoped.filter(data=b"Be brave.").update(data=None, erased_at=timezone.now())
    Erasure.unscoped.update(at=timezone.now())
    with pytest.raises(VersionErased):
        stage.fetch()


def test_an_erasure_elsewhere_in_the_workspace_costs_one_look_and_nothing_more(stage):
    stage.fetch()
    Erasure(
        workspace=stage.workspace, kind="memory", object_id=9, reason="Asked for", person_label="x"
    ).save()
    assert "Be brave." in stage.fetch().text
    with CaptureQueriesContext(connection) as queries:
        stage.fetch()
    assert len(queries) == 1


# --- labels that move in between -----------------------------------------------------------------------


def move_before_statement(stage: Stage, times: int, monkeypatch) -> list[int]:
    """Production moves to and fro each time, after the words are prepared and before the statement runs."""
    moved: list[int] = []
    real = ledger_insert.insert_ledger_row

    def meanwhile(*args):
        if len(moved) < times:
            label = PromptLabel.objects.in_workspace(stage.workspace).get(name="production")
            other = version(stage, 3 - label.version.number)
            put_label(stage, "production", other)
            moved.append(other.number)
        return real(*args)

    monkeypatch.setattr("prompts.serving.services.insert_ledger_row", meanwhile)
    return moved


@pytest.mark.parametrize("times", [1, 2, 3])
def test_a_label_that_moves_in_between_is_followed(stage, monkeypatch, times):
    stage.edit("Be wise.")
    stage.fetch()
    moved = move_before_statement(stage, times, monkeypatch)
    served = stage.fetch()
    assert served.number == moved[-1]
    assert ("Be brave." in served.text) == (served.number == 1)
    row = stage.rows[-1]
    assert (len(stage.rows), row.version_id) == (2, version(stage, moved[-1]).pk)


def test_a_label_that_never_stands_still_gets_no_words(stage, monkeypatch):
    stage.edit("Be wise.")
    stage.fetch()
    move_before_statement(stage, 100, monkeypatch)
    with pytest.raises(ServingUnavailable):
        stage.fetch()
    assert len(stage.rows) == 1


def test_inside_a_transaction_nothing_is_handed_out(stage):
    with transaction.atomic(), pytest.raises(ledger_insert.InsideTransaction):
        stage.fetch()


def test_memory_is_bounded_and_loses_the_least_used_first():
    recent: SharedLRUCache[int, int] = SharedLRUCache(3)
    for number in (1, 2, 3):
        recent.store(number, number)
    recent.find(1)
    recent.store(4, 4)
    assert [recent.find(number) for number in (1, 2, 3, 4)] == [1, None, 3, 4]
    assert len(recent) == 3


def test_the_secret_is_not_in_what_a_process_remembers_or_shows(stage):
    stage.fetch()
    assert stage.secret not in str(dict(stage.recall.guesses))
    assert stage.secret not in repr(KeyClient(stage.secret))
