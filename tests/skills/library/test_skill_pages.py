"""Skill pages: the list, duplicate names, live validation, trust policy, export and instructions."""

import html
import io
import re
import shutil
import zipfile
from copy import deepcopy
from pathlib import Path
from typing import NamedTuple

import pytest
import skills_ref
from django.db import connection
from django.test.utils import CaptureQueriesContext, override_settings

from personas.models import AuditEvent, Revision
from prompts.publishing.inputs.skill_files import list_skill_files
from skills.agent_context.effective import get_effective_contexts
from skills.files.services import assign_skill_file, ignore_file
from skills.library.list import SkillFilter, get_found_status, list_skill_entries, load_skill_items
from skills.models import AssignedTo, Skill, Source
from tests.factories import BY, make_agent, make_skill, make_source, refreshed
from tests.module_fixtures import put_back
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
from tests.skills.library.skill_stage import (
    HIDDEN,
    choose_source,
    get_skill_file,
    skill_text,
    trust_skill,
    write_skill,
)
from tests.skills.seeded_choice import SOME_OR_ALL

pytestmark = pytest.mark.django_db

HERE = ".agents/skills"
GITHUB = ".github/skills"


class SkillSource(NamedTuple):
    """A source with skills on disk, two of them trusted."""

    source: Source
    files: Path
    pristine: Path


@pytest.fixture(scope="module", autouse=True)
def prepared(cast, django_db_blocker, tmp_path_factory):
    top = tmp_path_factory.mktemp("skills")
    root = top / "files"
    with override_settings(DRAMATIS_SOURCE_ROOTS=[top]):
        write_skill(root, f"{HERE}/tea", skill_text("tea", "Makes tea."))
        write_skill(root, f"{HERE}/wait", skill_text("wait", "Waits."))
        write_skill(root, f"{HERE}/evil", skill_text("evil", "Plots.", "\u202eodd"))
        write_skill(root, f"{HERE}/broken", "no head at all\n")
        write_skill(root, f"{GITHUB}/tea", skill_text("tea", "Makes other tea."))
        with django_db_blocker.unblock():
            source = make_source(cast.workspace, root)
            refreshed(source)
            trust_skill(source, f"{HERE}/tea")
            trust_skill(source, f"{GITHUB}/tea")
        shutil.copytree(root, top / "pristine")
        yield SkillSource(source, root, top / "pristine")


@pytest.fixture
def tree(prepared):
    yield prepared.files
    put_back(prepared.files, prepared.pristine)


@pytest.fixture
def source(prepared, db):
    return deepcopy(prepared.source)


def get_rows(response):
    return {
        (row.name, row.file.path if row.file else ""): row for row in response.context["page"].object_list
    }


def list_names(browser, workspace, **params):
    response = browser.get(f"/w/{workspace.slug}/skills/", params)
    assert response.status_code == 200
    return [row.name for row in response.context["page"].object_list]


# --- the list -------------------------------------------------------------------------------------------


def test_the_list_shows_records_and_discovered_skills(workspace, source, as_bob):
    make_skill(workspace, "brew", description="Brews.")
    page = as_bob.get(f"/w/{workspace.slug}/skills/").content.decode()
    unescaped = html.unescape(page)
    for text in ("Brews.", "Written in Dramatis", "Makes tea.", "House files", f"{HERE}/tea/SKILL.md"):
        assert text in unescaped
    file = get_skill_file(source, f"{HERE}/tea")
    assert f"/w/{workspace.slug}/files/{file.pk}/" in page


NARROWED: list[tuple[dict[str, str], list[str]]] = [
    ({}, ["", "brew", "evil", "tea", "tea", "wait"]),
    ({"where": "here"}, ["brew"]),
    ({"where": "found"}, ["", "evil", "tea", "tea", "wait"]),
    ({"status": "trusted"}, ["brew", "tea", "tea"]),
    ({"status": "pending"}, ["wait"]),
    ({"status": "quarantined"}, ["evil"]),
    ({"status": "invalid"}, [""]),
    ({"status": "missing"}, []),
    ({"status": "ignored"}, ["gone"]),
    ({"source": "house-files"}, ["", "evil", "tea", "tea", "wait"]),
    ({"source": "house-files", "where": "here"}, []),
    ({"q": "other"}, ["tea"]),
    ({"q": "BREW"}, ["brew"]),
    ({"q": "github"}, ["tea"]),
    ({"q": "%"}, []),
    ({"status": "nonsense", "source": "nonsense"}, ["", "brew", "evil", "tea", "tea", "wait"]),
]


