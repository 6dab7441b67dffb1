"""Sources in a browser with a real worker: creation, refresh, upload, and accessibility."""

import shutil
from pathlib import Path

import pytest
from django.conf import settings
from playwright.sync_api import expect

from personas.records.services import archive_record
from skills.agent_context.services import choose_context
from skills.archives import write_zip
from skills.models import Source
from skills.rule_sets.services import save_rules
from skills.sources.allowed_folders import allow_folder
from tests.browser.page_checks import SOME_OR_ALL, axe_violations, find_overflows, sample
from tests.factories import BY, make_agent, make_source, refreshed
from tests.skills.archives.zip_builder import Part, archive
from tests.skills.rule_sets.test_rule_sets import complete_rules

pytestmark = pytest.mark.slow

# A refresh is queued, run by a worker, and shown by the polling page within two seconds on an idle machine.
PATIENCE = 60_000
SKILL = b"---\nname: tea\ndescription: Makes tea.\n---\n\nBoil water.\n"
ODD = archive(Part("../evil.md"), Part("a/" + "long-" * 40 + "/AGENTS.md", method=99), Part("/etc/passwd"))


@pytest.fixture
def folder(workspace):
    """A folder below a source root that the worker's settings allow too."""
    folder = Path(settings.DEMO_SOURCES) / "browser"
    folder.mkdir(parents=True)
    (folder / "AGENTS.md").write_text("Be kind.\n")
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def granted(workspace, folder):
    return allow_folder(workspace, str(folder), note="For this test", by=BY)


def upload(visit, data):
    payload = {"name": "files.zip", "mimeType": "application/zip", "buffer": data}
    visit.page.get_by_label("Zip archive").set_input_files(payload)
    return visit.press("Upload")


def state(visit):
    return visit.page.get_by_role("region", name="Status")


@pytest.mark.django_db(transaction=True)
def test_a_source_is_created_and_its_files_appear_without_a_click(alices, folder, granted, celery_worker):
    alices.go("sources/")
    alices.follow("New source")
    alices.fill(**{"Name": "House files", "Allowed folder": f"{folder} (For this test)"})
    alices.press("Create source")
    alices.sees_message("created")
    expect(state(alices)).to_contain_text("Done", timeout=PATIENCE)
    files = alices.page.get_by_role("table", name="Files found in this source")
    expect(files).to_contain_text("AGENTS.md")

    (folder / "AGENTS.md").write_text("Be very kind.\n")
    (folder / "OPAL.md").mkdir()
    alices.press("Refresh")
    refused = alices.page.get_by_role("table", name="Rejected files with reasons")
    expect(refused).to_contain_text("This is a folder, but a file is expected.", timeout=PATIENCE)
    # It waits for approval: new sources are not approved automatically.
    expect(files).to_contain_text("New")
    expect(alices.page.get_by_role("table", name="Recent refreshes")).to_contain_text("alice@example.com")


@pytest.mark.hard
@pytest.mark.django_db(transaction=True)
def test_an_uploaded_zip_is_scanned(alices, celery_worker):
    alices.go("sources/new/")
    alices.fill(Name="Pushed files")
    alices.page.get_by_label("Files pushed by upload or API").check()
    expect(alices.page.get_by_label("Allowed folder", exact=True)).to_be_hidden()
    alices.press("Create source")
    upload(alices, write_zip([("AGENTS.md", b"Be kind.\n"), (".agents/skills/tea/SKILL.md", SKILL)]))
    alices.sees_message("Pushed")
    files = alices.page.get_by_role("table", name="Files found in this source")
    expect(files).to_contain_text("tea", timeout=PATIENCE)
    assert upload(alices, ODD) == 422
    alices.sees("Nothing was stored in Pushed files")
    alices.sees("The path is absolute")
    alices.sees_field_error(
        "Zip archive", "None of these files can be accepted. Check the reason for each file."
    )


