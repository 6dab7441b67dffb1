"""Retention of reports, verification runs, contents and file revisions: only what nothing refers to."""

from datetime import timedelta

import pytest
import time_machine
from django.db import DatabaseError, transaction
from django.utils import timezone

from personas.contents.services import store_contents
from personas.models import Content, sha256_digest
from project import retention, tasks
from prompts.evidence.drift.reports import report_digest
from prompts.evidence.integrity.services import request_verification, run_verification
from prompts.evidence.integrity.verify import verify_workspace
from prompts.evidence.replay.services import replay_entry
from prompts.models import AgentPrompt, DigestReport, PromptVersion, VerificationRun, VersionPart
from prompts.publishing.versions import content_retention
from skills.models import ContextFile, FileRevision
from tests.factories import BY, make_source, refreshed
from tests.prompts.serving.serving_stage import Stage, make_stage

pytestmark = pytest.mark.django_db


@pytest.fixture
def stage(workspace) -> Stage:
    return make_stage(workspace)


def store(workspace, text: str, *, days: int = 0) -> str:
    digest = sha256_digest(text.encode())
    with time_machine.travel(timezone.now() - timedelta(days=days), tick=False):
        store_contents(workspace, {digest: text.encode()})
    return digest


def has_content(workspace, digest: str) -> bool:
    return Content.objects.in_workspace(workspace).filter(digest=digest).exists()


def age_contents(workspace, days: int = 60) -> None:
    old = timezone.now() - timedelta(days=days)
    Content.objects.in_workspace(workspace).update(created_at=old)


# --- contents ------------------------------------------------------------------------------------------


def test_contents_that_nothing_refers_to_are_deleted_after_a_time(workspace):
    old, recent = store(workspace, "Old words", days=31), store(workspace, "New words", days=29)
    assert retention.purge_contents() == 1
    assert (has_content(workspace, old), has_content(workspace, recent)) == (False, True)


@pytest.mark.slow
def test_everything_that_versions_refer_to_stays_provable(stage):
    served = [stage.fetch()]
    for text in ("Be wise.", "Be kind."):
        stage.edit(text)
        served.append(stage.fetch())
    age_contents(stage.workspace)
    retention.purge_contents()
    assert verify_workspace(stage.workspace).first is None
    for one in served:
        assert replay_entry(stage.workspace, one.ledger_id).text == one.text
    for version in PromptVersion.objects.in_workspace(stage.workspace):
        assert content_retention_leaves_inputs(version)


def content_retention_leaves_inputs(version) -> bool:
    digest = version.lockfile["inputs"]
    used = content_retention.iterate_input_digests(version.workspace_id, [digest])
    rows = Content.objects.in_workspace(version.workspace_id)
    return all(rows.filter(digest=one).exists() for one in (digest, version.report, *used))


def test_the_report_of_the_last_build_stays(stage):
    digest = store(stage.workspace, '{"problems":[]}', days=60)
    AgentPrompt.objects.in_workspace(stage.workspace).update(report=digest)
    retention.purge_contents()
    assert has_content(stage.workspace, digest)


def test_erased_contents_keep_their_digest(workspace):
    digest = store(workspace, "Erased words", days=60)
    Content.objects.in_workspace(workspace).update(data=None, erased_at=timezone.now())
    retention.purge_contents()
    assert has_content(workspace, digest)


def test_a_version_that_is_built_during_the_run_keeps_its_contents(stage, monkeypatch):
    """The build finds an unused content that exists already, after the run has read the versions."""
    age_contents(stage.workspace)
    real = content_retention.list_candidates
    calls: list[object] = []

    def build_meanwhile(*args):
        if not calls:
            calls.append(args)
            stage.edit("Be wise.")
            age_contents(stage.workspace)
        return real(*args)

    monkeypatch.setattr(content_retention, "list_candidates", build_meanwhile)
    retention.purge_contents()
    assert calls
    assert verify_workspace(stage.workspace).first is None
    assert "Be wise." in stage.fetch().text


@pytest.mark.planted
def test_a_run_that_does_not_read_the_recent_versions_is_found(stage, monkeypatch):
    monkeypatch.setattr(content_retention, "MAX_BUILD_TIME", timedelta(days=-1))
    with pytest.raises((AssertionError, KeyError)):
        test_a_version_that_is_built_during_the_run_keeps_its_contents(stage, monkeypatch)


def test_days_of_zero_keep_unused_contents(workspace, settings):
    settings.DRAMATIS_KEEP_UNUSED_DAYS = 0
    digest = store(workspace, "Old words", days=1_000)
    tasks.purge_contents_job()
    assert has_content(workspace, digest)


