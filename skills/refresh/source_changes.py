"""Create a source with its first refresh, and rescan a source after an edit."""

from django.db import transaction

from personas.actors import Actor
from personas.agents.services import create_named_record
from personas.models import Workspace
from personas.records.services import FieldValues
from skills.files.services import reapply_statuses
from skills.models import RefreshRun, Source
from skills.refresh.runs import request_refresh
from skills.sources.locks import lock_source


@transaction.atomic
def add_source(workspace: Workspace, values: FieldValues, *, by: Actor) -> tuple[Source, RefreshRun]:
    """Create a folder source or an upload source, and request its first refresh."""
    source = create_named_record(Source, workspace, values, by=by)
    return source, request_refresh(source, cause="created", by=by)


@transaction.atomic
def rescan_source(source: Source, *, cause: str, by: Actor) -> RefreshRun:
    """Apply the edited settings of a source to its known files at once, and request a refresh."""
    source = lock_source(source)
    reapply_statuses(source)
    return request_refresh(source, cause=cause, by=by)
