"""Pages of a context file: text, status, history, and the actions that each role may take."""

import io
import shutil
import zipfile
from copy import copy, deepcopy
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext, override_settings
from django.utils import timezone

from personas.models import AuditEvent, Content
from personas.roles import Role
from skills.agent_context.services import choose_context
from skills.files.services import waive_findings
from skills.models import AssignedTo, ContextFile, FileAgent, FileRevision, PushedFile, Source, Waiver
from tests.factories import BY, join, make_agent, make_skill, make_source, make_user, refreshed, signed_in
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
from tests.skills.files.file_samples import GOOD, POISON, approve_file_at, file_at, write, write_skill
from tests.skills.seeded_choice import SOME_OR_ALL

pytestmark = pytest.mark.django_db
TODAY = timezone.now().date()
OVERRIDE = '<span class="dr-glyph" title="U+202E RIGHT-TO-LEFT OVERRIDE">U+202E</span>'


POISONED = "poisoned/AGENTS.md"
TEA = ".agents/skills/tea/SKILL.md"


class FileSource(NamedTuple):
    """A source with a new file, an approved file that was quarantined since, and an untrusted skill."""

    source: Source
    files: Path
    pristine: Path


@pytest.fixture(scope="module", autouse=True)
def prepared(cast, django_db_blocker, tmp_path_factory):
    top = tmp_path_factory.mktemp("files")
    root = top / "files"
    with override_settings(DRAMATIS_SOURCE_ROOTS=[top]):
        write(root / "AGENTS.md", GOOD)
        write(root / POISONED, GOOD)
        write_skill(root, "tea")
        with django_db_blocker.unblock():
            source = make_source(cast.workspace, root)
            refreshed(source)
            approve_file_at(source, POISONED)
            write(root / POISONED, POISON)
            refreshed(source)
        shutil.copytree(root, top / "pristine")
        yield FileSource(source, root, top / "pristine")


@pytest.fixture
def root(prepared):
    yield prepared.files
    put_back(prepared.files, prepared.pristine)


@pytest.fixture
def source(prepared, db):
    return deepcopy(prepared.source)


@pytest.fixture
def poisoned(source):
    return file_at(source, POISONED)


@pytest.fixture
def tea(source):
    return file_at(source, TEA)


@pytest.fixture
def as_reviewer(workspace):
    rita = make_user("Rita")
    join(workspace, rita, Role.REVIEWER)
    return signed_in(rita)


def file_url(file, page=""):
    return f"/w/{file.workspace.slug}/files/{file.pk}/{page}"


def reload_file(file):
    return file_at(file.source, file.path)


# --- content -------------------------------------------------------------------------------------------


def test_a_quarantined_revision_is_shown_with_glyphs_reasons_and_the_text_in_force(poisoned, as_bob):
    page = as_bob.get(file_url(poisoned)).content.decode()
    assert "Revision 2 is in quarantine" in page
    assert "Control character that changes the displayed order of the text. Remove it." in page
    assert "Revision 1 is live, but no prompt contains it." in page
    assert OVERRIDE in page
    assert "\u202e" not in page
    assert "\u200b" not in page
    assert "Revision 1 (live)" in page


def test_findings_link_to_their_lines_and_the_diff_starts_from_the_revision_in_force(poisoned, as_bob):
    finding = poisoned.latest.findings[0]
    response = as_bob.get(file_url(poisoned))
    page = response.content.decode()
    assert f'href="{file_url(poisoned, "revisions/2/")}#L{finding["line"]}"' in page
    assert [revision.number for revision in response.context["pair"]] == [1, 2]
    assert "Changes from live revision 1 to revision 2" in page


@pytest.mark.slow
def test_a_active_change_is_compared_with_the_last_approved_revision(source, root, as_bob):
    approve_file_at(source)
    for text in ("Be brief.\n", "Be brief and kind.\n"):
        write(root / "AGENTS.md", text)
        refreshed(source)
    response = as_bob.get(file_url(file_at(source)))
    assert [revision.number for revision in response.context["pair"]] == [1, 3]
    assert "Changes from last approved revision" in response.content.decode()


def test_a_new_file_shows_its_text_and_no_diff(source, as_bob):
    response = as_bob.get(file_url(file_at(source)))
    assert response.context["pair"] is None
    assert "Not reviewed yet. This revision is live, but no prompt contains it." in response.content.decode()


def test_text_that_is_not_active_is_labelled(tea, as_bob):
    page = as_bob.get(file_url(tea)).content.decode()
    assert "Revision 1 (not live)" in page
    assert "Live: revision" not in page


