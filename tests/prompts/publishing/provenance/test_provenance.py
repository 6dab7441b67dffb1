"""Provenance: versions and labels that contain a record, and origins of text."""

from itertools import pairwise
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction
from django.test.utils import CaptureQueriesContext

from personas.memories.services import revoke_memory
from personas.models import Agent, Channel
from personas.records.services import archive_record, edit_record
from prompts.assembly.segments import LAYOUT_ORIGIN, Origin, Segment
from prompts.models import PRODUCTION, AgentPrompt, PromptVersion, VersionPart
from prompts.publishing.labels.services import move_label, roll_back
from prompts.publishing.provenance.origins import describe_origins
from prompts.publishing.provenance.usage import VersionRange, get_record_usage
from prompts.publishing.versions.lockfile import diff_part_revisions, get_part_revisions
from prompts.publishing.versions.selectors import get_segments
from prompts.publishing.versions.text_rows import group_rows_by_section
from tests.factories import BY, make_agent, make_channel, make_memory, make_soul, make_tool
from tests.shared_cast import (  # noqa: F401  # fixtures
    SharedCast,
    shared_alice,
    shared_as_alice,
    shared_as_bob,
    shared_as_mallory,
    shared_bob,
    shared_cast,
    shared_commits,
    shared_elsewhere,
    shared_mallory,
    shared_props,
    shared_workspace,
)

DATABASE = pytest.mark.usefixtures("commits")


def set_stage(shared: SharedCast) -> Agent:
    workspace = shared.workspace
    soul, deck = make_soul(workspace, text="Be brave."), make_channel(workspace, "deck")
    return make_agent(workspace, "pilot", soul=soul, channels=[deck])


@pytest.fixture
def pilot(props: Agent) -> Agent:
    return props


@pytest.fixture
def deck(pilot) -> Channel:
    return Channel.objects.in_workspace(pilot.workspace).get(slug="deck")


@pytest.fixture
def soul(pilot) -> Any:
    return pilot.soul


def prompt_of(agent) -> Any:
    return AgentPrompt.objects.in_workspace(agent.workspace_id).select_related("latest").get(agent=agent)


def reword(soul, text):
    soul.refresh_from_db()
    edit_record(soul, {"text": text}, expected=soul.revision, by=BY)


def version(agent, number) -> PromptVersion:
    return PromptVersion.objects.in_workspace(agent.workspace_id).get(prompt__agent=agent, number=number)


# --- usage of records ----------------------------------------------------------------------------------


@DATABASE
def test_a_record_finds_the_versions_and_labels_it_is_in_now(workspace, pilot, soul):
    summary = get_record_usage(workspace, "soul", soul.pk)
    [usage] = summary.usages
    assert (summary.now, summary.before) == (1, 0)
    assert (usage.prompt, usage.ranges, usage.labels) == (
        prompt_of(pilot),
        [VersionRange(1, None)],
        ["latest", PRODUCTION],
    )


@DATABASE
def test_another_revision_is_the_same_stay(workspace, pilot, soul):
    reword(soul, "Be wise.")
    reword(soul, "Be wiser.")
    [usage] = get_record_usage(workspace, "soul", soul.pk).usages
    assert (usage.ranges, usage.last) == ([VersionRange(1, None)], 3)


@DATABASE
def test_a_removed_record_finds_where_it_was(workspace, pilot):
    memory = make_memory(workspace, "The cook likes tea.")
    revoke_memory(memory, by=BY)
    summary = get_record_usage(workspace, "memory", memory.pk)
    [usage] = summary.usages
    assert (summary.now, summary.before) == (0, 1)
    assert (usage.ranges, usage.labels, usage.past_labels, usage.last) == (
        [VersionRange(2, 2)],
        [],
        [PRODUCTION],
        2,
    )


@DATABASE
def test_a_record_that_only_an_older_labelled_version_holds_is_in_it_now(workspace, pilot):
    memory = make_memory(workspace, "The cook likes tea.")
    prompt = prompt_of(pilot)
    move_label(prompt, "canary", prompt.latest, expected=None, by=BY)
    revoke_memory(memory, by=BY)
    summary = get_record_usage(workspace, "memory", memory.pk)
    assert (summary.now, summary.usages[0].labels, summary.usages[0].past_labels) == (
        1,
        ["canary"],
        [PRODUCTION],
    )


