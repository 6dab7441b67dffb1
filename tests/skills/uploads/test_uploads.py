"""Uploaded files: accepted or refused with a reason, stored once, discovered like a folder."""

from copy import deepcopy
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import resolve

from personas.errors import InvalidInput
from personas.models import AuditEvent, Content
from personas.records.services import archive_record
from skills.archives import bundle_files, write_zip
from skills.discovery.filesystem import FileStamp
from skills.discovery.harnesses import DiscoveryCaps
from skills.models import ContextFile, PushedFile, RefreshRun
from skills.refresh.holds import confirm_removal
from skills.refresh.runs import SourceArchived, claim_run
from skills.refresh.services import get_known_stamps, get_pushed_content, refresh_source
from skills.refresh.source_changes import add_source
from skills.uploads.services import (
    InvalidBundle,
    PushedFileNotFound,
    SourceNotPushable,
    push_bundle,
    push_file,
    remove_pushed_file,
)
from tests.factories import BY, make_source, refreshed
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
from tests.skills.archives.zip_builder import Part, archive

pytestmark = pytest.mark.django_db

SKILL = b"---\nname: tea\ndescription: Makes tea.\n---\n\nBoil water.\n"
FILES = {"AGENTS.md": b"Be kind.\n", ".agents/skills/tea/SKILL.md": SKILL}
LIMIT = 1024 * 1024


@pytest.fixture(scope="module", autouse=True)
def pushed_source(cast, django_db_blocker):
    with django_db_blocker.unblock():
        values = {"name": "Pushed", "source_kind": "pushed", "approval": "automatic"}
        source, _ = add_source(cast.workspace, values, by=BY)
        refreshed(source)
    return source


@pytest.fixture
def source(pushed_source, db):
    return deepcopy(pushed_source)


def push(source, files, *, replace=False):
    return push_bundle(source, bundle_files(files.items()), replace=replace, by=BY)


def refresh(run):
    """Claim and execute the run like a worker."""
    claimed = claim_run(run.workspace_id, run.pk)
    assert claimed is not None
    return refresh_source(claimed)


def stored(source):
    rows = PushedFile.objects.in_workspace(source.workspace_id).filter(source=source)
    return {row.path: bytes(row.content.data or b"") for row in rows.select_related("content")}


def file_at(source, path="AGENTS.md"):
    rows = ContextFile.objects.in_workspace(source.workspace_id).select_related("latest", "active__content")
    return rows.get(source=source, path=path)


def upload(browser, source, data, **more):
    body = {"archive": SimpleUploadedFile("files.zip", data, "application/zip")} | more
    return browser.post(f"/w/{source.workspace.slug}/sources/{source.slug}/upload/", body)


# --- services ------------------------------------------------------------------------------------------


def test_pushed_files_are_found_and_kept_like_files_on_disk(source):
    run = refresh(push(source, FILES))
    assert (run.status, run.cause, run.outcome) == ("done", "push", {"new": 2})
    assert file_at(source).active.content.text == "Be kind.\n"
    assert file_at(source, ".agents/skills/tea/SKILL.md").name == "tea"


def test_a_second_push_of_the_same_files_changes_nothing(source):
    refresh(push(source, FILES))
    before = list(PushedFile.unscoped.values())
    run = refresh(push(source, FILES))
    assert (run.outcome, list(PushedFile.unscoped.values())) == ({}, before)
    assert file_at(source).latest.number == 1


def test_a_changed_file_is_a_new_revision(source):
    refresh(push(source, FILES))
    refresh(push(source, {"AGENTS.md": b"Be very kind.\n"}))
    assert (file_at(source).latest.number, set(stored(source))) == (2, set(FILES))


def test_replacing_lets_go_of_what_is_not_in_the_push(source):
    refresh(push(source, FILES))
    run = refresh(push(source, {"AGENTS.md": b"Be kind.\n"}, replace=True))
    assert (set(stored(source)), run.outcome) == ({"AGENTS.md"}, {"missing": 1})
    event = AuditEvent.objects.in_workspace(source.workspace_id).latest("pk")
    assert event.verb == "pushed"
    assert event.after is not None
    assert {name: event.after[name] for name in ("added", "changed", "removed", "refused")} == {
        "added": 0,
        "changed": 0,
        "removed": 1,
        "refused": 0,
    }