def test_errors_in_rules_name_their_path(alices):
    alices.go("rule-sets/opal/edit/")
    alices.fill(Rules='{"rules": [{"kind": "context", "paths": ["../x"]}]}')
    assert alices.press("Save") == 422
    alices.sees_field_error("Rules", "/rules/0/paths/0: Names in a path must not be empty")
    alices.fill(Rules='{"rules": [{"kind": "context", "paths": ["HOUSE.md"]}]}')
    alices.press("Save")
    alices.sees_message("saved")
    alices.sees("Custom, revision 1")
    alices.sees("HOUSE.md")


@SOME_OR_ALL
def test_source_pages_are_accessible(alices, workspace, folder, is_all):
    problems = []
    for path in sample(("sources/", "sources/new/")):
        alices.go(path)
        alices.sees("DRAMATIS_SOURCE_ROOTS")
        problems += axe_violations(alices.page) + find_overflows(alices.page)
    source, pushed = crowded(workspace, folder)
    save_rules(workspace, "plain", complete_rules("HOUSE.md", off=["skill"]), expected_revision=0, by=BY)
    paths = [
        *("sources/", "sources/new/", f"sources/{source.slug}/", f"sources/{source.slug}/edit/"),
        *("rule-sets/", "rule-sets/plain/", "rule-sets/plain/history/1/"),
    ]
    if is_all:
        paths += [
            *("sources/?shelf=archived", f"sources/{source.slug}/?status=invalid", "rule-sets/plain/edit/"),
            *(f"sources/{source.slug}/history/1/", f"sources/{pushed.slug}/", f"sources/{pushed.slug}/edit/"),
            *("rule-sets/moltis/", "rule-sets/plain/history/"),
        ]
    for path in sample(paths):
        assert alices.go(path) == 200, path
        problems += axe_violations(alices.page) + find_overflows(alices.page)
    alices.go(f"sources/{pushed.slug}/")
    assert upload(alices, ODD) == 422
    problems += axe_violations(alices.page) + find_overflows(alices.page)
    alices.go("rule-sets/plain/edit/")
    alices.fill(Rules="{")
    assert alices.press("Save") == 422
    problems += axe_violations(alices.page)
    assert not problems, "\n\n".join(problems)


def crowded(workspace, folder):
    """Create a folder source with long names and rejected files, an archived source and a pushed one."""
    deep = folder / ("deep-folder-" * 12)
    for name in ("CLAUDE.md", "TOOLS.md"):
        (folder / name).mkdir()
    deep.mkdir()
    (deep / "AGENTS.md").write_bytes(b"\xff\xfe broken")
    source = make_source(workspace, folder, "W" * 80)
    agent = make_agent(workspace, "keeper", name="K" * 60)
    choose_context(agent, source, "plain", working_directory="", expected=agent.revision, by=BY)
    refreshed(source)
    archive_record(make_source(workspace, folder, "Dismiss"), by=BY)
    pushed: Source = make_source(workspace, folder, "Pushed", source_kind="pushed", allowed_folder=None)
    return source, pushed


def test_a_held_source_is_accessible_and_its_removal_is_confirmed(alices, workspace, folder):
    for name in ("a", "b", "long-" * 30):
        (folder / name).mkdir()
        (folder / name / "AGENTS.md").write_text("Be kind.\n")
    source, agent = make_source(workspace, folder), make_agent(workspace, "pilot")
    choose_context(agent, source, "plain", working_directory="/home/bot", expected=agent.revision, by=BY)
    refreshed(source)
    shutil.rmtree(folder)
    folder.mkdir()
    refreshed(source)
    problems = []
    for path in ("agents/pilot/context/", "inbox/", f"sources/{source.slug}/"):
        alices.go(path)
        problems += axe_violations(alices.page) + find_overflows(alices.page)
    assert not problems
    alices.press("Confirm removal (4 files) House files")
    alices.sees_message("Removal confirmed")