@SOME_OR_ALL
def test_the_list_is_filtered_by_search_location_status_and_source(workspace, source, as_bob, chosen):
    make_skill(workspace, "brew", description="Brews.")
    gone = make_skill(workspace, "gone")
    as_bob.post(f"/w/{workspace.slug}/skills/{gone.name}/archive/")
    for params, names in chosen(NARROWED):
        assert list_names(as_bob, workspace, **params) == names, params


def test_an_ignored_skill_is_listed_only_under_ignored(workspace, source, as_bob):
    ignore_file(get_skill_file(source, f"{HERE}/wait"), by=BY)
    assert "wait" not in list_names(as_bob, workspace)
    assert list_names(as_bob, workspace, status="ignored") == ["wait"]


def test_the_badge_and_the_filter_use_the_same_status(workspace, source, tree):
    write_skill(tree, f"{HERE}/tea", skill_text("tea", "Makes stronger tea."))
    (tree / HERE / "wait" / "SKILL.md").unlink()
    refreshed(source)
    ignore_file(get_skill_file(source, f"{GITHUB}/tea"), by=BY)
    for status in ("trusted", "pending", "quarantined", "invalid", "missing", "ignored"):
        entries = list_skill_entries(workspace, SkillFilter(status=status))
        rows = load_skill_items(workspace, entries, [entry for entry in entries if entry.is_match])
        assert [get_found_status(row.file) for row in rows if row.file] == [status] * len(rows)
        assert len(rows) == {"trusted": 0}.get(status, 1)


def test_a_changed_skill_is_listed_with_the_text_in_force(workspace, source, tree, as_bob):
    write_skill(tree, f"{HERE}/tea", skill_text("tea", "Makes stronger tea."))
    refreshed(source)
    row = get_rows(as_bob.get(f"/w/{workspace.slug}/skills/"))["tea", f"{HERE}/tea/SKILL.md"]
    assert (row.status, row.description) == ("pending", "Makes tea.")


@pytest.mark.slow
def test_the_list_needs_few_queries_whatever_its_length(workspace, source, tree, as_bob):
    agents = [make_agent(workspace, f"reader-{number}") for number in range(3)]
    for agent in agents:
        choose_source(agent, source)
    assign_skill_file(get_skill_file(source, f"{GITHUB}/tea"), "selected", agents, by=BY)
    make_skill(workspace, "tea", agents=agents)
    address = f"/w/{workspace.slug}/skills/"
    as_bob.get(address)

    def list_queries():
        with CaptureQueriesContext(connection) as captured:
            assert as_bob.get(address).status_code == 200
        return [query["sql"] for query in captured]

    short = list_queries()
    for number in range(12):
        write_skill(tree, f"{HERE}/more-{number}", skill_text(f"more-{number}"))
        make_skill(workspace, f"more-{number}", agents=[make_agent(workspace)])
    refreshed(source)
    long = list_queries()
    own = [sql for sql in long if "django_session" not in sql and "personas_membership" not in sql]
    assert len(long) == len(short)
    assert len([sql for sql in own if 'FROM "personas_user"' not in sql]) <= 10, "\n".join(own)


@pytest.mark.slow
def test_fifty_skills_make_a_page(elsewhere, as_mallory):
    for number in range(52):
        make_skill(elsewhere, f"skill-{number:02}")
    assert len(list_names(as_mallory, elsewhere)) == 50
    assert list_names(as_mallory, elsewhere, page=2) == ["skill-50", "skill-51"]


def test_outsiders_and_other_workspaces_see_no_skills(workspace, elsewhere, source, as_mallory):
    assert as_mallory.get(f"/w/{workspace.slug}/skills/").status_code == 404
    assert list_names(as_mallory, elsewhere) == []
    file = get_skill_file(source, f"{HERE}/tea")
    assert as_mallory.post(f"/w/{elsewhere.slug}/skills/copy/{file.pk}/").status_code == 404