def test_a_refused_file_keeps_its_content_and_the_run_has_the_reason(source):
    refresh(push(source, FILES))
    huge = {"AGENTS.md": b"x" * (DiscoveryCaps().file_bytes + 1), "CLAUDE.md": b"Be brief.\n"}
    requested = push(source, huge, replace=True)
    assert [refusal["path"] for refusal in requested.refusals] == ["AGENTS.md"]
    run = refresh(requested)
    assert ("AGENTS.md", "size") in [(refusal["path"], refusal["rule"]) for refusal in run.refusals]
    assert stored(source)["AGENTS.md"] == b"Be kind.\n"
    assert file_at(source).active.number == 1


def test_a_corrected_file_is_no_longer_refused(source):
    requested = push(
        source, {"AGENTS.md": b"x" * (DiscoveryCaps().file_bytes + 1), "CLAUDE.md": b"Be brief.\n"}
    )
    again = push(source, {"AGENTS.md": b"Be kind.\n"})
    assert (again.pk, again.refusals, again.refused) == (requested.pk, [], 0)


def test_equal_contents_are_stored_once(source, workspace):
    refresh(push(source, {"a/AGENTS.md": b"Same.\n", "b/AGENTS.md": b"Same.\n"}))
    other, _ = add_source(workspace, {"name": "Other", "source_kind": "pushed"}, by=BY)
    push(other, {"AGENTS.md": b"Same.\n"})
    assert Content.objects.in_workspace(workspace).count() == 1


def test_contents_are_not_shared_between_workspaces(source, elsewhere):
    theirs, _ = add_source(elsewhere, {"name": "Theirs", "source_kind": "pushed"}, by=BY)
    push(source, FILES)
    push(theirs, FILES)
    assert Content.objects.in_workspace(elsewhere).count() == 2
    assert set(PushedFile.objects.in_workspace(elsewhere).values_list("source", flat=True)) == {theirs.pk}


def test_unchanged_pushed_files_are_not_loaded_again(source):
    refresh(push(source, FILES))
    push(source, {"CLAUDE.md": b"Be brief.\n"})
    contents = get_pushed_content(source, get_known_stamps(source))
    assert {path for path, content in contents.items() if isinstance(content, bytes)} == {"CLAUDE.md"}
    assert contents["AGENTS.md"] == FileStamp(9, 0, 0, 0, file_at(source).latest.digest)


@pytest.mark.parametrize(
    ("path", "kept"),
    [("agents.md", "AGENTS.md"), ("docs/AGENTS.md", "docs"), ("docs", "docs/AGENTS.md")],
    ids=["other-case", "file-in-a-files-place", "file-in-a-folders-place"],
)
def test_a_path_that_many_disks_take_for_another_is_refused(source, path, kept):
    push(source, {kept: b"First.\n"})
    run = push(source, {path: b"Second.\n", "CLAUDE.md": b"Be brief.\n"})
    assert [(refusal["path"], refusal["rule"]) for refusal in run.refusals] == [(path, "alike")]
    assert set(stored(source)) == {kept, "CLAUDE.md"}


def test_a_replaced_file_makes_room_for_its_namesake(source):
    push(source, {"agents.md": b"First.\n"})
    push(source, {"AGENTS.md": b"Second.\n"}, replace=True)
    assert stored(source) == {"AGENTS.md": b"Second.\n"}


def test_a_push_that_leaves_out_most_files_is_held(source):
    names = ["AGENTS.md", "a/AGENTS.md", "b/AGENTS.md"]
    refresh(push(source, dict.fromkeys(names, b"Be kind.\n")))
    held = refresh(push(source, {"AGENTS.md": b"Be kind.\n"}, replace=True))
    assert (held.status, held.missing_paths) == ("held", names[1:])
    assert file_at(source, "a/AGENTS.md").active is not None
    assert refresh(confirm_removal(source, held.pk, by=BY)).outcome == {"missing": 2}


