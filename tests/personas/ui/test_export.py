"""CSV and JSON export: filtered rows, formula injection, limits, audit of sensitive exports."""

import csv
import io
import json
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from personas.api_keys.services import create_key
from personas.models import AuditEvent, Memory
from personas.roles import Role
from personas.ui.export import ExportColumn, format_csv_cell, generate_csv, generate_json
from tests.factories import (
    PASSWORD,
    join,
    make_agent,
    make_channel,
    make_memory,
    make_responsibility,
    make_skill,
    make_soul,
    make_task,
    make_tool,
    make_user,
    signed_in,
)
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

VALUE_COLUMN = [ExportColumn("value", lambda row: row)]


def read_body(answer):
    return b"".join(answer.streaming_content).decode()


def parse_csv(answer):
    text = read_body(answer)
    assert text.startswith("\ufeff")
    return list(csv.DictReader(io.StringIO(text.removeprefix("\ufeff"))))


# --- the format ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "＝1", '=HYPERLINK("http://x")']
)
def test_nothing_that_looks_like_a_formula_begins_a_cell(text):
    assert format_csv_cell(text) == f"'{text}"
    [_, [cell]] = csv.reader(
        io.StringIO("".join(generate_csv(VALUE_COLUMN, [text])).removeprefix("\ufeff"), newline="")
    )
    assert cell == f"'{text}"


def test_without_the_guard_a_formula_would_be_written():
    """Planted fault: a plain csv writer writes the formula unchanged."""
    unguarded = io.StringIO()
    csv.writer(unguarded).writerow(["=1+1"])
    assert unguarded.getvalue().startswith("=")
    assert not "".join(generate_csv(VALUE_COLUMN, ["=1+1"])).splitlines()[1].startswith(('"=', "="))


def test_numbers_timestamps_lists_and_none_keep_their_meaning():
    noon = datetime(2026, 2, 3, 12, tzinfo=UTC)
    assert [format_csv_cell(value) for value in (-5, None, True, noon, ["a", "b"], {"k": 1})] == [
        -5,
        None,
        "yes",
        "2026-02-03T12:00:00+00:00",
        "a, b",
        '{"k": 1}',
    ]
    assert format_csv_cell(["=1", "b"]) == "'=1, b"


def test_commas_quotes_newlines_and_every_script_round_trip():
    texts = ['a,b;c "d"', "two\nlines", "naïve 日本 👩‍👩‍👧‍👦 שלום"]
    rows = csv.reader(
        io.StringIO("".join(generate_csv(VALUE_COLUMN, texts)).removeprefix("\ufeff"), newline="")
    )
    assert [row[0] for row in rows][1:] == texts
    assert [row["value"] for row in json.loads("".join(generate_json(VALUE_COLUMN, texts)))["rows"]] == texts


def test_an_export_is_truncated_at_its_limit_with_a_note():
    lines = list(generate_csv(VALUE_COLUMN, iter(range(10)), limit=3))
    assert len(lines) == 1 + 3 + 1
    assert "Only the first 3 rows are included" in lines[-1]
    truncated = json.loads("".join(generate_json(VALUE_COLUMN, iter(range(10)), limit=3)))
    assert ([row["value"] for row in truncated["rows"]], truncated["note"][:34]) == (
        [0, 1, 2],
        "Only the first 3 rows are included",
    )
    complete = json.loads("".join(generate_json(VALUE_COLUMN, iter(range(3)), limit=3)))
    assert (len(complete["rows"]), complete["note"]) == (3, "")


def test_rows_are_streamed():
    """Bounded memory: a row is read only after the previous one was written."""
    read: list[int] = []

    def rows() -> Iterator[int]:
        for number in range(1_000):
            read.append(number)
            yield number

    lines = generate_csv(VALUE_COLUMN, rows())
    for _ in range(3):
        next(lines)
    assert len(read) <= 3


# --- the lists -----------------------------------------------------------------------------------------


def test_an_export_contains_all_filtered_rows_and_not_only_one_page(workspace, as_bob):
    agent = make_agent(workspace, "pilot")
    Memory.objects.in_workspace(workspace).bulk_create(
        Memory(workspace=workspace, text=f"Kettle {number}", agent=agent, status="active")
        for number in range(60)
    )
    make_memory(workspace, "=cmd|' /C calc'!A0", agent=agent)
    make_memory(workspace, "A teapot")
    base = f"/w/{workspace.slug}/memories/"
    csv_rows = parse_csv(as_bob.get(f"{base}?q=kettle&agent={agent.pk}&format=csv&page=2"))
    assert {row["text"] for row in csv_rows} == {f"Kettle {number}" for number in range(60)}
    assert {row["agent_slug"] for row in csv_rows} == {"pilot"}
    assert [row["text"] for row in parse_csv(as_bob.get(f"{base}?q=cmd&format=csv"))] == [
        "'=cmd|' /C calc'!A0"
    ]
    json_rows = json.loads(read_body(as_bob.get(f"{base}?sort=text&format=json")))["rows"]
    assert [row["text"] for row in json_rows] == sorted(row["text"] for row in json_rows)
    assert len(json_rows) == 62