def test_a_binary_file_shows_escaped_bytes_and_the_problem(source, root, as_bob):
    write(root / "AGENTS.md", b"Fine.\nThen \xff not.\n")
    refreshed(source)
    page = as_bob.get(file_url(file_at(source))).content.decode()
    assert "This file cannot be used" in page
    assert "is not UTF-8" in page
    assert "Then \\xff not." in as_bob.get(file_url(file_at(source), "revisions/2/")).content.decode()


@pytest.mark.slow
def test_a_missing_file_says_so_and_whether_its_removal_was_approved(source, root, as_bob):
    (root / "AGENTS.md").unlink()
    refreshed(source)
    assert "Approve deletion" in as_bob.get(file_url(file_at(source))).content.decode()
    approve_file_at(source)
    page = as_bob.get(file_url(file_at(source))).content.decode()
    assert "The deletion was approved." in page
    assert "Approve deletion" not in page


def test_the_newest_revision_was_last_seen_by_the_last_refresh(source, root, as_bob):
    write(root / "AGENTS.md", "Other words.\n")
    refreshed(source)
    run = refreshed(source)
    response = as_bob.get(file_url(file_at(source)))
    assert response.context["scanned_at"] == run.finished_at
    assert [row.number for row in response.context["page"]] == [2, 1]


def test_a_revision_is_compared_with_the_one_before_it_and_its_findings_have_their_lines(poisoned, as_bob):
    response = as_bob.get(file_url(poisoned, "revisions/2/"))
    assert response.context["earlier"].number == 1
    assert OVERRIDE in response.content.decode()
    assert f'is-flagged" id="L{poisoned.latest.findings[0]["line"]}"' in response.content.decode()
    assert as_bob.get(file_url(poisoned, "revisions/1/")).context["earlier"] is None
    assert as_bob.get(file_url(poisoned, "revisions/3/")).status_code == 404


def test_a_download_has_the_exact_bytes(poisoned, as_bob):
    response = as_bob.get(file_url(poisoned, "revisions/2/raw/"))
    assert b"".join(response.streaming_content) == POISON.encode()
    assert response["Content-Disposition"].startswith("attachment")


def test_an_erased_revision_has_a_page_that_says_so(source, as_bob):
    file = file_at(source)
    Content.unscoped.filter(digest=file.latest.digest).update(data=None)
    for page in ("", "revisions/1/"):
        assert "The text was erased" in as_bob.get(file_url(file, page)).content.decode()
    assert as_bob.get(file_url(file, "revisions/1/raw/")).status_code == 404


@pytest.mark.slow
def test_too_many_lines_are_not_compared_and_it_says_so(source, root, as_bob):
    approve_file_at(source)
    write(root / "AGENTS.md", "\n" * 30_000)
    refreshed(source)
    assert "too many lines to compare" in as_bob.get(file_url(file_at(source))).content.decode()


def test_the_page_lists_the_agents_that_read_the_file(source, as_bob, workspace):
    reader, other = make_agent(workspace, "reader"), make_agent(workspace, "other")
    choose_context(reader, source, "plain", working_directory="", expected=reader.revision, by=BY)
    response = as_bob.get(file_url(file_at(source)))
    assert [agent.slug for agent in response.context["agents"]] == ["reader"]
    assert f"/agents/{reader.slug}/context/" in response.content.decode()
    assert other.name not in response.content.decode()


def copy_revision(revision, number):
    duplicate = copy(revision)
    duplicate.pk, duplicate.number, duplicate.last_seen_at = None, number, revision.first_seen_at
    return duplicate


@pytest.mark.slow
def test_the_number_of_queries_does_not_grow_with_the_history(source, root, as_bob):
    file = file_at(source)
    as_bob.get(file_url(file))

    def count_queries():
        with CaptureQueriesContext(connection) as captured:
            as_bob.get(file_url(file))
        return len(captured)

    before = count_queries()
    FileRevision.unscoped.bulk_create(copy_revision(file.latest, number) for number in range(2, 30))
    last = FileRevision.unscoped.get(file=file, number=29)
    ContextFile.unscoped.filter(pk=file.pk).update(latest=last)
    write(root / "AGENTS.md", "Words after all of these.\n")
    refreshed(source)
    # A further revision adds only the last approved text to the page, which is loaded with the file.
    assert count_queries() == before
    assert len(as_bob.get(file_url(file)).context["page"].object_list) == 25


# --- approving and ignoring ---------------------------------------------------------------------------