@DATABASE
def test_a_rolled_back_production_no_longer_holds_what_came_later(workspace, pilot, by_alice):
    memory = make_memory(workspace, "The cook likes tea.")
    roll_back([prompt_of(pilot)], by=by_alice, note="Too much tea.")
    [usage] = get_record_usage(workspace, "memory", memory.pk).usages
    assert (usage.labels, usage.past_labels) == (["latest"], [PRODUCTION])


@DATABASE
def test_a_record_that_is_removed_and_added_again_has_two_ranges(workspace, pilot, soul):
    make_soul(workspace, "Other", text="Be quick.")
    other = make_soul(workspace, "Third", text="Be slow.")
    for chosen in (other, soul):
        pilot.refresh_from_db()
        edit_record(pilot, {"soul": chosen}, expected=pilot.revision, by=BY)
    [usage] = get_record_usage(workspace, "soul", soul.pk).usages
    assert usage.ranges == [VersionRange(1, 1), VersionRange(3, None)]
    [elsewhere] = get_record_usage(workspace, "soul", other.pk).usages
    assert elsewhere.ranges == [VersionRange(2, 2)]


@DATABASE
def test_a_tool_outside_the_text_is_tracked_too(workspace, deck):
    tool = make_tool(workspace, "ring_bell", description="Rings.")
    make_agent(workspace, "mute", layout="nova", channels=[deck], tools=[tool])
    assert get_record_usage(workspace, "tool", tool.pk).now == 1


@DATABASE
def test_a_record_the_layout_has_no_place_for_is_in_no_version(elsewhere):
    memory = make_memory(elsewhere, "The cook likes tea.")
    make_agent(elsewhere, "coder", layout="opal", channels=[make_channel(elsewhere, "deck")])
    assert get_record_usage(elsewhere, "memory", memory.pk).usages == []


@DATABASE
def test_strangers_records_of_the_same_number_are_not_mixed_up(workspace, elsewhere, pilot, soul):
    assert get_record_usage(elsewhere, "soul", soul.pk).usages == []
    assert get_record_usage(workspace, "identity", soul.pk).usages == []


@DATABASE
def test_an_edit_adds_one_row_that_the_database_protects(pilot, soul):
    before = VersionPart.unscoped.count()
    reword(soul, "Be wise.")
    assert VersionPart.unscoped.count() == before + 1
    with pytest.raises(DatabaseError), transaction.atomic():
        VersionPart.unscoped.update(revision=7)
    with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("DELETE FROM prompts_versionpart")


@DATABASE
def test_the_number_of_queries_does_not_grow_with_the_prompts(workspace, deck, soul):
    counts = []
    for name in ("a", "b", "c"):
        make_agent(workspace, f"agent-{name}", soul=soul, channels=[deck])
        with CaptureQueriesContext(
            connection,
        ) as queries:
            get_record_usage(workspace, "soul", soul.pk)
        counts.append(len(queries))
    assert set(counts) == {5}


@DATABASE
def test_an_archived_agents_prompts_are_still_listed(workspace, pilot, soul):
    archive_record(pilot, by=BY)
    [usage] = get_record_usage(workspace, "soul", soul.pk).usages
    assert usage.ranges == [VersionRange(1, None)]


# --- stored parts --------------------------------------------------------------------------------------


def test_parts_are_read_from_segments_and_offered_tools():
    segments: list[dict[str, Any]] = [
        {"section": "soul", "origin": {"kind": "soul", "id": "3", "revision": 2}},
        {"section": "soul", "text": "words of ours"},
        {"section": "directories", "origin": {"kind": "agent", "id": "night-shift"}},
        {"section": "x", "origin": {"kind": "context_file", "path": "AGENTS.md"}},
    ]
    assert get_part_revisions(segments, ["tool:7@4", "soul:9@1"]) == {("soul", 3): 2, ("tool", 7): 4}


def test_only_differences_are_stored():
    before = {("soul", 1): 1, ("memory", 1): 1, ("memory", 2): 1}
    after = {("soul", 1): 2, ("memory", 2): 1, ("memory", 3): 1}
    assert diff_part_revisions(before, after) == {("soul", 1): 2, ("memory", 3): 1, ("memory", 1): None}


