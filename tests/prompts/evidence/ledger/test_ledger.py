"""The ledger: no prompt without its row, filters and pages, outdated bots."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from personas.api_keys.services import create_key, revoke_key
from prompts.assembly.slots import Slots
from prompts.evidence.ledger.outdated_bots import list_outdated_bots
from prompts.evidence.ledger.selectors import LedgerFilter, get_ledger_page
from prompts.models import LedgerEntry, PromptVersion
from prompts.proof.hashed_rows import LedgerRow
from prompts.proof_rows import build_ledger_row
from prompts.publishing.builds.services import rebuild_agents
from prompts.publishing.labels.services import roll_back
from prompts.serving import ledger_insert
from prompts.serving.errors import ServingUnavailable
from prompts.serving.request import CallContext, MemberClient, PromptRequest
from prompts.serving.services import serve_prompt
from tests.factories import BY, make_agent, make_channel
from tests.prompts.serving.fetch_stage import ENTRY_POINTS, send_fetch
from tests.prompts.serving.serving_stage import Stage, fetch, insert_rows, make_stage, statements_fail_at
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
INSERT = "INSERT INTO prompts_ledgerentry"


def set_stage(shared: SharedCast) -> Any:
    return make_stage(shared.workspace)


@pytest.fixture
def stage(props: Stage) -> Stage:
    return props


# --- no record, no prompt ------------------------------------------------------------------------------


TRIES = 40


def refused_and_leaked(stage: Stage, tries: int) -> tuple[int, int]:
    """Fetch over HTTP; return how many fetches got 503 with Retry-After, and how many bytes were served."""
    refused = leaked = 0
    for number in range(tries):
        response = send_fetch(ENTRY_POINTS[number % 2], stage)
        refused += (response.status, response.headers.get("Retry-After")) == (503, "2")
        leaked += count_prompt_bytes(response.status, response.body)
    return refused, leaked


def count_prompt_bytes(status: int, body: bytes) -> int:
    """Count the bytes of a served prompt; any other response may not contain its text."""
    return len(body) if status == 200 or b"Be brave." in body else 0


@pytest.mark.slow
@pytest.mark.promise("R5")
def test_when_the_row_cannot_be_written_no_byte_is_served(stage):
    stage.fetch()
    with statements_fail_at(INSERT) as statements:
        assert refused_and_leaked(stage, TRIES) == (TRIES, 0)
    assert len(statements) == TRIES
    assert len(stage.rows) == 1
    assert stage.fetch().status == 200


@pytest.mark.promise("R5")
@pytest.mark.parametrize("word", ["SELECT", "INSERT"])
def test_a_failure_of_any_statement_gives_the_same_error(stage, word):
    with statements_fail_at(word), pytest.raises(ServingUnavailable):
        stage.fetch()
    assert stage.rows == []


@pytest.mark.promise("R5")
@pytest.mark.planted
def test_text_served_before_its_row_is_found(stage, monkeypatch):
    real = ledger_insert.insert_ledger_row

    def record_later(*args):
        try:
            return real(*args)
        except Exception:  # noqa: BLE001  # this is the fault
            return 1

    monkeypatch.setattr("prompts.serving.services.insert_ledger_row", record_later)
    with pytest.raises(AssertionError):
        test_when_the_row_cannot_be_written_no_byte_is_served(stage)


# --- the seal ------------------------------------------------------------------------------------------

OTHER = {
    "reader_label": "Porch",
    "label": "canary",
    "slots": {"append": "x"},
    "served_digest": "0" * 64,
    "size": 1,
    "status": 304,
    "request_id": "other",
    "at": timezone.now() - timedelta(days=1),
    "workspace_id": 10**9,
    "key_id": 10**9,
    "user_id": 7,
    "version_id": 10**9,
    "skill": "tea",
}


def unsealed_columns(row: LedgerEntry) -> list[str]:
    """List columns that can be changed without breaking the seal."""
    unsealed = []
    for name, value in OTHER.items():
        before = getattr(row, name)
        row.__dict__[name] = value
        unsealed += [name] if build_ledger_row(row).seal() == row.seal else []
        row.__dict__[name] = before
    return unsealed


def sealed_row(stage: Stage) -> LedgerEntry:
    served = stage.fetch()
    rows = LedgerEntry.objects.in_workspace(stage.workspace).select_related("prompt", "version")
    return rows.get(pk=served.ledger_id)


def test_the_seal_covers_every_column(stage):
    row = sealed_row(stage)
    columns = {field.attname for field in LedgerEntry._meta.concrete_fields}
    # The block covers the id; agent and channel identify the prompt. The client states the traceparent: the
    # server cannot know that it is true, so it is no part of the proof.
    assert columns - {"id", "seal", "prompt_id", "traceparent"} == set(OTHER)
    assert unsealed_columns(row) == []
    for name in ("agent_id", "channel_id"):
        before = getattr(row.prompt, name)
        row.prompt.__dict__[name] = 10**9
        assert build_ledger_row(row).seal() != row.seal
        row.prompt.__dict__[name] = before
    assert build_ledger_row(row).seal() == row.seal


@pytest.mark.planted
@pytest.mark.parametrize("column", ["served", "slots", "status", "key", "request_id", "at"])
def test_a_seal_that_leaves_a_column_out_is_found(stage, monkeypatch, column):
    real = LedgerRow.get_hashed_columns
    monkeypatch.setattr(
        LedgerRow,
        "get_hashed_columns",
        lambda row: {name: value for name, value in real(row).items() if name != column},
    )
    with pytest.raises(AssertionError):
        test_the_seal_covers_every_column(stage)


# --- searching -----------------------------------------------------------------------------------------


def ids(workspace, **filters) -> list[int]:
    return [row.pk for row in get_ledger_page(workspace, LedgerFilter(**filters)).rows]


@pytest.mark.slow
def test_rows_are_found_by_every_filter(stage, workspace, elsewhere, by_alice):
    deck, mast = stage.prompt.channel, make_channel(workspace, "mast")
    cook = make_agent(workspace, "cook", channels=[deck, mast])
    rebuild_agents(workspace, [cook.pk])
    other, secret = create_key(workspace, "Porch", {}, by=by_alice)
    first = stage.fetch()
    second = fetch(secret, "cook", "deck")
    third = fetch(secret, "cook", "mast")
    stage.edit("Be wise.")
    fourth = stage.fetch()
    everything = [fourth.ledger_id, third.ledger_id, second.ledger_id, first.ledger_id]
    assert ids(workspace) == everything
    assert ids(workspace, agent="cook") == everything[1:3]
    assert ids(workspace, channel="deck") == [fourth.ledger_id, second.ledger_id, first.ledger_id]
    assert ids(workspace, agent="cook", channel="mast") == [third.ledger_id]
    assert ids(workspace, key_id=other.pk) == everything[1:3]
    assert ids(workspace, version_id=first.version_id) == [first.ledger_id]
    assert ids(workspace, request_id=third.request_id) == [third.ledger_id]
    assert ids(workspace, since=second.at, until=fourth.at) == everything[1:3]
    assert ids(workspace, agent="nobody") == ids(workspace, agent="cook", channel="nowhere") == []
    assert ids(elsewhere) == ids(elsewhere, request_id=first.request_id) == []


def test_pages_continue_where_the_last_one_ended(stage):
    """Rows are ordered by time, then by id."""
    now = timezone.now()
    insert_rows(stage, [now, now, now - timedelta(hours=1), now, now + timedelta(seconds=1), now])
    row_ids, cursor = [], None
    for _ in range(10):
        page = get_ledger_page(stage.workspace, LedgerFilter(), before=cursor, limit=3)
        row_ids += [row.pk for row in page.rows]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert row_ids == [row.pk for row in sorted(stage.rows, key=lambda row: (row.at, row.pk), reverse=True)]
    assert len(row_ids) == 7
    assert get_ledger_page(stage.workspace, LedgerFilter(), before=10**12).rows


def test_a_page_takes_the_same_number_of_queries_at_any_length(stage):
    def cost(limit: int) -> int:
        with CaptureQueriesContext(connection) as queries:
            for row in get_ledger_page(stage.workspace, LedgerFilter(agent="pilot"), limit=limit).rows:
                assert (str(row.key), row.prompt.agent.slug) == ("Reception", "pilot")
                assert (row.prompt.channel.slug, row.version.number) == ("deck", 1)
        return len(queries)

    insert_rows(stage, [timezone.now()] * 20)
    assert cost(1) == cost(20) == 2


# --- outdated bots -------------------------------------------------------------------------------------


def number_of(version: PromptVersion | None) -> int | None:
    return version.number if version else None


def test_a_bot_with_the_version_of_its_label_is_not_outdated(stage):
    stage.fetch()
    stage.fetch(label="latest")
    assert list_outdated_bots(stage.workspace) == []


def test_a_bot_with_a_rolled_back_version_is_outdated(stage, by_alice):
    stage.edit("Be wise.")
    served = stage.fetch()
    [move] = roll_back([stage.prompt], by=by_alice, note="Too wise")
    [bot] = list_outdated_bots(stage.workspace)
    assert (bot.key.pk, bot.prompt.agent.slug, bot.prompt.channel.slug) == (stage.key.pk, "pilot", "deck")
    assert (bot.fetched_version.number, number_of(bot.current_version), bot.label) == (2, 1, "production")
    assert (bot.fetched_at, bot.since, bot.ledger_id) == (served.at, move.at, served.ledger_id)
    assert bot.is_rolled_back
    stage.fetch(known=served.digest)
    assert list_outdated_bots(stage.workspace) == []


def test_a_bot_is_outdated_per_label_after_a_new_version(stage):
    stage.fetch()
    stage.fetch(label="latest")
    stage.edit("Be wise.")
    stage.edit("Be wise and kind.")
    bots = {bot.label: bot for bot in list_outdated_bots(stage.workspace)}
    assert {(bot.fetched_version.number, number_of(bot.current_version)) for bot in bots.values()} == {(1, 3)}
    assert set(bots) == {"production", "latest"}
    assert not any(bot.is_rolled_back for bot in bots.values())
    second = stage.prompt.versions.get(number=2)
    assert bots["latest"].since == second.created_at
    assert bots["production"].since == second.created_at


def test_fetches_of_the_past_members_and_ended_keys_are_not_listed(stage, by_alice, alice):
    before = timezone.now()
    stage.edit("Be wise.")
    stage.fetch(at=before)
    serve_prompt(
        MemberClient(stage.workspace, alice), PromptRequest("pilot", "deck"), CallContext(Slots(), "r")
    )
    gone, secret = create_key(stage.workspace, "Gone", {}, by=by_alice)
    fetch(secret)
    stage.edit("Be kind.")
    assert [bot.key for bot in list_outdated_bots(stage.workspace)] == [gone]
    revoke_key(gone, by=by_alice)
    assert list_outdated_bots(stage.workspace) == []


def test_a_bot_without_recent_fetches_is_not_listed(stage):
    stage.fetch()
    stage.edit("Be wise.")
    assert len(list_outdated_bots(stage.workspace)) == 1
    assert list_outdated_bots(stage.workspace, within=timedelta(0)) == []


def test_outdated_bots_of_other_workspaces_are_not_listed(stage, elsewhere):
    stage.fetch()
    stage.edit("Be wise.")
    assert list_outdated_bots(elsewhere) == []


@pytest.mark.slow
def test_outdated_bots_take_the_same_number_of_queries_at_any_count(stage, by_alice):
    def cost() -> int:
        with CaptureQueriesContext(connection) as queries:
            for bot in list_outdated_bots(stage.workspace):
                assert bot.key.name
                assert bot.prompt.agent.slug
                assert number_of(bot.current_version)
        return len(queries)

    stage.fetch()
    stage.edit("Be wise.")
    one = cost()
    for number in range(5):
        _, secret = create_key(stage.workspace, f"Key {number}", {}, by=BY)
        fetch(secret)
    stage.edit("Be kind.")
    assert len(list_outdated_bots(stage.workspace)) == 6
    assert cost() == one