def test_approving_settles_the_revision_that_was_viewed(source, as_bob):
    file = file_at(source)
    response = as_bob.post(file_url(file, "approve/"), {"digest": file.latest.digest}, follow=True)
    assert "Approved: AGENTS.md." in response.content.decode()
    assert (reload_file(file).status, reload_file(file).is_resolved) == ("current", True)
    by_bob = AuditEvent.unscoped.filter(actor_label="bob@example.com")
    assert by_bob.filter(verb="approved", kind="file").count() == 1


@pytest.mark.slow
def test_a_digest_that_was_not_viewed_is_not_approved(source, as_bob):
    file = file_at(source)
    for digest in ("", "0" * 64, "x" * 5_000):
        response = as_bob.post(file_url(file, "approve/"), {"digest": digest}, follow=True)
        assert "changed after you opened this page" in response.content.decode(), digest
        assert not reload_file(file).is_resolved, digest


def test_a_quarantined_revision_cannot_be_approved(poisoned, as_bob):
    response = as_bob.post(file_url(poisoned, "approve/"), {"digest": poisoned.latest.digest}, follow=True)
    assert "allow its findings first" in response.content.decode()
    assert reload_file(poisoned).active.content.text == GOOD


def test_a_file_is_ignored_and_unignored(source, as_bob):
    file = file_at(source)
    as_bob.post(file_url(file, "ignore/"))
    assert (reload_file(file).status, reload_file(file).active) == ("ignored", None)
    page = as_bob.get(file_url(file)).content.decode()
    assert "left out of all prompts" in page
    assert "Stop ignoring" in page
    as_bob.post(file_url(file, "unignore/"))
    assert (reload_file(file).status, reload_file(file).active.number) == ("new", 1)


def test_an_action_redirects_to_the_page_it_came_from(source, as_bob, workspace):
    file = file_at(source)
    back = f"/w/{workspace.slug}/inbox/?status=new"
    assert as_bob.post(file_url(file, "ignore/"), {"back": back}).url == back
    assert as_bob.post(file_url(file, "unignore/"), {"back": "https://evil.example/"}).url == file_url(file)


# --- waiving -------------------------------------------------------------------------------------------


def waiver_data(file, **changes):
    until = (TODAY + timedelta(days=7)).isoformat()
    return {"reason": "A quotation.", "until": until, "digest": file.latest.digest} | changes


def test_a_reviewer_waives_with_a_reason_and_a_last_day(poisoned, as_reviewer):
    assert as_reviewer.post(file_url(poisoned, "waive/"), waiver_data(poisoned)).status_code == 302
    assert (reload_file(poisoned).status, reload_file(poisoned).active.number) == ("current", 2)
    page = as_reviewer.get(file_url(poisoned)).content.decode()
    assert "A quotation." in page
    assert "rita@example.com" in page
    assert "Allow anyway" not in page


BAD_WAIVERS = {
    "no reason": ({"reason": ""}, "reason"),
    "blank reason": ({"reason": "   "}, "reason"),
    "two lines": ({"reason": "one\ntwo\x07"}, "reason"),
    "over-long reason": ({"reason": "x" * 501}, "reason"),
    "no day": ({"until": ""}, "until"),
    "no such day": ({"until": "2026-02-31"}, "until"),
    "yesterday": ({"until": (TODAY - timedelta(days=1)).isoformat()}, "until"),
    "far away": ({"until": (TODAY + timedelta(days=400)).isoformat()}, "until"),
}


@pytest.mark.slow
@SOME_OR_ALL
def test_an_invalid_waiver_shows_the_field_error_and_changes_nothing(poisoned, as_reviewer, chosen):
    for case, (values, field) in chosen(BAD_WAIVERS.items()):
        response = as_reviewer.post(file_url(poisoned, "waive/"), waiver_data(poisoned, **values))
        assert response.status_code == 422, case
        assert field in response.context["waiver_form"].errors, case
        assert OVERRIDE in response.content.decode(), case
        assert reload_file(poisoned).active.number == 1, case
        assert not Waiver.unscoped.exists(), case


@pytest.mark.slow
def test_a_waiver_applies_only_to_the_viewed_content(poisoned, root, as_reviewer):
    data = waiver_data(poisoned)
    write(root / POISONED, POISON + "And worse.\n")
    refreshed(poisoned.source)
    response = as_reviewer.post(file_url(poisoned, "waive/"), data, follow=True)
    assert "changed after you opened this page" in response.content.decode()
    assert reload_file(poisoned).active.number == 1