# --- origins -------------------------------------------------------------------------------------------


@DATABASE
def test_every_origin_has_a_name_revision_author_and_url(workspace, pilot, soul):
    reword(soul, "Be wise.")
    origins = {segment.origin for segment in get_segments(version(pilot, 2))}
    labels = describe_origins(workspace, origins)
    one = labels[Origin("soul", str(soul.pk), 2)]
    assert (one.label, one.name, one.revision, one.author) == ("Soul", "Calm", 2, "test")
    assert one.url == f"/w/{workspace.slug}/souls/calm/history/2/"


@DATABASE
def test_an_origin_keeps_the_name_it_had(workspace, pilot, soul):
    edit_record(soul, {"name": "Stormy"}, expected=1, by=BY)
    [one] = describe_origins(workspace, [Origin("soul", str(soul.pk), 1)]).values()
    assert one.name == "Calm"


@DATABASE
def test_a_foreign_record_is_labelled_without_its_name(workspace, elsewhere):
    theirs = make_soul(elsewhere, "Secret")
    [one] = describe_origins(workspace, [Origin("soul", str(theirs.pk), 1)]).values()
    assert (one.name, one.author, one.url) == (f"number {theirs.pk}", "", "")


# --- rows with their origins ---------------------------------------------------------------------------

SOUL, MEMORY, AGENT = Origin("soul", "1", 1), Origin("memory", "1", 1), Origin("agent", "1", 1)


def rows(*segments):
    text = "".join([segment.text for segment in segments])
    sections = group_rows_by_section(segments)
    return [
        (section, [(text[row.start : row.end], row.origins) for row in rows]) for section, rows in sections
    ]


def test_rows_break_at_lines_and_say_whose_they_are():
    sections = rows(
        Segment("soul", "<soul>\n", LAYOUT_ORIGIN, "release"),
        Segment("soul", "Be calm.\nStay.", SOUL, "release"),
        Segment("soul", "\n</soul>", LAYOUT_ORIGIN, "release"),
        Segment("memories", "\n\n<m>\n", LAYOUT_ORIGIN, "user", 2),
        Segment("memories", "- One.", MEMORY, "user"),
    )
    assert sections == [
        (
            "soul",
            [("<soul>\n", [LAYOUT_ORIGIN]), ("Be calm.\nStay.\n", [SOUL]), ("</soul>\n", [LAYOUT_ORIGIN])],
        ),
        ("memories", [("\n<m>\n", [LAYOUT_ORIGIN]), ("- One.", [MEMORY])]),
    ]


def test_a_line_with_several_origins_stays_whole_and_names_all_of_them():
    sections = rows(
        Segment("mission", "Keep ", AGENT, "release"),
        Segment("mission", "Gamsalm", MEMORY, "release"),
        Segment("mission", " reporting.\nAlways.", AGENT, "release"),
    )
    assert sections == [("mission", [("Keep Gamsalm reporting.\n", [AGENT, MEMORY]), ("Always.", [AGENT])])]


def test_rows_cover_the_text_and_nothing_twice():
    segments = [
        Segment("a", "x\ny", SOUL, "release"),
        Segment("a", "", MEMORY, "release"),
        Segment("b", "z", MEMORY, "release"),
        Segment("b", "\n\n", LAYOUT_ORIGIN, "release"),
        Segment("c", "w", AGENT, "release"),
    ]
    text_rows = [row for _, group in group_rows_by_section(segments) for row in group]
    assert all(one.end == other.start for one, other in pairwise(text_rows))
    assert (text_rows[0].start, text_rows[-1].end) == (0, len("x\nyz\n\nw"))


def test_a_slot_covers_its_whole_run():
    [(_, [first, second])] = group_rows_by_section(
        [
            Segment("tools", "<tools>\n", LAYOUT_ORIGIN, "release", 0, "dramatis.tools", {}, 2),
            Segment("tools", "- bell", Origin("tool", "1", 1), "release"),
        ]
    )
    assert (first.slots, second.slots) == (["dramatis.tools"], ["dramatis.tools"])
