"""Which source an agent reads and by whose rules, and what it is given of it."""

from collections.abc import Iterable
from typing import Any

from django.db import transaction
from django.urls import URLPattern

from personas.api.etags import refuse_unless
from personas.api.exception_handler import invalid
from personas.api.operations import Call, Operation
from personas.api.problems import FieldError, ProblemError
from personas.api.responses import Answer, answered, empty
from personas.api.schema import Shape, choice, flag, line, listed, nullable, shape, slug, whole
from personas.api.views import endpoint
from personas.models import Agent
from personas.records.services import locked
from personas.roles import Permission
from skills.agent_context.effective import FileInUse
from skills.agent_context.page import Choice, choice_of, context_of
from skills.agent_context.services import choose_context, inherit_context
from skills.api_helpers import TEXT, agent_or_404
from skills.discovery.harnesses import HARNESSES, KINDS
from skills.models import ContextFile, FileRevision, FileState, Source
from skills.sources.api import Sources

MOST = 100_000
GIVEN = shape({"id": whole(1), "path": TEXT, "kind": choice(KINDS), "revision": whole(1), "digest": TEXT})
HELD = listed(shape({"id": whole(1), "path": TEXT, "state": choice(FileState.values)}), most=MOST)
CONTEXT: Shape = shape(
    {
        "agent": TEXT,
        "source": nullable(TEXT),
        "harness": nullable(TEXT),
        "working_directory": TEXT,
        "chosen_by": nullable(
            TEXT | {"description": "The agent whose choice this is: itself, or one above."}
        ),
        "is_inherited": flag(),
        "why_nothing": TEXT | {"description": "Why it reads no files; empty when it does."},
        "files": listed(GIVEN, most=MOST, description="What its prompts hold, skills aside."),
        "withheld": HELD | {"description": "Named by its rules, but not as they should be."},
        "waiting": HELD | {"description": "What it would be given if someone agreed to it."},
        "etag": TEXT,
    }
)
CHOICE = shape(
    {
        "source": nullable(slug(description="Null: it reads nothing, also not what its parent reads.")),
        "harness": choice(HARNESSES),
        "working_directory": line(1_000, description="Below the source's root; absent: as it is."),
    },
    required=["source", "harness"],
)
CHANGES: dict[str, Any] = {"permission": Permission.EDIT, "is_conditional": True, "tag": "agents"}


def read(call: Call, agent: str) -> Answer:
    return given(agent_or_404(call, agent))


@transaction.atomic
def choose(call: Call, agent: str) -> Answer:
    row = held(call, agent)
    said: dict[str, Any] = call.body
    choose_context(
        row,
        source_named(call, said["source"]),
        said["harness"],
        working_directory=said.get("working_directory", row.working_directory),
        expected=row.revision,
        by=call.actor,
    )
    return given(agent_or_404(call, agent))


@transaction.atomic
def inherit(call: Call, agent: str) -> Answer:
    inherit_context(held(call, agent), by=call.actor)
    return empty()


# --- plumbing ------------------------------------------------------------------------------------------


def held(call: Call, slug: str) -> Agent:
    """The agent, locked, if the caller has seen how it stands."""
    agent = locked(agent_or_404(call, slug))
    refuse_unless(etag_of(agent, choice_of(agent)), call.if_match)
    return agent


def source_named(call: Call, slug: str | None) -> Source | None:
    if slug is None:
        return None
    source: Source | None = Sources().visible(call.caller).filter(slug=slug, archived_at=None).first()
    if source is None:
        raise ProblemError(invalid([FieldError("There is no such record here.", "/source")]))
    return source


def etag_of(agent: Agent, choice: Choice) -> str:
    """The choice is no part of the agent's own revisions, so its words are part of the mark."""
    by, row = choice.chosen_by, choice.row
    source = row.source.slug if row and row.source else ""
    return f'"{agent.revision}.{by.slug if by else ""}.{source}.{row.harness if row else ""}"'


def given(agent: Agent) -> Answer:
    choice = choice_of(agent)
    etag = etag_of(agent, choice)
    return answered(told(agent, choice) | {"etag": etag}, ETag=etag)


def told(agent: Agent, choice: Choice) -> dict[str, Any]:
    shown, waiting = context_of(agent)
    row, by = choice.row, choice.chosen_by
    return {
        "agent": agent.slug,
        "source": row.source.slug if row and row.source else None,
        "harness": row.harness if row else None,
        "working_directory": choice.directory,
        "chosen_by": by.slug if by else None,
        "is_inherited": by is not None and by.pk != agent.pk,
        "why_nothing": "" if shown.outlook else choice.why_nothing,
        "files": [file_told(one, used) for one in shown.files if (used := one.file.in_force)],
        "withheld": held_back(shown.withheld),
        "waiting": held_back(waiting),
    }


def file_told(one: FileInUse, used: FileRevision) -> dict[str, Any]:
    return {
        "id": one.file.pk,
        "path": one.file.path,
        "kind": one.kind,
        "revision": used.number,
        "digest": used.digest,
    }


def held_back(files: Iterable[ContextFile]) -> list[dict[str, Any]]:
    return [{"id": file.pk, "path": file.path, "state": file.state} for file in files]


urlpatterns: list[URLPattern] = [
    endpoint(
        "agents/<slug:agent>/context",
        "agent-context",
        get=Operation(read, "What an agent reads, and from where", bots=True, answer=CONTEXT, tag="agents"),
        put=Operation(choose, "Choose the source an agent reads", body=CHOICE, answer=CONTEXT, **CHANGES),
        delete=Operation(
            inherit, "Drop an agent's own choice: it reads what its parent reads", status=204, **CHANGES
        ),
    ),
]