def test_files_that_are_removed_by_name_are_removed_however_many(source):
    names = ["AGENTS.md", "a/AGENTS.md", "b/AGENTS.md"]
    refresh(push(source, dict.fromkeys(names, b"Be kind.\n")))
    for name in names:
        run = remove_pushed_file(source, name, by=BY)
    assert refresh(run).outcome == {"missing": 3}


def test_one_file_is_pushed_and_removed_by_its_path(source):
    refresh(push_file(source, "AGENTS.md", b"Be kind.\n", by=BY))
    refresh(push_file(source, "AGENTS.md", b"Be kinder.\n", by=BY))
    assert file_at(source).latest.number == 2
    run = refresh(remove_pushed_file(source, "AGENTS.md", by=BY))
    assert (run.outcome, file_at(source).active) == ({"missing": 1}, None)
    verbs = AuditEvent.objects.in_workspace(source.workspace_id).order_by("pk").values_list("verb", flat=True)
    assert list(verbs)[-3:] == ["pushed", "pushed", "removed file"]


@pytest.mark.parametrize("path", ["../AGENTS.md", "/etc/passwd", "a\\b.md", "a//b.md", "", "\x00.md"])
def test_a_bad_path_is_refused_under_its_name(source, path):
    with pytest.raises(InvalidInput) as caught:
        push_file(source, path, b"x", by=BY)
    assert set(caught.value.errors) == {"path"}
    assert stored(source) == {}


def test_removing_a_missing_file_is_an_error(source):
    with pytest.raises(PushedFileNotFound, match=r"Pushed file NOTHING\.md not found"):
        remove_pushed_file(source, "NOTHING.md", by=BY)


def test_nothing_is_pushed_into_a_folder_or_an_archived_source(source, workspace, tmp_path, settings):
    settings.DRAMATIS_SOURCE_ROOTS = [tmp_path]
    with pytest.raises(SourceNotPushable):
        push(make_source(workspace, tmp_path), FILES)
    archive_record(source, by=BY)
    with pytest.raises(SourceArchived):
        push(source, FILES)
    assert not PushedFile.objects.in_workspace(workspace).exists()


@pytest.mark.slow
def test_a_source_never_holds_more_than_one_look_may_read(source):
    push(source, {f"{number}.md": b"" for number in range(DiscoveryCaps().files)})
    with pytest.raises(InvalidBundle, match="at most 2,000 pushed files"):
        push(source, {"one-more.md": b""})
    push(source, {"one.md": b""}, replace=True)
    big = {f"{number}.md": b"x" * DiscoveryCaps().file_bytes for number in range(40)}
    push(source, big)
    with pytest.raises(InvalidBundle, match="16 MiB"):
        push(source, {f"more/{path}": data for path, data in big.items()})
    assert len(stored(source)) == 41


def test_a_push_of_nothing_never_empties_a_source(source):
    push(source, FILES)
    for empty in ({}, {"../x": b"y"}):
        with pytest.raises(InvalidBundle):
            push(source, empty, replace=True)
    assert set(stored(source)) == set(FILES)


# --- page ----------------------------------------------------------------------------------------------


def test_an_uploaded_zip_is_taken_in(source, as_bob):
    answer = upload(as_bob, source, write_zip(FILES.items()))
    assert answer.status_code == 302
    assert stored(source) == FILES
    run = RefreshRun.objects.in_workspace(source.workspace_id).filter(source=source).latest("pk")
    assert (run.status, run.cause, run.actor_label) == ("queued", "push", "bob@example.com")


def test_an_upload_adds_unless_told_to_replace(source, as_bob):
    upload(as_bob, source, write_zip(FILES.items()))
    upload(as_bob, source, write_zip([("CLAUDE.md", b"Be brief.\n")]))
    assert len(stored(source)) == 3
    upload(as_bob, source, write_zip([("CLAUDE.md", b"Be brief.\n")]), replace="on")
    assert set(stored(source)) == {"CLAUDE.md"}


