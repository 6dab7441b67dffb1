"""Questions read together are answered as each would be by itself: every field, every join, every order."""

from datetime import UTC, datetime
from typing import Any

import pytest
from django.db.models import Exists, Model, OuterRef, QuerySet

from personas.models import Agent, Content, Memory, Record, Responsibility, Tool, Workspace
from personas.records.services import edit_record
from personas.together import read_together
from prompts.inputs.load import questions_about
from prompts.models import PromptSettings
from skills.agent_context.preload import stock_questions
from skills.models import (
    AgentContext,
    ContextFile,
    FileAgent,
    FileRevision,
    Reach,
    RuleSet,
    Skill,
    SkillLink,
    Verdict,
)
from tests.factories import (
    BY,
    make_agent,
    make_channel,
    make_identity,
    make_memory,
    make_profile,
    make_responsibility,
    make_skill,
    make_soul,
    make_source,
    make_tool,
)

pytestmark = pytest.mark.django_db
# As odd as words get: quotes, placeholders, a tag, other scripts, and more than a page of them.
ODD = 'It\'s "100%" of %s and {this}; \\x00 <b>é日本🦊</b>\n\ttail\u2028' + "long " * 4_000
MOMENT = datetime(2026, 3, 29, 1, 59, 59, 123457, tzinfo=UTC)
HEAD = {"name": "knots", "deep": [1, 2.5, None, True, {"é": "🦊"}], "big": 2**60 + 1}


def told(row: Any, seen: tuple[int, ...] = ()) -> Any:
    """Everything a row holds, and those it was joined with, of which some lead back to it."""
    if not isinstance(row, Model) or id(row) in seen:
        return repr(row)
    fields = {name: value for name, value in vars(row).items() if name[0] != "_" and "place_in" not in name}
    joined = {name: told(other, (*seen, id(row))) for name, other in row._state.fields_cache.items()}
    data = {name: bytes(value) if isinstance(value, memoryview) else value for name, value in fields.items()}
    return type(row), data, joined, row._state.db, row._state.adding, getattr(row, "_home", None)


def differing(asked: list["QuerySet[Any, Any]"], answers: list[list[Any]]) -> list[str]:
    """Of which questions the answer is another than that of the ORM; in its order, where it has one."""
    wrong = []
    for rows, answer in zip(asked, answers, strict=True):
        alone, together = [told(row) for row in rows], [told(row) for row in answer]
        if not rows.ordered:
            alone, together = sorted(alone, key=repr), sorted(together, key=repr)
        if alone != together:
            wrong.append(rows.model.__name__)
    return wrong


@pytest.fixture(name="agents")
def a_full_house(workspace: Workspace, tmp_path: Any) -> list[Agent]:
    """Every kind of row that prompts are made of, with odd values in it."""
    channel, soul = make_channel(workspace, "deck"), make_soul(workspace, text=ODD[:9_000])
    persona = {"identity": make_identity(workspace), "user_profile": make_profile(workspace)}
    pilot = make_agent(workspace, "pilot", soul=soul, channels=[channel], **persona)
    cook = make_agent(workspace, "cook", channels=[channel], parent=pilot)
    tools = [make_tool(workspace, name, description=ODD[:3_000]) for name in ("zeta", "alpha")]
    edit_record(pilot, {"tools": tools}, expected=1, by=BY)
    make_memory(workspace, ODD[:1_900], agent=pilot, valid_from=MOMENT)
    make_memory(workspace, "All know.", valid_until=MOMENT)
    make_responsibility(pilot, "Steer", text=ODD[:15_000])
    make_responsibility(pilot, "Rest")
    Responsibility.objects.in_workspace(workspace).filter(title="Steer").update(position=9)
    for name in ("b-knots", "bknots", "a-maps", "ab"):
        make_skill(workspace, name, agents=[pilot], metadata={"author": "é🦊"})
    PromptSettings(workspace=workspace, native_tools=False, token_budget=3_000, soul=soul).save()
    PromptSettings(workspace=workspace, agent=cook, native_tools=None).save()
    found_skill(workspace, tmp_path, pilot)
    return [pilot, cook]