def test_nothing_is_waived_where_nothing_is_in_quarantine(source, as_alice):
    file = file_at(source)
    response = as_alice.post(file_url(file, "waive/"), waiver_data(file), follow=True)
    assert "This file is not in quarantine." in response.content.decode()


@pytest.mark.slow
def test_a_waiver_can_be_ended(poisoned, as_reviewer):
    until = TODAY + timedelta(days=7)
    row = waive_findings(poisoned, digest=poisoned.latest.digest, reason="Why not.", until=until, by=BY)
    assert as_reviewer.post(file_url(poisoned, f"waivers/{row.pk}/end/")).status_code == 302
    assert reload_file(poisoned).status == "quarantined"
    page = as_reviewer.get(file_url(poisoned)).content.decode()
    assert "Ended" in page
    assert "End this exception?" not in page
    assert as_reviewer.post(file_url(poisoned, "waivers/999999/end/")).status_code == 404


def test_a_waiver_of_another_file_is_not_ended_here(poisoned, as_reviewer):
    until = TODAY + timedelta(days=7)
    row = waive_findings(poisoned, digest=poisoned.latest.digest, reason="Why not.", until=until, by=BY)
    other = file_at(poisoned.source)
    assert as_reviewer.post(file_url(other, f"waivers/{row.pk}/end/")).status_code == 404
    assert Waiver.unscoped.get(pk=row.pk).ended_at is None


# --- skills --------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_trust_is_requested_granted_and_lost_after_a_change(tea, as_bob, root):
    page = as_bob.get(file_url(tea)).content.decode()
    assert "Trust and approve" in page
    assert "Not trusted yet, so agents cannot use it" in page
    as_bob.post(file_url(tea, "approve/"), {"digest": tea.latest.digest})
    assert "Trusted in its current form" in as_bob.get(file_url(tea)).content.decode()
    write_skill(root, "tea", description="Makes coffee.")
    refreshed(tea.source)
    assert "Not trusted: changed since last approval" in as_bob.get(file_url(tea)).content.decode()


@pytest.mark.slow
def test_each_harness_shows_its_verdict_on_a_skill(source, root, as_bob):
    write(root / TEA, "---\nname: tea-time\ndescription: Makes tea.\n---\n\nBoil.\n")
    refreshed(source)
    verdicts = {
        verdict.harness: verdict for verdict in as_bob.get(file_url(file_at(source, TEA))).context["verdicts"]
    }
    assert {name: verdict.label for name, verdict in verdicts.items()} == {
        "opal": "Excluded",
        "pi": "Allowed with a warning",
        "moltis": "Allowed",
        "openclaw": "Allowed with a warning",
        "claude-code": "Allowed with a warning",
        "plain": "Excluded",
    }
    assert verdicts["opal"].reasons


@pytest.mark.slow
def test_skills_with_the_same_name_are_listed_with_the_winner(tea, as_bob, workspace, agent, root):
    choose_context(agent, tea.source, "plain", working_directory="", expected=agent.revision, by=BY)
    as_bob.post(file_url(tea, "approve/"), {"digest": tea.latest.digest})
    assert not as_bob.get(file_url(tea)).context["conflicts"]
    make_skill(workspace, "tea", for_all_agents=True)
    other = write_skill(root, "tea", folder="docs/")
    refreshed(tea.source)
    response = as_bob.get(file_url(tea))
    page = response.content.decode()
    assert "Other skills with the same name" in page
    assert other in page
    assert [(one.slug, winner.location) for one, winner in response.context["winners"]] == [
        ("pilot", "skill record")
    ]


def test_a_skill_is_assigned_to_agents(tea, as_bob, agent):
    as_bob.post(file_url(tea, "assign/"), {"assigned_to": "selected", "agents": [agent.pk]})
    assert reload_file(tea).assigned_to == AssignedTo.SELECTED
    assert [link.agent for link in FileAgent.unscoped.all()] == [agent]
    as_bob.post(file_url(tea, "assign/"), {"assigned_to": "all"})
    assert (reload_file(tea).assigned_to, FileAgent.unscoped.count()) == (AssignedTo.ALL, 0)


BAD_REACHES: list[tuple[dict[str, object], str]] = [
    ({}, "assigned_to"),
    ({"assigned_to": "everyone"}, "assigned_to"),
    ({"assigned_to": "selected"}, "agents"),
    ({"assigned_to": "selected", "agents": ["x"]}, "agents"),
    ({"assigned_to": "selected", "agents": ["9" * 30]}, "agents"),
]


