"""Requiring trust for found skills: what is in use stays, or is removed after a confirmation."""

# ruff: noqa: F811  # fixtures are imported and requested by name

import pytest

from personas.models import AuditEvent, Workspace
from skills.agent_context.effective import get_effective_context
from skills.agent_context.services import choose_context
from skills.files.services import set_trust_requirement
from tests.api_client import admin, bot, full_budgets, key_for  # noqa: F401  # fixtures
from tests.factories import BY, make_agent, make_source, refreshed
from tests.skills.files.file_samples import approve_file_at, file_at, write_skill

pytestmark = pytest.mark.django_db


@pytest.fixture
def reader(workspace, tmp_path, settings):
    """An agent with two skills in use: nobody has trusted "tea", "soup" is trusted."""
    settings.DRAMATIS_SOURCE_ROOTS = [tmp_path]
    set_trust_requirement(workspace, False, by=BY)
    workspace.refresh_from_db()
    write_skill(tmp_path, "tea")
    write_skill(tmp_path, "soup")
    source = make_source(workspace, tmp_path, approval="automatic")
    refreshed(source)
    approve_file_at(source, ".agents/skills/soup/SKILL.md")
    agent = make_agent(workspace, "pilot")
    choose_context(agent, source, "plain", working_directory="", expected=agent.revision, by=BY)
    assert list_used(agent) == ["soup", "tea"]
    return agent


def list_used(agent):
    return sorted(skill.name for skill in get_effective_context(agent).skills if skill.is_used)


def post(client, workspace, **values):
    return client.post(f"/w/{workspace.slug}/skills/trust/policy/", {"needed": "1", **values}, follow=True)


def needs_trust(workspace):
    return Workspace.objects.get(pk=workspace.pk).skills_need_trust


def test_the_page_names_the_skills_in_use_before_anything_changes(workspace, reader, as_alice):
    page = post(as_alice, workspace).content.decode()
    assert "tea" in page
    assert "Pilot" in page
    assert ".agents/skills/soup" not in page
    assert "Trust and keep 1 skill" in page
    assert "Remove 1 skill from prompts" in page
    assert not needs_trust(workspace)
    assert list_used(reader) == ["soup", "tea"]


def test_skills_in_use_are_kept_and_count_as_trusted(workspace, reader, as_alice):
    page = post(as_alice, workspace, in_use="keep").content.decode()
    assert "Kept in use and trusted: tea." in page
    assert needs_trust(workspace)
    assert list_used(reader) == ["soup", "tea"]
    event = AuditEvent.objects.in_workspace(workspace).filter(kind="workspace", verb="edited").last()
    assert event is not None
    assert event.after is not None
    assert event.after["trusted"] == ["house-files/.agents/skills/tea/SKILL.md"]


def test_skills_in_use_are_removed_only_on_request_and_named(workspace, reader, as_alice):
    page = post(as_alice, workspace, in_use="remove").content.decode()
    assert "Removed from prompts until someone trusts them: tea." in page
    assert list_used(reader) == ["soup"]


def test_without_untrusted_skills_in_use_nothing_is_asked(workspace, reader, as_alice):
    source = reader.context.uses.get().source
    approve_file_at(source, ".agents/skills/tea/SKILL.md")
    assert (
        "Discovered skills now need approval before agents use them."
        in post(as_alice, workspace).content.decode()
    )
    assert needs_trust(workspace)
    assert list_used(reader) == ["soup", "tea"]


@pytest.mark.slow
def test_a_kept_skill_waits_again_when_its_text_changes(workspace, reader, tmp_path, as_alice):
    post(as_alice, workspace, in_use="keep")
    write_skill(tmp_path, "tea", description="Makes coffee.")
    source = reader.context.uses.get().source
    refreshed(source)
    file = file_at(source, ".agents/skills/tea/SKILL.md")
    assert (file.active.number, file.latest.number) == (1, 2)


def test_the_api_keeps_skills_in_use_by_default_and_lists_them(workspace, reader, admin):
    tea = file_at(reader.context.uses.get().source, ".agents/skills/tea/SKILL.md").pk
    body = admin.post("discovered-skills:trust", {"is_required": True}).json()
    assert body == {"is_required": True, "kept": [tea], "removed": []}
    assert list_used(reader) == ["soup", "tea"]


def test_the_api_removes_skills_in_use_on_request(workspace, reader, admin):
    tea = file_at(reader.context.uses.get().source, ".agents/skills/tea/SKILL.md").pk
    body = admin.post("discovered-skills:trust", {"is_required": True, "in_use": "remove"}).json()
    assert body == {"is_required": True, "kept": [], "removed": [tea]}
    assert list_used(reader) == ["soup"]
    assert admin.post("discovered-skills:trust", {"is_required": False}).json()["removed"] == []
