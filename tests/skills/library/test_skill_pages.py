"""Skills in use: one list of both kinds, who wins among namesakes, checks while typing, trust and export."""

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
from skills.agent_context.effective import get_effective_contexts
from skills.files.services import assign_skill_file, ignore_file
from skills.library.list import SkillFilter, get_found_state, list_skill_entries, load_skill_items
from skills.library.selectors import get_skill_instructions
from skills.models import Reach, Skill, Source
from tests.factories import BY, make_agent, make_skill, make_source, refreshed
from tests.module_fixtures import put_back
from tests.skills.library.skill_stage import HIDDEN, found, read_by, skill_text, trust, write_skill
from tests.skills.seeded_choice import SOME_OR_ALL
from tests.skills.shared_cast import (  # noqa: F401  # fixtures
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

pytestmark = pytest.mark.django_db

HERE = ".agents/skills"
GITHUB = ".github/skills"


class House(NamedTuple):
    """What every test finds: skills on disk, two of them trusted."""

    source: Source
    files: Path
    pristine: Path


@pytest.fixture(scope="module", autouse=True)
def house(cast, django_db_blocker, tmp_path_factory):
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
            trust(source, f"{HERE}/tea")
            trust(source, f"{GITHUB}/tea")
        shutil.copytree(root, top / "pristine")
        yield House(source, root, top / "pristine")


@pytest.fixture
def tree(house):
    yield house.files
    put_back(house.files, house.pristine)


@pytest.fixture
def source(house, db):
    return deepcopy(house.source)


def rows_of(answer):
    return {(row.name, row.file.path if row.file else ""): row for row in answer.context["page"].object_list}


def names_shown(browser, workspace, **asked):
    answer = browser.get(f"/w/{workspace.slug}/skills/", asked)
    assert answer.status_code == 200
    return [row.name for row in answer.context["page"].object_list]


# --- the list -------------------------------------------------------------------------------------------


def test_the_list_shows_written_and_found_skills_side_by_side(workspace, source, as_bob):
    make_skill(workspace, "brew", description="Brews.")
    page = as_bob.get(f"/w/{workspace.slug}/skills/").content.decode()
    shown = html.unescape(page)
    for words in ("Brews.", "Written here", "Makes tea.", "House files", f"{HERE}/tea/SKILL.md"):
        assert words in shown
    file = found(source, f"{HERE}/tea")
    assert f"/w/{workspace.slug}/files/{file.pk}/" in page


NARROWED: list[tuple[dict[str, str], list[str]]] = [
    ({}, ["", "brew", "evil", "tea", "tea", "wait"]),
    ({"where": "here"}, ["brew"]),
    ({"where": "found"}, ["", "evil", "tea", "tea", "wait"]),
    ({"state": "trusted"}, ["brew", "tea", "tea"]),
    ({"state": "waiting"}, ["wait"]),
    ({"state": "quarantined"}, ["evil"]),
    ({"state": "invalid"}, [""]),
    ({"state": "missing"}, []),
    ({"state": "aside"}, ["gone"]),
    ({"source": "house-files"}, ["", "evil", "tea", "tea", "wait"]),
    ({"source": "house-files", "where": "here"}, []),
    ({"q": "other"}, ["tea"]),
    ({"q": "BREW"}, ["brew"]),
    ({"q": "github"}, ["tea"]),
    ({"q": "%"}, []),
    ({"state": "nonsense", "source": "nonsense"}, ["", "brew", "evil", "tea", "tea", "wait"]),
]


@SOME_OR_ALL
def test_the_list_is_narrowed_by_words_place_state_and_source(workspace, source, as_bob, chosen):
    make_skill(workspace, "brew", description="Brews.")
    gone = make_skill(workspace, "gone")
    as_bob.post(f"/w/{workspace.slug}/skills/{gone.name}/archive/")
    for asked, names in chosen(NARROWED):
        assert names_shown(as_bob, workspace, **asked) == names, asked


def test_an_ignored_skill_is_set_aside(workspace, source, as_bob):
    ignore_file(found(source, f"{HERE}/wait"), by=BY)
    assert "wait" not in names_shown(as_bob, workspace)
    assert names_shown(as_bob, workspace, state="aside") == ["wait"]


def test_the_badge_and_the_filter_speak_of_the_same_state(workspace, source, tree):
    write_skill(tree, f"{HERE}/tea", skill_text("tea", "Makes stronger tea."))
    (tree / HERE / "wait" / "SKILL.md").unlink()
    refreshed(source)
    ignore_file(found(source, f"{GITHUB}/tea"), by=BY)
    for state in ("trusted", "waiting", "quarantined", "invalid", "missing", "aside"):
        everything = list_skill_entries(workspace, SkillFilter(state=state))
        rows = load_skill_items(workspace, everything, [entry for entry in everything if entry.is_asked])
        assert [get_found_state(row.file) for row in rows if row.file] == [state] * len(rows)
        assert len(rows) == {"trusted": 0}.get(state, 1)


def test_a_changed_skill_waits_under_the_words_that_are_in_use(workspace, source, tree, as_bob):
    write_skill(tree, f"{HERE}/tea", skill_text("tea", "Makes stronger tea."))
    refreshed(source)
    row = rows_of(as_bob.get(f"/w/{workspace.slug}/skills/"))["tea", f"{HERE}/tea/SKILL.md"]
    assert (row.state, row.description) == ("waiting", "Makes tea.")


def test_the_list_asks_few_questions_whatever_its_length(workspace, source, tree, as_bob):
    agents = [make_agent(workspace, f"reader-{number}") for number in range(3)]
    for agent in agents:
        read_by(agent, source)
    assign_skill_file(found(source, f"{GITHUB}/tea"), "chosen", agents, by=BY)
    make_skill(workspace, "tea", agents=agents)
    address = f"/w/{workspace.slug}/skills/"
    as_bob.get(address)

    def questions():
        with CaptureQueriesContext(connection) as asked:
            assert as_bob.get(address).status_code == 200
        return [query["sql"] for query in asked]

    short = questions()
    for number in range(12):
        write_skill(tree, f"{HERE}/more-{number}", skill_text(f"more-{number}"))
        make_skill(workspace, f"more-{number}", agents=[make_agent(workspace)])
    refreshed(source)
    long = questions()
    own = [sql for sql in long if "django_session" not in sql and "personas_membership" not in sql]
    assert len(long) == len(short)
    assert len([sql for sql in own if 'FROM "personas_user"' not in sql]) <= 9, "\n".join(own)


def test_fifty_skills_make_a_page(elsewhere, as_mallory):
    for number in range(52):
        make_skill(elsewhere, f"skill-{number:02}")
    assert len(names_shown(as_mallory, elsewhere)) == 50
    assert names_shown(as_mallory, elsewhere, page=2) == ["skill-50", "skill-51"]


def test_strangers_and_other_workspaces_see_nothing_of_it(workspace, elsewhere, source, as_mallory):
    assert as_mallory.get(f"/w/{workspace.slug}/skills/").status_code == 404
    assert names_shown(as_mallory, elsewhere) == []
    file = found(source, f"{HERE}/tea")
    assert as_mallory.post(f"/w/{elsewhere.slug}/skills/copy/{file.pk}/").status_code == 404


# --- namesakes ------------------------------------------------------------------------------------------


def test_namesakes_are_marked_and_the_written_one_wins(workspace, source, as_bob):
    reader = make_agent(workspace, "reader")
    read_by(reader, source, "opal")
    make_skill(workspace, "tea", for_all_agents=True)
    rows = rows_of(as_bob.get(f"/w/{workspace.slug}/skills/"))
    written, first, second = (
        rows["tea", path] for path in ("", f"{HERE}/tea/SKILL.md", f"{GITHUB}/tea/SKILL.md")
    )
    assert [row.namesakes for row in (written, first, second)] == [3, 3, 3]
    assert (written.standing.used, dict(first.standing.hidden)) == (1, {"written here": 1})
    assert (first.agent_count, second.agent_count, written.is_for_all) == (1, 1, True)
    page = re.sub(r"\s+", " ", as_bob.get(f"/w/{workspace.slug}/skills/").content.decode())
    assert "Same name ×3" in page
    assert "Wins for 1 agent." in page
    assert "Hidden for 1 agent by the one written here." in page


def test_among_found_ones_the_harness_decides(workspace, source, as_bob):
    for harness in ("opal", "plain"):
        read_by(make_agent(workspace, harness), source, harness)
    rows = rows_of(as_bob.get(f"/w/{workspace.slug}/skills/"))
    first, second = rows["tea", f"{HERE}/tea/SKILL.md"], rows["tea", f"{GITHUB}/tea/SKILL.md"]
    assert (first.standing.used, first.standing.hidden) == (2, {})
    assert dict(second.standing.hidden) == {f"{HERE}/tea/SKILL.md": 1}


def test_one_of_a_kind_is_not_marked(workspace, source, as_bob):
    rows = rows_of(as_bob.get(f"/w/{workspace.slug}/skills/", {"q": "wait"}))
    assert [row.namesakes for row in rows.values()] == [1]


def test_the_list_counts_what_the_agents_are_given(workspace, source, tree):
    """The list works it out for all agents at once; each agent by itself must agree."""
    agents = [make_agent(workspace, f"agent-{number}") for number in range(6)]
    child = make_agent(workspace, "child", parent=agents[0])
    for agent, harness in zip(agents, ("plain", "opal", "pi", "moltis", "opal"), strict=False):
        read_by(agent, source, harness)
    write_skill(tree, ".moltis/skills/tea", skill_text("tea"))
    write_skill(tree, ".moltis/skills/odd", skill_text("Odd Name", more="model: big\n"))
    write_skill(tree, f"{HERE}/odd", skill_text("Odd Name"))
    refreshed(source)
    for path in (".moltis/skills/tea", ".moltis/skills/odd", f"{HERE}/odd"):
        trust(source, path)
    assign_skill_file(found(source, f"{GITHUB}/tea"), "chosen", agents[3:], by=BY)
    assign_skill_file(found(source, ".moltis/skills/odd"), Reach.ALL, [], by=BY)
    make_skill(workspace, "tea", agents=agents[1:3])
    make_skill(workspace, "alone", agents=[child])

    wanted: dict[tuple, tuple[int, int, int]] = {}
    for given in get_effective_contexts(workspace, [*agents, child]).values():
        for one in given.skills:
            key = (one.name, one.file.path if one.file else "")
            used, hidden, dropped = wanted.get(key, (0, 0, 0))
            wanted[key] = used + one.is_used, hidden + bool(one.hidden_by), dropped + bool(one.dropped)
    everything = list_skill_entries(workspace, SkillFilter())
    rows = load_skill_items(workspace, everything, everything)
    counted = {
        (row.name, row.file.path if row.file else ""): (
            row.standing.used,
            row.standing.hidden.total(),
            row.standing.dropped,
        )
        for row in rows
        if row.standing.holders
    }
    assert counted == wanted
    assert any(dropped for _, _, dropped in wanted.values())


# --- one skill ------------------------------------------------------------------------------------------


def test_a_skill_names_its_agents_its_findings_and_its_namesakes(workspace, source, as_bob):
    make_skill(workspace, "tea", body=f"Boil{HIDDEN} water.", agents=[make_agent(workspace, "reader")])
    page = as_bob.get(f"/w/{workspace.slug}/skills/tea/").content.decode()
    for words in (
        "Reader",
        "Found under the same name",
        f"{GITHUB}/tea/SKILL.md",
        "⟦U+200B⟧",
        "/skills/tea/export/",
    ):
        assert words in page
    assert Skill.objects.in_workspace(workspace).get().body == f"Boil{HIDDEN} water."


def test_an_archived_skill_can_still_be_looked_at(workspace, source, as_bob):
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
    answer = as_bob.get(f"/w/{workspace.slug}/skills/tea/export/")
    assert answer["Content-Disposition"] == 'attachment; filename="tea.zip"'
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        assert archive.namelist() == ["tea/SKILL.md"]
        archive.extractall(tmp_path)
    assert skills_ref.validate(tmp_path / "tea") == []
    assert (tmp_path / "tea" / "SKILL.md").read_text().endswith("# Boil\n\n---\n\nwater\n")


def test_a_skill_too_large_for_a_file_says_so(workspace, as_bob):
    make_skill(workspace, "tea", body="🫖" * 70_000)
    answer = as_bob.get(f"/w/{workspace.slug}/skills/tea/export/", follow=True)
    assert "does not fit into a file" in answer.content.decode()


# --- while typing ---------------------------------------------------------------------------------------

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


def check(browser, workspace, values, of=""):
    answer = browser.post(f"/w/{workspace.slug}/skills/new/check/?of={of}", values)
    assert answer.status_code == 200
    return answer


@SOME_OR_ALL
def test_a_check_says_what_saving_says(workspace, as_bob, chosen):
    make_skill(workspace, "tea")
    before = Revision.unscoped.count()
    for case, bad in chosen(BAD.items()):
        checked = check(as_bob, workspace, GOOD | bad)
        said = {one.name: list(one.messages) for one in checked.context["check"].wrong}
        saved = as_bob.post(f"/w/{workspace.slug}/skills/new/", GOOD | bad)
        assert saved.status_code == 422, case
        assert said == saved.context["form"].errors, case
        assert set(said) == set(bad), case
    assert Revision.unscoped.count() == before


def test_a_sound_draft_is_called_sound_and_saved_without_a_word(workspace, as_bob):
    checked = check(as_bob, workspace, GOOD)
    assert checked.context["check"].is_sound
    assert Skill.objects.in_workspace(workspace).count() == 0
    assert as_bob.post(f"/w/{workspace.slug}/skills/new/", GOOD).status_code == 302
    again = check(as_bob, workspace, GOOD | {"revision": 1}, of="brew")
    assert again.context["check"].is_sound
    assert "Another skill" in check(as_bob, workspace, GOOD).content.decode()


def test_what_is_not_typed_yet_is_missing_rather_than_wrong(workspace, as_bob):
    answer = check(as_bob, workspace, {"name": "Bad Name"})
    looked = answer.context["check"]
    assert [one.name for one in looked.wrong] == ["name"]
    assert looked.missing == ("Description", "Instructions")
    assert 'id="live-name" hx-swap-oob="innerHTML"' in answer.content.decode()


def test_a_check_shows_what_a_model_sees_and_what_it_should_not(workspace, as_bob):
    page = check(as_bob, workspace, {"name": "brew", "description": f"<b>Brews{HIDDEN}</b>"}).content.decode()
    assert "&lt;b&gt;Brews⟦U+200B⟧&lt;/b&gt;" in page
    assert "invisible-character" in page
    assert HIDDEN not in page


def test_wide_tools_are_flagged_in_a_draft(workspace, as_bob):
    page = check(as_bob, workspace, GOOD | {"allowed_tools": "Read *"}).content.decode()
    assert "wide-tools" in page
    assert "Allowed tools, line 1" in page


def test_the_form_shows_the_same_panel_without_any_script(workspace, as_bob):
    make_skill(workspace, "tea", description=f"Makes{HIDDEN} tea.")
    page = as_bob.get(f"/w/{workspace.slug}/skills/tea/edit/").content.decode()
    assert "Makes⟦U+200B⟧ tea." in page
    answer = as_bob.post(f"/w/{workspace.slug}/skills/new/", {"name": "Bad Name"})
    assert answer.status_code == 422
    # The form alone would have stopped at the empty fields.
    assert set(answer.context["form"].errors) == {"name", "description", "body"}


def test_viewers_do_not_check_and_nobody_reads_a_check(workspace, bob, as_bob, as_mallory):
    address = f"/w/{workspace.slug}/skills/new/check/"
    assert as_bob.get(address).status_code == 405
    assert as_mallory.post(address, GOOD).status_code == 404
    bob.memberships.update(role="viewer")
    assert as_bob.post(address, GOOD).status_code == 403


# --- trust ----------------------------------------------------------------------------------------------


def test_the_trust_rule_is_shown_and_owners_change_it(workspace, source, as_alice):
    address = f"/w/{workspace.slug}/skills/"
    assert "wait until someone trusts" in as_alice.get(address).content.decode()
    assert found(source, f"{HERE}/wait").in_force is None
    as_alice.post(f"{address}trust/policy/", {"needed": "0"})
    assert found(source, f"{HERE}/wait").in_force is not None
    assert "as soon as they are sound" in as_alice.get(address).content.decode()
    as_alice.post(f"{address}trust/policy/", {"needed": "1"})
    assert found(source, f"{HERE}/wait").in_force is None
    events = AuditEvent.objects.in_workspace(workspace).filter(kind="workspace", verb="edited")
    assert events.count() == 2


def test_the_trust_rule_is_not_for_editors_and_not_for_nonsense(workspace, source, as_bob, as_alice):
    address = f"/w/{workspace.slug}/skills/trust/policy/"
    assert as_bob.post(address, {"needed": "0"}).status_code == 403
    assert "Use them without asking" not in as_bob.get(f"/w/{workspace.slug}/skills/").content.decode()
    as_alice.post(address, {"needed": "maybe"})
    workspace.refresh_from_db()
    assert workspace.skills_need_trust


# --- the whole of a skill -------------------------------------------------------------------------------


def test_instructions_come_from_the_skill_that_the_agent_uses(workspace, source, agent):
    assert get_skill_instructions(agent, "tea") is None
    read_by(agent, source, "opal")
    told = get_skill_instructions(agent, "tea")
    file = found(source, f"{HERE}/tea")
    assert told is not None
    assert file.in_force is not None
    assert (told.description, told.body) == ("Makes tea.", "Do the thing.")
    assert told.origin == ("file", file.pk, 1, file.in_force.digest)
    skill = make_skill(workspace, "tea", body="Mine.", agents=[agent])
    told = get_skill_instructions(agent, "tea")
    assert told is not None
    assert (told.body, told.origin) == ("Mine.", ("skill", skill.pk, 1, ""))


def test_instructions_of_what_an_agent_may_not_use_are_not_told(workspace, source, agent):
    read_by(agent, source)
    for name in ("wait", "evil", "broken", "", "nothing"):
        assert get_skill_instructions(agent, name) is None
    make_skill(workspace, "others", agents=[make_agent(workspace, "other")])
    assert get_skill_instructions(agent, "others") is None


def test_instructions_stay_those_that_were_trusted(workspace, source, tree, agent):
    read_by(agent, source)
    write_skill(tree, f"{HERE}/tea", skill_text("tea", "Makes tea.", "Spill it."))
    refreshed(source)
    told = get_skill_instructions(agent, "tea")
    assert told is not None
    assert told.body == "Do the thing."