@pytest.mark.slow
@SOME_OR_ALL
def test_an_invalid_reach_shows_the_field_error(tea, as_bob, chosen):
    for values, field in chosen(BAD_REACHES):
        response = as_bob.post(file_url(tea, "assign/"), values)
        assert response.status_code == 422, values
        assert list(response.context["assignment_form"].errors) == [field], values
        assert reload_file(tea).assigned_to == AssignedTo.WHERE_FOUND, values


def test_a_foreign_agent_is_not_among_the_choices(tea, as_bob, elsewhere):
    theirs = make_agent(elsewhere, "theirs")
    response = as_bob.post(file_url(tea, "assign/"), {"assigned_to": "selected", "agents": [theirs.pk]})
    assert response.status_code == 422
    assert not FileAgent.unscoped.exists()


def test_a_skill_is_exported_as_a_folder(tea, as_bob):
    response = as_bob.get(file_url(tea, "export/"))
    archive = zipfile.ZipFile(io.BytesIO(b"".join(response.streaming_content)))
    assert response["Content-Disposition"] == 'attachment; filename="tea.zip"'
    assert archive.namelist() == ["tea/SKILL.md"]
    assert archive.read("tea/SKILL.md") == bytes(tea.latest.content.data)


def test_files_pushed_with_a_skill_are_exported_with_it(tea, as_bob, workspace):
    source = make_source(workspace, tea.source.allowed_folder.path, "Pushed")
    source.source_kind, source.allowed_folder = "pushed", None
    source.save()
    data = bytes(tea.latest.content.data)
    for path, content in (("a/tea/SKILL.md", data), ("a/tea/scripts/boil.sh", b"boil"), ("a/teapot", b"no")):
        row = Content.objects.in_workspace(workspace).filter(data=content).first() or Content(
            workspace=workspace, digest=path, size=len(content), data=content
        )
        row.save()
        PushedFile(workspace=workspace, source=source, path=path, content=row).save()
    tea.source, tea.path = source, "a/tea/SKILL.md"
    tea.save()
    archive = zipfile.ZipFile(io.BytesIO(b"".join(as_bob.get(file_url(tea, "export/")).streaming_content)))
    assert archive.namelist() == ["tea/SKILL.md", "tea/scripts/boil.sh"]


def test_only_skills_are_exported_and_assigned(source, as_bob):
    file = file_at(source)
    assert as_bob.get(file_url(file, "export/")).status_code == 404
    assert as_bob.post(file_url(file, "assign/"), {"assigned_to": "all"}).status_code == 404


# --- permissions ---------------------------------------------------------------------------------------

BUTTONS = ("approve/", "ignore/", "unignore/", "waive/", "assign/")
ALLOWED_BUTTONS = {
    Role.OWNER: set(BUTTONS),
    Role.ADMIN: set(BUTTONS),
    Role.EDITOR: set(BUTTONS) - {"waive/"},
    Role.REVIEWER: {"waive/"},
    Role.VIEWER: set(),
}


@pytest.mark.slow
@SOME_OR_ALL
def test_each_role_may_use_only_its_own_buttons(tea, workspace, chosen):
    percy = make_user("Percy")
    member = join(workspace, percy)
    browser = signed_in(percy)
    for role, may in chosen(ALLOWED_BUTTONS.items()):
        member.role = role
        member.save()
        pressed = {button for button in BUTTONS if browser.post(file_url(tea, button)).status_code != 403}
        assert pressed == may, role
    assert browser.get(file_url(tea)).status_code == 200


def test_actions_reject_get_requests(tea, as_alice):
    assert {as_alice.get(file_url(tea, button)).status_code for button in BUTTONS} == {405}


def test_a_viewer_sees_no_buttons(poisoned, workspace):
    vera = make_user("Vera")
    join(workspace, vera, Role.VIEWER)
    page = signed_in(vera).get(file_url(poisoned)).content.decode()
    assert OVERRIDE in page
    assert f'action="{file_url(poisoned)}' not in page


@pytest.mark.slow
def test_an_outsider_gets_404_for_a_file(tea, as_mallory, as_bob, elsewhere):
    pages = ("", "revisions/1/", "revisions/1/raw/", "export/")
    assert {as_mallory.get(file_url(tea, page)).status_code for page in pages} == {404}
    assert {as_mallory.post(file_url(tea, page)).status_code for page in BUTTONS} == {404}
    under_their_own = f"/w/{elsewhere.slug}/files/{tea.pk}/"
    assert {as_mallory.get(under_their_own + page).status_code for page in pages} == {404}
    assert {as_mallory.post(under_their_own + page).status_code for page in BUTTONS} == {404}