def found_skill(workspace: Workspace, folder: Any, agent: Agent) -> None:
    source = make_source(workspace, folder)
    AgentContext(workspace=workspace, agent=agent, source=source, harness="pi").save()
    RuleSet(workspace=workspace, harness="pi", rules={"name": "pi", "places": [1, None, 2.5]}).save()
    moments = {"first_seen_at": MOMENT, "changed_at": MOMENT}
    file = ContextFile(workspace=workspace, source=source, path="k/SKILL.md", file_kind="skill", **moments)
    file.reach, file.inode, file.mtime_ns = Reach.CHOSEN, 2**63 - 1, 2**53 + 1
    file.save()
    content = Content(workspace=workspace, digest="d" * 64, size=3, data=b"\x00\xff\xfe")
    content.save()
    revision = FileRevision(
        workspace=workspace, file=file, number=1, digest="d" * 64, content=content, size=3
    )
    revision.head, revision.verdict, revision.first_seen_at = HEAD, Verdict.GOOD, MOMENT
    revision.save()
    file.newest = file.in_force = revision
    file.save()
    FileAgent(workspace=workspace, file=file, agent=agent).save()


def all_questions(workspace: Workspace, agents: list[Agent]) -> list["QuerySet[Any, Any]"]:
    ids = [agent.pk for agent in agents]
    return [*questions_about(workspace, ids).values(), *stock_questions(workspace)]


def test_every_kind_that_prompts_are_made_of_is_read_as_by_itself(
    workspace: Workspace, agents: list[Agent], django_assert_num_queries: Any
) -> None:
    asked = all_questions(workspace, agents)
    with django_assert_num_queries(1):
        answers = read_together(*asked)
    assert all(answers), "each of them has something to tell"
    assert not differing(asked, answers)
    files: list[ContextFile] = next(rows for rows in answers if isinstance(rows[0], ContextFile))
    with django_assert_num_queries(0):
        revision = files[0].in_force
        assert (files[0].inode, files[0].mtime_ns, files[0].changed_at) == (2**63 - 1, 2**53 + 1, MOMENT)
        assert revision is not None
        assert revision.head == HEAD
        assert bytes(revision.content.data or b"") == b"\x00\xff\xfe"


def test_a_planted_difference_is_seen(workspace: Workspace, agents: list[Agent]) -> None:
    asked = all_questions(workspace, agents)
    answers = read_together(*asked)
    for rows in answers:
        row = rows[0]
        if isinstance(row, Record):
            row.updated_at = MOMENT
        else:
            rows.append(row)
    assert len(differing(asked, answers)) == len(asked)


def test_whole_rows_deferred_ones_notes_and_values_stand_side_by_side(
    workspace: Workspace, agents: list[Agent], django_assert_num_queries: Any
) -> None:
    links = SkillLink.objects.in_workspace(workspace)
    asked: list[QuerySet[Any, Any]] = [
        Memory.objects.in_workspace(workspace).select_related("agent__soul").order_by("-valid_from", "text"),
        Skill.objects.in_workspace(workspace).annotate(is_held=Exists(links.filter(skill=OuterRef("pk")))),
        Tool.objects.in_workspace(workspace).only("name"),
        Responsibility.objects.in_workspace(workspace),
        links.values_list("skill_id"),
        Agent.objects.in_workspace(workspace).filter(pk__in=[]),
    ]
    answers = read_together(*asked)
    assert not differing(asked, answers)
    assert [row.title for row in answers[3]] == ["Rest", "Steer"]
    assert answers[1][0].is_held is True
    assert answers[5] == []
    with django_assert_num_queries(1):
        assert answers[2][0].description


def test_what_cannot_be_found_is_not_asked(workspace: Workspace, django_assert_num_queries: Any) -> None:
    nobody = Agent.objects.in_workspace(workspace).filter(pk__in=[])
    with django_assert_num_queries(0):
        assert read_together(nobody, nobody.order_by("name")) == [[], []]
        assert read_together() == []
