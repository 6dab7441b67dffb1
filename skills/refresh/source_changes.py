"""Sources come with a first look; what was changed about one holds for its files at once."""

from django.db import transaction

from personas.actors import Actor
from personas.agents.services import create_named
from personas.models import Workspace
from personas.records.services import Values
from skills.files.services import settle_again
from skills.models import RefreshRun, Source
from skills.refresh.runs import request_refresh
from skills.sources.locks import hold


@transaction.atomic
def add_source(workspace: Workspace, values: Values, *, by: Actor) -> tuple[Source, RefreshRun]:
    """Register a folder or a place for pushed files, and ask for a first look at it."""
    source = create_named(Source, workspace, values, by=by)
    return source, request_refresh(source, cause="created", by=by)


@transaction.atomic
def look_anew(source: Source, *, cause: str, by: Actor) -> RefreshRun:
    """After an edit: judge the known files by the rules as they are now, and ask for another look."""
    source = hold(source)
    settle_again(source)
    return request_refresh(source, cause=cause, by=by)
