"""Lists as files: what is filtered and nothing else, harmless in a spreadsheet, bounded."""

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
from tests.shared_workspaces import (  # noqa: F401  # fixtures
    housed_alice,
    housed_bob,
    housed_elsewhere,
    housed_mallory,
    housed_workspace,
    the_house,
)

ITSELF = [ExportColumn("said", lambda row: row)]


def body(answer):
    return b"".join(answer.streaming_content).decode()


def rows_in(answer):
    text = body(answer)
    assert text.startswith("\ufeff")
    return list(csv.DictReader(io.StringIO(text.removeprefix("\ufeff"))))


# --- the format ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "＝1", '=HYPERLINK("http://x")']
)
def test_nothing_that_looks_like_a_formula_begins_a_cell(text):
    assert format_csv_cell(text) == f"'{text}"
    [_, [said]] = csv.reader(
        io.StringIO("".join(generate_csv(ITSELF, [text])).removeprefix("\ufeff"), newline="")
    )
    assert said == f"'{text}"


def test_the_guard_is_what_keeps_formulas_out():
    """The planted fault: a writer without it hands the formula on."""
    loose = io.StringIO()
    csv.writer(loose).writerow(["=1+1"])
    assert loose.getvalue().startswith("=")
    assert not "".join(generate_csv(ITSELF, ["=1+1"])).splitlines()[1].startswith(('"=', "="))


def test_numbers_moments_lists_and_nothing_keep_their_meaning():
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


def test_commas_quotes_line_ends_and_every_script_come_back_as_they_were():
    texts = ['a,b;c "d"', "two\nlines", "naïve 日本 👩‍👩‍👧‍👦 שלום"]
    said = csv.reader(io.StringIO("".join(generate_csv(ITSELF, texts)).removeprefix("\ufeff"), newline=""))
    assert [row[0] for row in said][1:] == texts
    assert [row["said"] for row in json.loads("".join(generate_json(ITSELF, texts)))["rows"]] == texts


def test_a_file_ends_at_its_limit_and_says_so():
    lines = list(generate_csv(ITSELF, iter(range(10)), limit=3))
    assert len(lines) == 1 + 3 + 1
    assert "Cut after 3 rows" in lines[-1]
    cut = json.loads("".join(generate_json(ITSELF, iter(range(10)), limit=3)))
    assert ([row["said"] for row in cut["rows"]], cut["note"][:16]) == ([0, 1, 2], "Cut after 3 rows")
    whole = json.loads("".join(generate_json(ITSELF, iter(range(3)), limit=3)))
    assert (len(whole["rows"]), whole["note"]) == (3, "")


def test_rows_are_read_as_they_are_written():
    """Bounded memory: no row is asked for before the one before it has left."""
    asked: list[int] = []

    def rows() -> Iterator[int]:
        for number in range(1_000):
            asked.append(number)
            yield number

    lines = generate_csv(ITSELF, rows())
    for _ in range(3):
        next(lines)
    assert len(asked) <= 3


# --- the lists -----------------------------------------------------------------------------------------


def test_a_file_holds_what_the_filter_shows_and_not_only_its_page(workspace, as_bob):
    agent = make_agent(workspace, "pilot")
    Memory.objects.in_workspace(workspace).bulk_create(
        Memory(workspace=workspace, text=f"Kettle {number}", agent=agent, state="active")
        for number in range(60)
    )
    make_memory(workspace, "=cmd|' /C calc'!A0", agent=agent)
    make_memory(workspace, "A teapot")
    base = f"/w/{workspace.slug}/memories/"
    said = rows_in(as_bob.get(f"{base}?q=kettle&agent={agent.pk}&format=csv&page=2"))
    assert {row["text"] for row in said} == {f"Kettle {number}" for number in range(60)}
    assert {row["agent_slug"] for row in said} == {"pilot"}
    assert [row["text"] for row in rows_in(as_bob.get(f"{base}?q=cmd&format=csv"))] == ["'=cmd|' /C calc'!A0"]
    told = json.loads(body(as_bob.get(f"{base}?sort=text&format=json")))["rows"]
    assert [row["text"] for row in told] == sorted(row["text"] for row in told)
    assert len(told) == 62