def test_refused_files_of_a_good_zip_are_shown_with_their_reasons(source, as_bob):
    data = archive(Part("../evil.md"), Part("AGENTS.md", b"Be kind.\n"), Part("link.md", mode=0o120777))
    upload(as_bob, source, data)
    page = as_bob.get(f"/w/{source.workspace.slug}/sources/{source.slug}/").content.decode()
    assert "The path contains “..”." in page
    assert "This is a link. Push the file that it points to." in page
    assert set(stored(source)) == {"AGENTS.md"}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"not a zip at all", "This is not a zip archive, or its end is missing."),
        (archive(Part("AGENTS.md"), Part("b.md"))[:-1], "extra data at its end"),
        (
            archive(Part("../a.md"), Part("/b.md")),
            "None of these files can be accepted. Check the reason for each file.",
        ),
        (b"", "This file is empty."),
    ],
    ids=["no-zip", "cut-off", "all-refused", "empty"],
)
def test_a_bad_zip_stores_nothing_and_says_why(source, as_bob, data, message):
    push(source, FILES)
    answer = upload(as_bob, source, data, replace="on")
    assert answer.status_code == 422
    assert message in answer.content.decode()
    assert stored(source) == FILES


def test_every_file_of_a_refused_zip_is_named(source, as_bob):
    data = archive(Part("../a.md"), Part("<b>/c.md", method=99))
    page = upload(as_bob, source, data).content.decode()
    assert "../a.md" in page
    assert "&lt;b&gt;/c.md" in page
    assert "Use a plain zip" in page


def test_an_upload_without_a_file_is_refused_under_the_field(source, as_bob):
    answer = as_bob.post(f"/w/{source.workspace.slug}/sources/{source.slug}/upload/", {})
    assert answer.status_code == 422
    assert answer.context["upload"].errors["archive"] == ["Choose a zip archive."]


def test_an_upload_to_a_folder_is_refused_with_a_reason(workspace, tmp_path, settings, as_bob):
    settings.DRAMATIS_SOURCE_ROOTS = [tmp_path]
    folder = make_source(workspace, tmp_path)
    answer = upload(as_bob, folder, write_zip(FILES.items()))
    assert answer.status_code == 302
    page = as_bob.get(answer["Location"]).content.decode()
    assert "This source reads its files from a folder." in page


# --- body size -----------------------------------------------------------------------------------------


def padded(size):
    """A valid archive of at least this size, with all files below the cap."""
    part = 200 * 1024
    return write_zip((f"{at}.md", b"x" * part) for at in range(size // part + 1))


def test_an_archive_may_be_larger_than_other_bodies(source, as_bob):
    data = padded(3 * LIMIT)
    assert len(data) > 3 * LIMIT
    assert upload(as_bob, source, data).status_code == 302
    assert len(stored(source)) == 16


def test_an_archive_above_its_own_limit_is_refused(source, as_bob):
    assert upload(as_bob, source, b"x" * (16 * LIMIT + 1)).status_code == 422
    assert upload(as_bob, source, b"x" * (17 * LIMIT)).status_code == 413
    assert stored(source) == {}


@pytest.mark.parametrize("page", ["refresh/", "edit/", "live/", "archive/", ""])
def test_other_pages_of_a_source_keep_the_common_limit(source, as_alice, page):
    url = f"/w/{source.workspace.slug}/sources/{source.slug}/{page}"
    large = {"file": SimpleUploadedFile("x", b"x" * (LIMIT + 1))}
    assert as_alice.post(url, large).status_code == 413


def test_the_upload_page_takes_no_more_from_someone_who_is_not_signed_in(source, client):
    assert upload(client, source, b"x" * (2 * LIMIT)).status_code == 413
    assert upload(client, source, b"x").status_code == 302


@pytest.mark.planted
def test_an_upload_page_without_its_mark_would_take_no_more_than_others(source, as_bob, monkeypatch):
    view: Any = resolve(f"/w/{source.workspace.slug}/sources/{source.slug}/upload/").func
    monkeypatch.delattr(view, "max_body_bytes")
    assert upload(as_bob, source, padded(2 * LIMIT)).status_code == 413


def test_a_look_without_a_push_finds_nothing_and_says_nothing(source):
    run = refreshed(source)
    assert (run.status, run.seen, run.refusals) == ("done", 0, [])
