"""A refresh in which most files disappear is held until a person confirms the removal."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from django.urls import reverse

from personas.models import AuditEvent
from skills.models import ContextFile, FileStatus, RefreshRun
from skills.refresh.holds import HoldChanged, confirm_removal, is_mass_removal
from skills.refresh.runs import (
    claim_run,
    get_refresh_progress,
    request_due_refreshes,
    request_refresh,
    requeue_run,
)
from skills.refresh.services import refresh_source
from skills.sources.selectors import get_source_hold
from tests.factories import BY, make_agent, make_source, refreshed
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

pytestmark = pytest.mark.django_db
NAMES = ("AGENTS.md", "a/AGENTS.md", "b/AGENTS.md", "c/AGENTS.md", "d/AGENTS.md")


def write_tree(top: Path, names: tuple[str, ...] = NAMES) -> None:
    for name in names:
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text(f"Text of {name}.\n")


@pytest.fixture
def tree(tmp_path: Path, settings) -> Path:
    top = tmp_path / "files"
    top.mkdir()
    settings.DRAMATIS_SOURCE_ROOTS = [tmp_path]
    write_tree(top)
    return top


@pytest.fixture
def source(workspace, tree):
    source = make_source(workspace, tree)
    refreshed(source)
    return source


def empty(tree: Path) -> None:
    """Remove everything in the folder, as if its volume were not mounted."""
    shutil.rmtree(tree)
    tree.mkdir()


def remove(tree: Path, *names: str) -> None:
    for name in names:
        (tree / name).unlink()


def used_paths(source) -> list[str]:
    rows = ContextFile.objects.in_workspace(source.workspace_id).filter(source=source)
    return sorted(rows.exclude(active=None).values_list("path", flat=True))


def statuses(source) -> set[str]:
    rows = ContextFile.objects.in_workspace(source.workspace_id).filter(source=source)
    return set(rows.values_list("status", flat=True))


def run_queued(run: Any) -> Any:
    claimed = claim_run(run.workspace_id, run.pk)
    assert claimed is not None
    return refresh_source(claimed)


def confirm(source, run: RefreshRun) -> Any:
    return run_queued(confirm_removal(source, run.pk, by=BY))


def verbs(source) -> list[str]:
    rows = AuditEvent.objects.in_workspace(source.workspace_id).filter(kind="source", object_id=source.pk)
    return list(rows.order_by("pk").values_list("verb", flat=True))


@pytest.mark.parametrize(
    ("present", "missing", "is_empty", "is_pinned"),
    [
        (5, 3, False, True),
        (4, 2, False, False),
        (3, 2, False, True),
        (2, 2, False, True),
        (2, 1, False, False),
        (1, 1, False, False),
        (1, 1, True, True),
        (100, 50, False, False),
        (100, 51, False, True),
        (5, 0, True, False),
    ],
)
def test_more_than_half_of_the_files_or_an_empty_root_is_a_mass_removal(
    present, missing, is_empty, is_pinned
):
    assert is_mass_removal(present, missing, is_empty=is_empty) == is_pinned


def test_an_empty_root_is_held_and_every_file_stays_in_use(source, tree):
    empty(tree)
    run: Any = refreshed(source)
    assert (run.status, run.missing, run.outcome) == ("held", 5, {})
    assert sorted(run.missing_paths) == sorted(NAMES)
    assert "5 of 5" in run.error
    assert (used_paths(source), statuses(source)) == (sorted(NAMES), {FileStatus.NEW})
    assert get_source_hold(source) == run


def test_a_source_of_one_file_is_held_if_its_root_is_empty(workspace, tree):
    empty(tree)
    write_tree(tree, ("AGENTS.md",))
    source = make_source(workspace, tree)
    refreshed(source)
    empty(tree)
    assert refreshed(source).status == "held"
    assert used_paths(source) == ["AGENTS.md"]


def test_a_held_refresh_changes_no_other_file_either(source, tree):
    remove(tree, *NAMES[1:])
    (tree / "AGENTS.md").write_text("A stub of another volume, with other text.\n")
    write_tree(tree, ("new/AGENTS.md",))
    assert refreshed(source).status == "held"
    row: Any = ContextFile.objects.in_workspace(source.workspace_id).get(source=source, path="AGENTS.md")
    assert row.active.content.text == "Text of AGENTS.md.\n"
    assert "new/AGENTS.md" not in used_paths(source)


def test_a_few_missing_files_are_missing_at_once(source, tree):
    remove(tree, "d/AGENTS.md", "c/AGENTS.md")
    run = refreshed(source)
    assert (run.status, run.outcome, run.missing) == ("done", {"missing": 2}, 0)
    assert used_paths(source) == sorted(NAMES[:3])


def test_files_that_are_back_end_the_hold_by_themselves(source, tree):
    empty(tree)
    refreshed(source)
    write_tree(tree)
    assert refreshed(source).status == "done"
    assert get_source_hold(source) is None
    assert (used_paths(source), statuses(source)) == (sorted(NAMES), {FileStatus.NEW})
    assert verbs(source)[-2:] == ["held removal", "ended hold"]


def test_a_failed_refresh_does_not_end_the_hold(source, tree):
    empty(tree)
    held = refreshed(source)
    tree.rmdir()
    assert refreshed(source).status == "failed"
    assert get_source_hold(source) == held
    assert used_paths(source) == sorted(NAMES)


def test_refreshes_by_schedule_watcher_and_person_never_confirm(source, tree):
    empty(tree)
    for cause in ("watch", "schedule", "person", "edited"):
        run = run_queued(request_refresh(source, cause=cause, by=BY))
        assert (run.status, used_paths(source)) == ("held", sorted(NAMES))
    assert verbs(source).count("held removal") == 1


def test_a_schedule_repeats_a_held_refresh(source, tree):
    empty(tree)
    run: Any = refreshed(source)
    later = run.finished_at.replace(year=run.finished_at.year + 1)
    assert [one.source_id for one in request_due_refreshes(later)] == [source.pk]


def test_a_confirmed_removal_removes_the_files(source, tree):
    empty(tree)
    run = confirm(source, refreshed(source))
    assert (run.status, run.outcome, run.cause) == ("done", {"missing": 5}, "confirmed")
    assert (used_paths(source), statuses(source)) == ([], {FileStatus.MISSING})
    assert get_source_hold(source) is None
    assert verbs(source)[-2:] == ["held removal", "confirmed removal"]


def test_a_confirmed_removal_keeps_the_files_that_came_back(source, tree):
    empty(tree)
    held = refreshed(source)
    write_tree(tree, NAMES[:2])
    assert confirm(source, held).outcome == {"missing": 3}
    assert used_paths(source) == sorted(NAMES[:2])


def test_a_confirmation_covers_only_the_files_that_were_shown(source, tree):
    remove(tree, *NAMES[:3])
    held = refreshed(source)
    assert held.missing == 3
    queued = confirm_removal(source, held.pk, by=BY)
    empty(tree)
    run = run_queued(queued)
    assert (run.status, run.missing, sorted(run.missing_paths)) == ("held", 5, sorted(NAMES))
    assert used_paths(source) == sorted(NAMES)
    with pytest.raises(HoldChanged):
        confirm_removal(source, held.pk, by=BY)
    assert confirm(source, run).status == "done"


def test_a_confirmation_still_counts_after_the_schedule_found_the_same(source, tree):
    empty(tree)
    seen = refreshed(source)
    refreshed(source)
    assert confirm(source, seen).status == "done"


def test_only_a_held_refresh_of_the_same_source_can_be_confirmed(source, tree, workspace):
    with pytest.raises(HoldChanged):
        confirm_removal(source, get_refresh_progress(source).runs[0].pk, by=BY)
    empty(tree)
    held = refreshed(source)
    other = make_source(workspace, tree, name="Other")
    with pytest.raises(HoldChanged):
        confirm_removal(other, held.pk, by=BY)
    confirm(source, held)
    with pytest.raises(HoldChanged):
        confirm_removal(source, held.pk, by=BY)


def test_a_confirmed_refresh_that_is_lost_is_retried_as_confirmed(source, tree):
    empty(tree)
    queued = confirm_removal(source, refreshed(source).pk, by=BY)
    claimed: Any = claim_run(queued.workspace_id, queued.pk)
    retry = requeue_run(claimed, "The worker stopped before the run was finished.")
    assert run_queued(retry).status == "done"
    assert used_paths(source) == []


# --- pages ---------------------------------------------------------------------------------------------


def page(source, name: str = "detail") -> str:
    return reverse(f"sources:{name}", args=[source.workspace.slug, source.slug])


@pytest.mark.slow
def test_the_source_page_and_the_inbox_show_the_hold_and_confirm_it(source, tree, as_alice):
    empty(tree)
    held = refreshed(source)
    inbox = reverse("inbox:list", args=[source.workspace.slug])
    for url in (page(source), inbox):
        text = as_alice.get(url).content.decode()
        assert "5 files are missing from" in text
        assert page(source, "confirm-removal") in text
        assert "d/AGENTS.md" in text
    answer = as_alice.post(page(source, "confirm-removal"), {"run": held.pk, "back": inbox})
    assert (answer.status_code, answer["Location"]) == (302, inbox)
    run_queued(RefreshRun.objects.in_workspace(source.workspace_id).get(status="queued"))
    assert "files are missing from" not in as_alice.get(page(source)).content.decode()
    assert used_paths(source) == []


@pytest.mark.slow
def test_the_inbox_is_polled_anew_when_a_hold_begins(source, tree, as_alice):
    live = reverse("inbox:live", args=[source.workspace.slug])
    list_url = reverse("inbox:list", args=[source.workspace.slug])
    mark = as_alice.get(list_url).context["mark"]
    assert as_alice.get(live, {"seen": mark}).status_code == 204
    empty(tree)
    refreshed(source)
    assert "5 files are missing from" in as_alice.get(live, {"seen": mark}).content.decode()


@pytest.mark.slow
def test_a_stale_confirmation_is_refused_with_a_message(source, tree, as_alice):
    remove(tree, *NAMES[:3])
    held = refreshed(source)
    empty(tree)
    refreshed(source)
    for run in (held.pk, "", "x", 10**30):
        answer = as_alice.post(page(source, "confirm-removal"), {"run": run}, follow=True)
        assert "refreshed again" in answer.content.decode()
    assert not RefreshRun.objects.in_workspace(source.workspace_id).filter(status="queued").exists()


@pytest.mark.slow
def test_the_fleet_counts_a_held_source(source, tree, as_alice):
    empty(tree)
    refreshed(source)
    make_agent(source.workspace)
    text = as_alice.get(reverse("home", args=[source.workspace.slug])).content.decode()
    assert "source with missing files" in text