def test_a_file_is_named_by_workspace_list_and_day_and_kept_by_no_cache(workspace, as_bob):
    answer = as_bob.get(f"/w/{workspace.slug}/souls/?format=csv")
    assert answer["Content-Disposition"].startswith(f'attachment; filename="{workspace.slug}-souls-20')
    assert answer["Content-Disposition"].endswith('.csv"')
    assert (answer["Cache-Control"], answer["Content-Type"]) == ("no-store", "text/csv; charset=utf-8")


def test_every_list_of_records_can_be_taken_away_in_few_questions(workspace, as_bob):
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
        with CaptureQueriesContext(connection) as asked:
            told = json.loads(body(as_bob.get(f"/w/{workspace.slug}/{name}/?format=json")))
        assert len(asked) <= 10, name
        assert "note" in told
    agents = json.loads(body(as_bob.get(f"/w/{workspace.slug}/agents/?format=json")))["rows"]
    assert (agents[0]["channels"], agents[0]["tools"]) == (["deck"], ["lamp"])


# --- lists that tell of people and access --------------------------------------------------------------

SENSITIVE = {"members": "members/export/", "audit-log": "audit/export/", "keys": "keys/export/"}


@pytest.mark.parametrize("name", SENSITIVE)
def test_taking_a_sensitive_list_away_is_written_down(workspace, as_alice, alice, by_alice, name):
    create_key(workspace, "Reception", {}, by=by_alice)
    answer = as_alice.get(f"/w/{workspace.slug}/{SENSITIVE[name]}?format=csv&q=Harb&kind=key")
    assert answer.status_code == 200
    rows_in(answer)
    [event] = AuditEvent.objects.in_workspace(workspace).filter(verb="exported")
    assert (event.actor, event.object_label) == (alice, f"{name} as csv")
    # Words that were searched for may be somebody's name.
    assert event.after
    assert (event.after["q"], event.after["kind"]) == ("(words)", "key")


@pytest.mark.parametrize("path", [*SENSITIVE.values(), "ledger/export/"])
def test_what_an_address_says_beyond_reason_is_not_written_down(workspace, as_alice, path):
    odd = "&".join([f"shelf=a%00b&{'n' * 300}=%00&q=x", *(f"w{number}={'v' * 300}" for number in range(90))])
    answer = as_alice.get(f"/w/{workspace.slug}/{path}?format=csv&{odd}")
    assert answer.status_code == 200
    [event] = AuditEvent.objects.in_workspace(workspace).filter(verb="exported")
    assert event.after
    assert event.after["shelf"] == "ab"
    assert len(str(event.after)) < 5_000


@pytest.mark.parametrize("path", [*SENSITIVE.values(), "ledger/export/"])
def test_a_sensitive_file_takes_the_password_once_more(workspace, as_alice, alice, path):
    alice.set_password(PASSWORD)
    alice.save()
    again = signed_in(alice)
    answer = again.get(f"/w/{workspace.slug}/{path}?format=csv")
    assert answer.status_code == 302
    assert "/reauthenticate/" in answer["Location"]
    assert not AuditEvent.objects.in_workspace(workspace).filter(verb="exported").exists()


def test_a_file_of_keys_holds_no_secret_and_is_not_for_everybody(workspace, as_alice, by_alice):
    key, secret = create_key(workspace, "Reception", {}, by=by_alice)
    text = body(as_alice.get(f"/w/{workspace.slug}/keys/export/?format=csv"))
    assert "Reception" in text
    assert secret not in text
    assert key.digest not in text
    viewer = make_user("Vera")
    join(workspace, viewer, Role.VIEWER)
    assert signed_in(viewer).get(f"/w/{workspace.slug}/keys/export/").status_code == 403


@pytest.mark.parametrize("lines_taken", [0, 1])
def test_whoever_goes_away_early_ends_the_reading(as_alice, workspace, lines_taken):
    """Else its cursor would be closed when somebody else's request runs, and break that."""
    answer = as_alice.get(f"/w/{workspace.slug}/audit/export/?format=csv")
    [lines] = [close.__self__ for close in answer._resource_closers if hasattr(close.__self__, "rows")]
    for _ in range(lines_taken):
        next(lines.lines)
    # What the server does; `answer.close()` would end the test's own connection too.
    for close in answer._resource_closers:
        close()
    assert list(lines.rows._rows) == []
