"""The rows of a deleted workspace are removed from every table, those of other workspaces are not."""

from datetime import timedelta

import pytest
from django.db import DatabaseError, connection, transaction
from django.utils import timezone

from core.db.expiry import REMOVAL_KIND
from core.db.workspace_scope import workspace_scope
from personas.actors import Actor
from personas.models import Erasure, Workspace
from personas.workspaces import removal
from personas.workspaces.deletion import RESTORE_DAYS, delete_workspace
from personas.workspaces.removal import list_owned_models, remove_deleted_workspaces
from project.tasks import remove_workspaces_job
from prompts.models import LedgerEntry
from tests.isolation.canaries import tenant_models
from tests.isolation.cast import ELSEWHERE, HARBOUR, Stage
from tests.isolation.probe import digest


@pytest.fixture
def deleted(stage: Stage) -> Workspace:
    return delete_workspace(stage.workspaces[HARBOUR], by=Actor(label="test"))


def set_age(workspace: Workspace, **age: float) -> None:
    """Say that the workspace was deleted some time ago."""
    at = timezone.now() - timedelta(**age)
    Workspace.objects.filter(pk=workspace.pk).update(deleted_at=at)
    Erasure.objects.in_workspace(workspace).filter(kind=REMOVAL_KIND).update(at=at)


def count_rows(workspace: Workspace) -> dict[str, int]:
    return {
        model.__name__: model.objects.in_workspace(workspace).count()
        for model in tenant_models()
        if model is not Erasure
    }


@pytest.mark.slow
def test_every_table_is_emptied_and_other_workspaces_are_not(stage, deleted):
    before = count_rows(deleted)
    assert sum(1 for count in before.values() if count) > 40
    set_age(deleted, days=RESTORE_DAYS, hours=2)
    remove_workspaces_job()
    # The foreign keys are checked at the commit, which never comes in a test.
    connection.check_constraints()
    assert {name: count for name, count in count_rows(deleted).items() if count} == {}
    assert digest(stage.workspaces[ELSEWHERE]) == stage.before[ELSEWHERE]
    assert [one.kind for one in Erasure.objects.in_workspace(deleted)] == [REMOVAL_KIND]
    deleted.refresh_from_db()
    assert (deleted.slug, deleted.name) == (
        f"deleted-{deleted.pk}",
        f"Deleted workspace {deleted.pk}",
    )
    assert deleted.removed_at is not None
    assert remove_deleted_workspaces() == 0


@pytest.mark.parametrize("age", [{"days": 0}, {"days": RESTORE_DAYS - 1}, {"days": RESTORE_DAYS}])
def test_nothing_is_removed_before_the_time_is_over(stage, deleted, age):
    set_age(deleted, **age)
    before = count_rows(deleted)
    assert remove_deleted_workspaces() == 0
    assert count_rows(deleted) == before


def test_an_open_workspace_is_never_removed(stage):
    assert remove_deleted_workspaces(timezone.now() + timedelta(days=400)) == 0


def try_delete(workspace: Workspace) -> bool:
    """Return whether the database lets a ledger row be deleted."""
    try:
        with transaction.atomic():
            LedgerEntry.objects.in_workspace(workspace).order_by().delete()
    except DatabaseError:
        return False
    return True


def test_the_triggers_refuse_until_the_deletion_is_old_enough(stage, deleted):
    open_workspace = stage.workspaces[ELSEWHERE]
    assert LedgerEntry.objects.in_workspace(deleted).exists()
    assert not try_delete(deleted)
    set_age(deleted, days=RESTORE_DAYS - 1)
    assert not try_delete(deleted)
    set_age(deleted, days=RESTORE_DAYS, hours=1)
    assert try_delete(deleted)
    assert not try_delete(open_workspace)


def test_a_table_that_the_removal_forgets_is_found(stage, deleted, monkeypatch):
    """Planted fault."""
    models = [model for model in list_owned_models() if model.__name__ != "Memory"]
    monkeypatch.setattr(removal, "list_owned_models", lambda: models)
    set_age(deleted, days=RESTORE_DAYS, hours=2)
    with workspace_scope(deleted.pk):
        remove_deleted_workspaces()
    assert count_rows(deleted)["Memory"] > 0
