"""Sources come with a first look; what was changed about one holds for its files at once."""

from django.db import transaction

from personas.actors import Actor
from personas.models import Workspace
from personas.services.agents import create_named
from personas.services.records import Values
from skills.models import RefreshRun, Source
from skills.services.files import settle_again
from skills.services.refreshing import hold
from skills.services.runs import request_refresh


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
