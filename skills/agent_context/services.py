"""Set or clear the sources, harness and settings for files and skills of an agent."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from django.db import transaction
from django.utils.translation import gettext as _

from personas.actors import Actor
from personas.audit.services import write_audit_event
from personas.errors import InvalidInput
from personas.models import Agent
from personas.records.services import edit_record
from personas.signals import agent_changed
from skills.discovery.harness_json import find_plain_folder_problem
from skills.discovery.harnesses import HARNESSES
from skills.models import AgentContext, AgentSource, Source, SourceScope
from skills.sources.locations import (
    find_location_problem,
    is_absolute_path,
    is_home_path,
    normalize_location,
)
from skills.sources.readers import list_active_uses, list_context_rows

MAX_SOURCES, MAX_NAMES = 10, 20


@dataclass(frozen=True)
class SourceUse:
    """A source that an agent reads, as what, and where its root lies for the agent's bots if it differs."""

    source: Source
    scope: str = SourceScope.BOTH
    location: str = ""


@dataclass(frozen=True)
class ContextSettings:
    """Settings of an agent for files and skills, with the defaults of an agent that has none."""

    has_context_files: bool = True
    has_skills: bool = True
    file_names: Sequence[str] = field(default_factory=list)
    extra_skill_folders: Sequence[str] = field(default_factory=list)
    pulled_skills_folder: str = ""


SETTING_NAMES = (
    *("has_context_files", "has_skills", "file_names", "extra_skill_folders"),
    "pulled_skills_folder",
)


@transaction.atomic
def choose_context(
    agent: Agent,
    sources: Source | Sequence[SourceUse] | None,
    harness: str,
    *,
    working_directory: str,
    expected: int,
    by: Actor,
    settings: ContextSettings | None = None,
) -> AgentContext:
    """Set the sources, harness, settings and working directory of an agent.

    The sources are ordered: the last has the highest priority. A source alone is read as project and as home
    directory. Without a source, the agent reads no files and does not inherit its parent's sources either.
    `expected` is the agent's revision number that the edit is based on. Without `settings`, they stay.
    """
    if isinstance(sources, Source):
        sources = [SourceUse(sources)]
    uses = [normalize_use(use) for use in sources or ()]
    check_context_choice(uses, harness, settings)
    agent = edit_record(agent, {"working_directory": working_directory}, expected=expected, by=by)
    rows = list_context_rows(agent.workspace_id)
    row = rows.filter(agent=agent).first() or AgentContext(workspace_id=agent.workspace_id, agent=agent)
    before = context_choice_json(row) if row.pk else None
    row.harness = harness
    if settings is not None:
        set_context_settings(row, settings)
    row.save()
    save_source_uses(row, uses)
    row = rows.get(pk=row.pk)
    log_context_change(agent, "changed context", before, context_choice_json(row), by=by)
    return row


def normalize_use(use: SourceUse) -> SourceUse:
    """Remove a location that only repeats that of the source, so that it follows the source's."""
    location = normalize_location(use.location.strip())
    return SourceUse(use.source, use.scope, "" if location == use.source.location else location)


def check_context_choice(uses: Sequence[SourceUse], harness: str, settings: ContextSettings | None) -> None:
    """Raise `InvalidInput` with every invalid field."""
    errors: dict[str, list[str]] = {}
    for name, message in (*list_source_errors(uses, harness), *list_setting_errors(settings)):
        errors.setdefault(name, []).append(message)
    if errors:
        raise InvalidInput(errors)


def list_source_errors(uses: Sequence[SourceUse], harness: str) -> Iterator[tuple[str, str]]:
    if harness not in HARNESSES:
        yield "harness", _("These discovery rules do not exist. Choose other rules.")
    if len(uses) > MAX_SOURCES:
        yield "sources", _("An agent can use at most %(count)s sources.") % {"count": MAX_SOURCES}
    if len({use.source.pk for use in uses}) < len(uses):
        yield "sources", _("Each source can be selected only once.")
    for use in uses:
        if harness in HARNESSES and harness not in use.source.harnesses:
            message = _("“%(source)s” does not use these discovery rules. Add them to the source first.")
            yield "harness", message % {"source": use.source}
        if use.scope not in SourceScope.values:
            yield (
                "sources",
                _("Choose whether to read the source as a project, as a home directory or as both."),
            )
        if problem := find_location_problem(use.location):
            yield "sources", f"{use.source}: {problem}"