# --- namesakes ------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_skills_with_the_same_name_are_marked_and_the_record_wins(workspace, source, as_bob):
    reader = make_agent(workspace, "reader")
    choose_source(reader, source, "opal")
    make_skill(workspace, "tea", for_all_agents=True)
    rows = get_rows(as_bob.get(f"/w/{workspace.slug}/skills/"))
    written, first, second = (
        rows["tea", path] for path in ("", f"{HERE}/tea/SKILL.md", f"{GITHUB}/tea/SKILL.md")
    )
    assert [row.namesakes for row in (written, first, second)] == [3, 3, 3]
    assert (written.usage.used, dict(first.usage.hidden)) == (1, {"skill record": 1})
    assert (first.agent_count, second.agent_count, written.is_for_all) == (1, 1, True)
    page = re.sub(r"\s+", " ", as_bob.get(f"/w/{workspace.slug}/skills/").content.decode())
    assert "3 skills with this name" in page
    assert "Used by 1 agent." in page
    assert "Overridden for 1 agent by the skill written in Dramatis." in page


def test_among_discovered_skills_the_harness_decides(workspace, source, as_bob):
    for harness in ("opal", "plain"):
        choose_source(make_agent(workspace, harness), source, harness)
    rows = get_rows(as_bob.get(f"/w/{workspace.slug}/skills/"))
    first, second = rows["tea", f"{HERE}/tea/SKILL.md"], rows["tea", f"{GITHUB}/tea/SKILL.md"]
    assert (first.usage.used, first.usage.hidden) == (2, {})
    assert dict(second.usage.hidden) == {f"{HERE}/tea/SKILL.md": 1}


def test_a_skill_with_a_unique_name_is_not_marked(workspace, source, as_bob):
    rows = get_rows(as_bob.get(f"/w/{workspace.slug}/skills/", {"q": "wait"}))
    assert [row.namesakes for row in rows.values()] == [1]


@pytest.mark.slow
def test_the_counts_of_the_list_equal_the_contexts_of_the_agents(workspace, source, tree):
    """The counts of the list, computed for all agents at once, equal those of each agent's context."""
    agents = [make_agent(workspace, f"agent-{number}") for number in range(6)]
    child = make_agent(workspace, "child", parent=agents[0])
    for agent, harness in zip(agents, ("plain", "opal", "pi", "moltis", "opal"), strict=False):
        choose_source(agent, source, harness)
    write_skill(tree, ".moltis/skills/tea", skill_text("tea"))
    write_skill(tree, ".moltis/skills/odd", skill_text("odd-name", more="model: big\n"))
    write_skill(tree, f"{HERE}/odd", skill_text("odd-name"))
    refreshed(source)
    for path in (".moltis/skills/tea", ".moltis/skills/odd", f"{HERE}/odd"):
        trust_skill(source, path)
    assign_skill_file(get_skill_file(source, f"{GITHUB}/tea"), "selected", agents[3:], by=BY)
    assign_skill_file(get_skill_file(source, ".moltis/skills/odd"), AssignedTo.ALL, [], by=BY)
    make_skill(workspace, "tea", agents=agents[1:3])
    make_skill(workspace, "alone", agents=[child])

    expected: dict[tuple, tuple[int, int, int]] = {}
    for context in get_effective_contexts(workspace, [*agents, child]).values():
        for skill in context.skills:
            key = (skill.name, skill.file.path if skill.file else "")
            used, hidden, dropped = expected.get(key, (0, 0, 0))
            expected[key] = (
                used + skill.is_used,
                hidden + bool(skill.hidden_by),
                dropped + bool(skill.dropped),
            )
    entries = list_skill_entries(workspace, SkillFilter())
    rows = load_skill_items(workspace, entries, entries)
    counted = {
        (row.name, row.file.path if row.file else ""): (
            row.usage.used,
            row.usage.hidden.total(),
            row.usage.dropped,
        )
        for row in rows
        if row.usage.agent_count
    }
    assert counted == expected
    assert any(dropped for _, _, dropped in expected.values())


# --- one skill ------------------------------------------------------------------------------------------


def test_a_skill_page_shows_agents_findings_and_skills_of_the_same_name(workspace, source, as_bob):
    make_skill(workspace, "tea", body=f"Boil{HIDDEN} water.", agents=[make_agent(workspace, "reader")])
    page = as_bob.get(f"/w/{workspace.slug}/skills/tea/").content.decode()
    for text in (
        "Reader",
        "Discovered skills with the same name",
        f"{GITHUB}/tea/SKILL.md",
        "⟦U+200B⟧",
        "/skills/tea/export/",
    ):
        assert text in page
    assert Skill.objects.in_workspace(workspace).get().body == f"Boil{HIDDEN} water."