def test_an_export_is_named_by_workspace_list_and_day_and_not_cached(workspace, as_bob):
    answer = as_bob.get(f"/w/{workspace.slug}/souls/?format=csv")
    assert answer["Content-Disposition"].startswith(f'attachment; filename="{workspace.slug}-souls-20')
    assert answer["Content-Disposition"].endswith('.csv"')
    assert (answer["Cache-Control"], answer["Content-Type"]) == ("no-store", "text/csv; charset=utf-8")


@pytest.mark.slow
def test_every_list_of_records_can_be_exported_with_few_queries(workspace, as_bob):
    channel, tool = make_channel(workspace, "deck"), make_tool(workspace, "lamp")
    for number in range(5):
        agent = make_agent(
            workspace, soul=make_soul(workspace, f"S{number}"), channels=[channel], tools=[tool]
        )
        make_responsibility(agent)
        make_task(workspace, agent=agent, steps=[{"title": "Go", "is_done": False}])
        make_skill(workspace, agents=[agent])
    names = ("agents", "identities", "souls", "user-profiles", "memories", "responsibilities", "tasks")
    for name in (*names, "tools", "channels", "skills", "sources"):
        with CaptureQueriesContext(connection) as queries:
            export = json.loads(read_body(as_bob.get(f"/w/{workspace.slug}/{name}/?format=json")))
        assert len(queries) <= 10, name
        assert "note" in export
    agents = json.loads(read_body(as_bob.get(f"/w/{workspace.slug}/agents/?format=json")))["rows"]
    assert (agents[0]["channels"], agents[0]["tools"]) == (["deck"], ["lamp"])


# --- lists with personal data and credentials ----------------------------------------------------------

SENSITIVE = {"members": "members/export/", "audit-log": "audit/export/", "keys": "keys/export/"}


@pytest.mark.parametrize("name", SENSITIVE)
def test_exporting_a_sensitive_list_is_audited(workspace, as_alice, alice, by_alice, name):
    create_key(workspace, "Reception", {}, by=by_alice)
    answer = as_alice.get(f"/w/{workspace.slug}/{SENSITIVE[name]}?format=csv&q=Harb&kind=key")
    assert answer.status_code == 200
    parse_csv(answer)
    [event] = AuditEvent.objects.in_workspace(workspace).filter(verb="exported")
    assert (event.actor, event.object_label) == (alice, f"{name} as csv")
    # The search text is not stored, because it may be a person's name.
    assert event.after
    assert (event.after["q"], event.after["kind"]) == ("(words)", "key")


@pytest.mark.parametrize("path", [*SENSITIVE.values(), "ledger/export/"])
def test_excessive_query_parameters_are_not_audited(workspace, as_alice, path):
    query = "&".join(
        [f"shelf=a%00b&{'n' * 300}=%00&q=x", *(f"w{number}={'v' * 300}" for number in range(90))]
    )
    answer = as_alice.get(f"/w/{workspace.slug}/{path}?format=csv&{query}")
    assert answer.status_code == 200
    [event] = AuditEvent.objects.in_workspace(workspace).filter(verb="exported")
    assert event.after
    assert event.after["shelf"] == "ab"
    assert len(str(event.after)) < 5_000


@pytest.mark.parametrize("path", [*SENSITIVE.values(), "ledger/export/"])
def test_a_sensitive_export_requires_reauthentication(workspace, as_alice, alice, path):
    alice.set_password(PASSWORD)
    alice.save()
    again = signed_in(alice)
    answer = again.get(f"/w/{workspace.slug}/{path}?format=csv")
    assert answer.status_code == 302
    assert "/reauthenticate/" in answer["Location"]
    assert not AuditEvent.objects.in_workspace(workspace).filter(verb="exported").exists()


def test_an_export_of_keys_contains_no_secret_and_requires_permission(workspace, as_alice, by_alice):
    key, secret = create_key(workspace, "Reception", {}, by=by_alice)
    text = read_body(as_alice.get(f"/w/{workspace.slug}/keys/export/?format=csv"))
    assert "Reception" in text
    assert secret not in text
    assert key.digest not in text
    viewer = make_user("Vera")
    join(workspace, viewer, Role.VIEWER)
    assert signed_in(viewer).get(f"/w/{workspace.slug}/keys/export/").status_code == 403


@pytest.mark.parametrize("lines_taken", [0, 1])
def test_a_client_disconnect_closes_the_row_iterator(as_alice, workspace, lines_taken):
    """Otherwise the cursor would be closed during a later request and break its transaction."""
    answer = as_alice.get(f"/w/{workspace.slug}/audit/export/?format=csv")
    [stream] = [close.__self__ for close in answer._resource_closers if hasattr(close.__self__, "rows")]
    for _ in range(lines_taken):
        next(stream.lines)
    # As the server does; `answer.close()` would also close the test's own connection.
    for close in answer._resource_closers:
        close()
    assert list(stream.rows._rows) == []
