"""Skills in a browser: live validation, import, assignment, and warnings about hidden characters."""

import re
import zipfile

import pytest
import skills_ref
from playwright.sync_api import expect

from tests.browser.page_checks import axe_violations, find_overflows, sample
from tests.browser.users import field
from tests.factories import make_agent, make_skill, make_soul, make_source, refreshed
from tests.skills.library.skill_stage import HIDDEN, choose_source, skill_text, trust_skill, write_skill

pytestmark = pytest.mark.slow

WIDE = "x" * 60


def live_error(page, name):
    return page.locator(f"#live-{name}")


@pytest.mark.hard
def test_an_invalid_name_is_reported_while_typing_and_fixed(bobs, tmp_path):
    bobs.go("skills/new/")
    page = bobs.page
    field(page, "Name").press_sequentially("Bad Name")
    expect(live_error(page, "name")).to_contain_text("Use lowercase letters, digits and single hyphens")
    expect(page.get_by_role("complementary")).to_contain_text("Required: Description, Instructions.")
    assert not axe_violations(page)

    field(page, "Name").fill("brew-tea")
    expect(live_error(page, "name")).to_be_empty()
    bobs.fill(Description="Brews tea when someone is thirsty.", Instructions="Boil water.")
    expect(page.get_by_role("complementary")).to_contain_text("Valid")
    expect(page.get_by_role("complementary")).to_contain_text("Brews tea when someone is thirsty.")
    expect(field(page, "Name")).to_have_value("brew-tea")

    bobs.press("Create skill")
    bobs.sees_message("created")
    assert bobs.download("Export", tmp_path / "brew-tea.zip") == "brew-tea.zip"
    with zipfile.ZipFile(tmp_path / "brew-tea.zip") as archive:
        archive.extractall(tmp_path)
    assert skills_ref.validate(tmp_path / "brew-tea") == []


@pytest.mark.hard
def test_the_error_of_an_invalid_or_taken_name_clears_while_typing(bobs, workspace):
    make_skill(workspace, "tea")
    make_skill(workspace, "cake")
    bobs.go("skills/new/")
    bobs.fill(Name="Bad Name", Description="Brews.", Instructions="Boil.")
    assert bobs.press("Create skill") == 422
    bobs.sees_field_error("Name", "lowercase")
    stale = bobs.page.locator("#id_name_error")
    expect(stale).to_be_visible()
    field(bobs.page, "Name").fill("boil")
    expect(stale).to_be_hidden()
    bobs.press("Create skill")
    bobs.sees_message("created")

    bobs.go("skills/tea/edit/")
    field(bobs.page, "Name").fill("cake")
    expect(live_error(bobs.page, "name")).to_contain_text("Another skill")
    field(bobs.page, "Name").fill("tea")
    expect(live_error(bobs.page, "name")).to_be_empty()


@pytest.mark.hard
def test_hidden_characters_are_flagged_and_a_pasted_file_is_imported_once_fixed(bobs, workspace):
    soul = make_soul(workspace, text=f"Be calm.\nAnd{HIDDEN} kind.")
    bobs.go(f"souls/{soul.slug}/")
    bobs.sees("Check this text before you use it")
    bobs.sees("Text, line 2")
    bobs.sees("And⟦U+200B⟧ kind.")
    assert not axe_violations(bobs.page) + find_overflows(bobs.page)

    bobs.go("skills/")
    bobs.follow("Import")
    box = field(bobs.page, "Or paste the text")
    box.fill(skill_text("Bad Name", more="model: big\n"))
    assert bobs.press("Import") == 422
    bobs.sees("Nothing was saved. Fix 2 problems and try again.")
    assert not axe_violations(bobs.page) + find_overflows(bobs.page)
    box.fill(skill_text("good-name"))
    bobs.press("Import")
    bobs.sees_message("Imported as “good-name”")


@pytest.fixture
def crowded(workspace, tmp_path, settings):
    """Skills in every state, duplicate names, and names too long for any screen."""
    settings.DRAMATIS_SOURCE_ROOTS = [tmp_path]
    for path, text in {
        ".agents/skills/tea": skill_text("tea", "Makes tea."),
        ".github/skills/tea": skill_text("tea", "Makes other tea."),
        ".agents/skills/wait": skill_text("wait", "Waits. " * 60),
        ".agents/skills/evil": skill_text("evil", "Plots.", "\u202eodd"),
        ".agents/skills/broken": "no head\n",
        f".agents/skills/{WIDE}": skill_text(WIDE, WIDE * 5),
    }.items():
        write_skill(tmp_path, path, text)
    source = make_source(workspace, tmp_path)
    refreshed(source)
    for path in (".agents/skills/tea", ".github/skills/tea"):
        trust_skill(source, path)
    reader = make_agent(workspace, "reader")
    choose_source(reader, source, "opal")
    make_skill(workspace, "tea", agents=[reader], body=f"Boil{HIDDEN} water.")
    make_skill(workspace, "x" * 64, description=WIDE * 4, for_all_agents=True)
    return source


def test_skill_lists_are_accessible_filtered_and_trust_is_one_button(alices, crowded):
    problems = []
    paths = ("skills/", "skills/?status=pending", "skills/tea/", "skills/tea/edit/", "skills/import/")
    for path in sample(paths):
        assert alices.go(path) == 200
        problems += axe_violations(alices.page) + find_overflows(alices.page)
    assert not problems, "\n\n".join(problems)

    alices.go("skills/")
    alices.choose_filter("Status", "Not trusted yet")
    assert "status=pending" in alices.page.url
    alices.sees("wait")
    alices.press("Trust discovered skills automatically")
    alices.sees_message("Discovered skills are now used as soon as they pass the scan")
    alices.press("Require trust")
    alices.sees("nobody has trusted them")
    problems = axe_violations(alices.page) + find_overflows(alices.page)
    assert not problems, "\n\n".join(problems)
    alices.page.get_by_role("button", name=re.compile("^Trust and keep")).click()
    alices.sees_message("Discovered skills now need approval before agents use them.")


@pytest.mark.hard
def test_skills_are_created_without_script(bob, workspace, logged_in_page):
    page = logged_in_page(bob, java_script_enabled=False)
    page.goto(f"/w/{workspace.slug}/skills/new/")
    field(page, "Name").fill("Bad Name")
    page.get_by_role("button", name="Create skill").click()
    expect(page.locator("#id_name_error")).to_contain_text("lowercase")
    field(page, "Name").fill("brew")
    field(page, "Description").fill("Brews.")
    field(page, "Instructions").fill("Boil.")
    page.get_by_role("button", name="Create skill").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("brew")