def test_an_archived_skill_can_still_be_viewed(workspace, source, as_bob):
    skill = make_skill(workspace, "tea")
    as_bob.post(f"/w/{workspace.slug}/skills/{skill.name}/archive/")
    assert as_bob.get(f"/w/{workspace.slug}/skills/tea/").status_code == 200


def test_a_skill_is_exported_as_a_folder_that_the_reference_accepts(workspace, as_bob, tmp_path):
    make_skill(
        workspace,
        "tea",
        description="Makes: tea.\nAnd more.",
        license="MIT",
        allowed_tools="Read Bash(git add *)",
        metadata={"version": "1.10", "no": "no"},
        body="# Boil\n\n---\n\nwater",
    )
    response = as_bob.get(f"/w/{workspace.slug}/skills/tea/export/")
    assert response["Content-Disposition"] == 'attachment; filename="tea.zip"'
    with zipfile.ZipFile(io.BytesIO(response.content)) as archive:
        assert archive.namelist() == ["tea/SKILL.md"]
        archive.extractall(tmp_path)
    assert skills_ref.validate(tmp_path / "tea") == []
    assert (tmp_path / "tea" / "SKILL.md").read_text().endswith("# Boil\n\n---\n\nwater\n")


def test_a_skill_too_large_for_a_file_says_so(workspace, as_bob):
    make_skill(workspace, "tea", body="🫖" * 70_000)
    response = as_bob.get(f"/w/{workspace.slug}/skills/tea/export/", follow=True)
    assert "cannot be exported" in response.content.decode()


# --- live validation ------------------------------------------------------------------------------------

GOOD = {"name": "brew", "description": "Brews.", "body": "Brew."}
BAD: dict[str, dict] = {
    "bad name": {"name": "Bad Name"},
    "hyphen at the end": {"name": "brew-"},
    "reserved": {"name": "import"},
    "taken": {"name": "tea"},
    "long name": {"name": "x" * 65},
    "long description": {"description": "x" * 1_025},
    "long body": {"body": "x" * 100_001},
    "long license": {"license": "x" * 201},
    "two lines": {"license": "a\nb"},
    "control character": {"body": "bell \x07"},
    "nul": {"name": "a\x00b"},
    "metadata": {"metadata": "no colon"},
    "foreign agent": {"agents": ["999999"]},
    "several": {"name": "Bad Name", "license": "x" * 201, "metadata": "no colon"},
}


def post_check(browser, workspace, values, of=""):
    response = browser.post(f"/w/{workspace.slug}/skills/new/check/?of={of}", values)
    assert response.status_code == 200
    return response


@pytest.mark.slow
@SOME_OR_ALL
def test_a_check_reports_the_same_errors_as_saving(workspace, as_bob, chosen):
    make_skill(workspace, "tea")
    before = Revision.unscoped.count()
    for case, bad in chosen(BAD.items()):
        checked = post_check(as_bob, workspace, GOOD | bad)
        errors = {one.name: list(one.messages) for one in checked.context["check"].invalid_fields}
        saved = as_bob.post(f"/w/{workspace.slug}/skills/new/", GOOD | bad)
        assert saved.status_code == 422, case
        assert errors == saved.context["form"].errors, case
        assert set(errors) == set(bad), case
    assert Revision.unscoped.count() == before


def test_a_valid_draft_passes_the_check_and_is_saved(workspace, as_bob):
    checked = post_check(as_bob, workspace, GOOD)
    assert checked.context["check"].is_sound
    assert Skill.objects.in_workspace(workspace).count() == 0
    assert as_bob.post(f"/w/{workspace.slug}/skills/new/", GOOD).status_code == 302
    again = post_check(as_bob, workspace, GOOD | {"revision": 1}, of="brew")
    assert again.context["check"].is_sound
    assert "Another skill" in post_check(as_bob, workspace, GOOD).content.decode()


def test_an_empty_required_field_is_missing_rather_than_invalid(workspace, as_bob):
    response = post_check(as_bob, workspace, {"name": "Bad Name"})
    result = response.context["check"]
    assert [one.name for one in result.invalid_fields] == ["name"]
    assert result.missing_fields == ("Description", "Instructions")
    assert 'id="live-name" hx-swap-oob="innerHTML"' in response.content.decode()