def list_setting_errors(settings: ContextSettings | None) -> Iterator[tuple[str, str]]:
    if settings is None:
        return
    for name, values, find_problem in (
        ("file_names", settings.file_names, find_file_name_problem),
        ("extra_skill_folders", settings.extra_skill_folders, find_skill_folder_problem),
    ):
        if len(values) > MAX_NAMES:
            yield name, _("Enter at most %(count)s lines.") % {"count": MAX_NAMES}
            continue
        for value in values:
            if problem := find_problem(value):
                yield name, f"{value}: {problem}"
    if problem := find_location_problem(settings.pulled_skills_folder):
        yield "pulled_skills_folder", problem


def find_file_name_problem(name: str) -> str:
    problem = find_plain_folder_problem(name)
    return problem or (_("Enter a file name without folders.") if "/" in name else "")


def find_skill_folder_problem(folder: str) -> str:
    """Return why this is not a path below the project's root, below `~/`, or absolute; or an empty string."""
    if is_absolute_path(folder):
        return find_location_problem(folder)
    return find_plain_folder_problem(folder[2:] if is_home_path(folder) else folder)


def set_context_settings(row: AgentContext, settings: ContextSettings) -> None:
    row.has_context_files, row.has_skills = settings.has_context_files, settings.has_skills
    row.file_names = list(dict.fromkeys(settings.file_names))
    row.extra_skill_folders = list(dict.fromkeys(settings.extra_skill_folders))
    row.pulled_skills_folder = normalize_location(settings.pulled_skills_folder.strip())


def save_source_uses(row: AgentContext, uses: Sequence[SourceUse]) -> None:
    AgentSource.objects.in_workspace(row.workspace_id).filter(context=row).delete()
    for position, use in enumerate(uses):
        AgentSource(
            workspace_id=row.workspace_id,
            context=row,
            source=use.source,
            scope=use.scope,
            location=use.location,
            position=position,
        ).save()


@transaction.atomic
def inherit_context(agent: Agent, *, by: Actor) -> None:
    """Remove the agent's own sources, harness and settings, so that it inherits those of its parent."""
    row = list_context_rows(agent.workspace_id).filter(agent=agent).first()
    if row is None:
        return
    before = context_choice_json(row)
    row.delete()
    log_context_change(agent, "inherited context", before, None, by=by)


def context_choice_json(row: AgentContext) -> dict[str, object]:
    """Return the values for the audit log."""
    uses = [
        {"source": use.source.slug, "scope": use.scope, "location": use.location} for use in row.uses.all()
    ]
    return {"sources": uses, "harness": row.harness} | {name: getattr(row, name) for name in SETTING_NAMES}


def list_sources_to_refresh(row: AgentContext) -> list[Source]:
    """List the sources whose files must be searched again, because the agent's settings add paths to it."""
    uses = list_active_uses(row)
    has_paths = bool(row.file_names or row.extra_skill_folders)
    return [use.source for use in uses if has_paths or use.scope == SourceScope.HOME]


def log_context_change(
    agent: Agent, action: str, before: dict[str, object] | None, after: dict[str, object] | None, *, by: Actor
) -> None:
    if before == after:
        return
    write_audit_event(
        agent.workspace_id, action, "agent", agent.pk, str(agent), by=by, before=before, after=after
    )
    # Descendants may inherit the settings, so their prompts may change too.
    agent_ids = sorted([agent.pk, *agent.list_descendant_ids()])
    agent_changed.send(sender=Agent, workspace_id=agent.workspace_id, agent_ids=agent_ids, by=by)
