"""Changes of files that are live before anyone has reviewed them, and how they are reverted."""

from pathlib import Path
from typing import Any

import pytest

from personas.agents.services import create_named_record
from skills.files.services import StaleFileDigest, approve_file, revert_file
from skills.files.statuses import is_live_without_review
from skills.models import Approval, FileStatus, Source
from tests.factories import BY, make_source, refreshed
from tests.skills.files.file_samples import approve_file_at, file_at, write

pytestmark = pytest.mark.django_db


@pytest.fixture
def folder(tmp_path: Path, settings) -> Path:
    settings.DRAMATIS_SOURCE_ROOTS = [tmp_path]
    write(tmp_path / "files" / "AGENTS.md", "Be kind.\n")
    return tmp_path / "files"


@pytest.fixture
def source(workspace, folder) -> Source:
    """A source with automatic approval, whose file is approved."""
    source = make_source(workspace, folder)
    refreshed(source)
    approve_file_at(source, "AGENTS.md")
    return source


def change(source: Source, folder: Path, text: str) -> Any:
    write(folder / "AGENTS.md", text)
    refreshed(source)
    return file_at(source, "AGENTS.md")


def get_seen_digest(file: Any) -> str:
    return str(file.latest.digest)


def test_a_new_source_is_not_approved_automatically(workspace, folder, as_alice):
    allowed_folder = make_source(workspace, folder).allowed_folder
    source = create_named_record(
        Source, workspace, {"name": "New files", "allowed_folder": allowed_folder}, by=BY
    )
    assert source.approval == Approval.MANUAL
    form = as_alice.get(f"/w/{workspace.slug}/sources/new/").context["form"]
    assert form["approval"].value() == Approval.MANUAL


def test_an_automatic_change_is_shown_as_live_but_not_reviewed(source, folder, workspace, as_alice):
    file = change(source, folder, "Be rude.\n")
    assert file.active == file.latest
    assert is_live_without_review(file)
    for page in (f"files/{file.pk}/", "inbox/"):
        html = as_alice.get(f"/w/{workspace.slug}/{page}").content.decode()
        assert "Live, not reviewed" in html
        assert "Revert" in html
    approve_file(file, digest=get_seen_digest(file), by=BY)
    assert "Live, not reviewed" not in as_alice.get(f"/w/{workspace.slug}/files/{file.pk}/").content.decode()


def test_reverting_keeps_the_approved_text_until_the_file_changes_again(source, folder):
    file = change(source, folder, "Be rude.\n")
    revert_file(file, digest=get_seen_digest(file), by=BY)
    file.refresh_from_db()
    assert file.active == file.approved
    assert file.is_resolved
    refreshed(source)
    assert file_at(source, "AGENTS.md").active == file.approved
    file = change(source, folder, "Be very rude.\n")
    assert file.active == file.latest
    assert not file.is_resolved


def test_a_reverted_change_can_be_approved_after_all(source, folder):
    file = change(source, folder, "Be rude.\n")
    revert_file(file, digest=get_seen_digest(file), by=BY)
    approve_file(file, digest=get_seen_digest(file), by=BY)
    file.refresh_from_db()
    assert file.active == file.latest == file.approved
    assert file.status == FileStatus.CURRENT


def test_a_new_file_that_is_rejected_is_in_no_prompt(source, folder):
    write(folder / "docs" / "AGENTS.md", "Be rude.\n")
    refreshed(source)
    file = file_at(source, "docs/AGENTS.md")
    revert_file(file, digest=get_seen_digest(file), by=BY)
    file.refresh_from_db()
    assert file.active is None


def test_what_changed_after_it_was_seen_is_not_reverted(source, folder):
    seen = get_seen_digest(change(source, folder, "Be rude.\n"))
    file = change(source, folder, "Be ruder.\n")
    with pytest.raises(StaleFileDigest):
        revert_file(file, digest=seen, by=BY)


def test_a_file_restored_to_its_approved_bytes_needs_no_decision(source, folder):
    change(source, folder, "Be rude.\n")
    file = change(source, folder, "Be kind.\n")
    assert file.latest != file.approved
    assert file.latest.digest == file.approved.digest
    assert file.status == FileStatus.CURRENT
    assert file.is_resolved