def test_a_check_shows_hidden_characters_and_findings(workspace, as_bob):
    page = post_check(
        as_bob, workspace, {"name": "brew", "description": f"<b>Brews{HIDDEN}</b>"}
    ).content.decode()
    assert "&lt;b&gt;Brews⟦U+200B⟧&lt;/b&gt;" in page
    assert "invisible-character" in page
    assert HIDDEN not in page


def test_wide_tools_are_flagged_in_a_draft(workspace, as_bob):
    page = post_check(as_bob, workspace, GOOD | {"allowed_tools": "Read *"}).content.decode()
    assert "wide-tools" in page
    assert "Allowed tools, line 1" in page


def test_the_form_shows_the_same_panel_without_any_script(workspace, as_bob):
    make_skill(workspace, "tea", description=f"Makes{HIDDEN} tea.")
    page = as_bob.get(f"/w/{workspace.slug}/skills/tea/edit/").content.decode()
    assert "Makes⟦U+200B⟧ tea." in page
    response = as_bob.post(f"/w/{workspace.slug}/skills/new/", {"name": "Bad Name"})
    assert response.status_code == 422
    # Form validation alone would report only the empty fields.
    assert set(response.context["form"].errors) == {"name", "description", "body"}


def test_viewers_may_not_check_and_get_is_rejected(workspace, bob, as_bob, as_mallory):
    address = f"/w/{workspace.slug}/skills/new/check/"
    assert as_bob.get(address).status_code == 405
    assert as_mallory.post(address, GOOD).status_code == 404
    bob.memberships.update(role="viewer")
    assert as_bob.post(address, GOOD).status_code == 403


# --- trust ----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_trust_policy_is_shown_and_owners_change_it(workspace, source, as_alice):
    address = f"/w/{workspace.slug}/skills/"
    assert "need approval before agents can use them" in as_alice.get(address).content.decode()
    assert get_skill_file(source, f"{HERE}/wait").active is None
    as_alice.post(f"{address}trust/policy/", {"needed": "0"})
    assert get_skill_file(source, f"{HERE}/wait").active is not None
    assert "as soon as they pass the scan" in as_alice.get(address).content.decode()
    as_alice.post(f"{address}trust/policy/", {"needed": "1", "in_use": "remove"})
    assert get_skill_file(source, f"{HERE}/wait").active is None
    events = AuditEvent.objects.in_workspace(workspace).filter(kind="workspace", verb="edited")
    assert events.count() == 2


def test_the_trust_policy_rejects_editors_and_invalid_values(workspace, source, as_bob, as_alice):
    address = f"/w/{workspace.slug}/skills/trust/policy/"
    assert as_bob.post(address, {"needed": "0"}).status_code == 403
    assert (
        "Trust discovered skills automatically"
        not in as_bob.get(f"/w/{workspace.slug}/skills/").content.decode()
    )
    as_alice.post(address, {"needed": "maybe"})
    workspace.refresh_from_db()
    assert workspace.skills_need_trust


# --- instructions ---------------------------------------------------------------------------------------


def get_offered_files(agent):
    """Return the skill files that a version of the agent's prompt would offer, by name."""
    [context] = get_effective_contexts(agent.workspace_id, [agent]).values()
    return {file.name: file for file in list_skill_files(context)}


def test_a_version_offers_the_file_of_the_skill_that_the_agent_uses(workspace, source, agent):
    assert "tea" not in get_offered_files(agent)
    choose_source(agent, source, "opal")
    offered, file = get_offered_files(agent)["tea"], get_skill_file(source, f"{HERE}/tea")
    assert file.active is not None
    assert offered.data.decode() == file.active.content.text
    assert offered.origin[:3] == ("context_file", str(file.pk), 1)
    skill = make_skill(workspace, "tea", body="Mine.", agents=[agent])
    offered = get_offered_files(agent)["tea"]
    assert offered.data.decode().endswith("Mine.\n")
    assert offered.origin[:3] == ("skill", str(skill.pk), 1)


def test_files_of_unusable_skills_are_not_offered(workspace, source, agent):
    choose_source(agent, source)
    make_skill(workspace, "others", agents=[make_agent(workspace, "other")])
    assert not get_offered_files(agent).keys() & {"wait", "evil", "broken", "", "nothing", "others"}


def test_the_file_stays_that_of_the_trusted_revision(workspace, source, tree, agent):
    choose_source(agent, source)
    write_skill(tree, f"{HERE}/tea", skill_text("tea", "Makes tea.", "Spill it."))
    refreshed(source)
    assert "Do the thing." in get_offered_files(agent)["tea"].data.decode()