def test_an_error_in_one_workspace_does_not_stop_the_others(workspace, elsewhere, monkeypatch):
    old = [store(each, "Old words", days=60) for each in (workspace, elsewhere)]
    real = content_retention.delete_unused_contents

    def fail_first(workspace_id, cutoff):
        if workspace_id == workspace.pk:
            raise DatabaseError("statement timeout")
        return real(workspace_id, cutoff)

    monkeypatch.setattr(retention, "delete_unused_contents", fail_first)
    retention.purge_contents()
    assert (has_content(workspace, old[0]), has_content(elsewhere, old[1])) == (True, False)


# --- file revisions ------------------------------------------------------------------------------------


@pytest.fixture
def file(workspace, tmp_path, settings) -> ContextFile:
    """A file with three revisions, of which no prompt has used any."""
    settings.DRAMATIS_SOURCE_ROOTS = [tmp_path]
    source = make_source(workspace, tmp_path)
    for number in range(3):
        (tmp_path / "AGENTS.md").write_text(f"Text {number}\n" * (number + 1), encoding="utf-8")
        refreshed(source)
    return ContextFile.objects.in_workspace(workspace).get(path="AGENTS.md")


def list_numbers(file: ContextFile) -> list[int]:
    rows = FileRevision.objects.in_workspace(file.workspace_id).filter(file=file)
    return sorted(rows.values_list("number", flat=True))


def age_revisions(file: ContextFile) -> None:
    rows = FileRevision.objects.in_workspace(file.workspace_id).filter(last_seen_at__isnull=False)
    rows.update(last_seen_at=timezone.now() - timedelta(days=60))


def test_replaced_revisions_that_no_version_contains_are_deleted_with_their_contents(file):
    assert list_numbers(file) == [1, 2, 3]
    retention.purge_contents()
    assert list_numbers(file) == [1, 2, 3]
    age_revisions(file)
    age_contents(file.workspace)
    retention.purge_contents()
    kept = {row.number for row in (file.latest, file.approved, file.active) if row}
    assert set(list_numbers(file)) == kept
    digests = FileRevision.objects.in_workspace(file.workspace_id).values_list("digest", flat=True)
    assert all(has_content(file.workspace, digest) for digest in digests)
    assert not has_content(file.workspace, sha256_digest(b"Text 1\nText 1\n"))


def test_a_revision_that_a_version_contains_stays(file, stage):
    prompt = AgentPrompt.objects.in_workspace(stage.workspace).get()
    VersionPart(
        workspace=stage.workspace,
        prompt=prompt,
        version=prompt.latest,
        kind="context_file",
        object_id=file.pk,
        revision=1,
    ).save()
    age_revisions(file)
    retention.purge_contents()
    assert 1 in list_numbers(file)
    assert 2 not in list_numbers(file)


# --- reports and verification runs ---------------------------------------------------------------------


def add_report(stage: Stage, days: int, digest: str = "0" * 64) -> DigestReport:
    prompt = AgentPrompt.objects.in_workspace(stage.workspace).get()
    with time_machine.travel(timezone.now() - timedelta(days=days), tick=False):
        return report_digest(prompt, digest, key=stage.key, by=BY).report


def test_old_reports_are_deleted_and_the_last_one_of_a_key_stays(stage):
    add_report(stage, 400)
    last = add_report(stage, 300)
    assert retention.purge_reports() == 1
    assert list(DigestReport.objects.in_workspace(stage.workspace)) == [last]
    newest = add_report(stage, 0)
    assert retention.purge_reports() == 1
    assert list(DigestReport.objects.in_workspace(stage.workspace)) == [newest]


def test_the_database_refuses_to_delete_recent_reports_and_to_change_any(stage):
    recent, old = add_report(stage, 29), add_report(stage, 31)
    rows = DigestReport.objects.in_workspace(stage.workspace)
    with pytest.raises(DatabaseError), transaction.atomic():
        rows.filter(pk=recent.pk).delete()
    with pytest.raises(DatabaseError), transaction.atomic():
        rows.filter(pk=old.pk).update(digest="1" * 64)
    assert rows.filter(pk=old.pk).delete()[0] == 1


def test_a_shorter_time_than_the_database_allows_is_raised_to_it(stage, settings):
    settings.DRAMATIS_KEEP_REPORTS_DAYS = 1
    add_report(stage, 31)
    add_report(stage, 10)
    add_report(stage, 0)
    assert retention.purge_reports() == 1


def test_old_verification_runs_are_deleted_and_the_last_one_stays(workspace):
    with time_machine.travel(timezone.now() - timedelta(days=400), tick=False):
        runs = [request_verification(workspace, by=BY)]
        run_verification(workspace.pk, runs[0].pk)
        runs.append(request_verification(workspace, by=BY))
        run_verification(workspace.pk, runs[1].pk)
    tasks.purge_reports_job()
    assert list(VerificationRun.objects.in_workspace(workspace)) == [runs[1]]
