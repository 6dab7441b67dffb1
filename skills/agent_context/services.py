"""Which source an agent reads and by whose rules."""

from django.db import transaction
from django.utils.translation import gettext as _

from personas.actors import Actor
from personas.audit.services import write_audit_event
from personas.errors import InvalidInput
from personas.models import Agent
from personas.records.services import edit_record
from personas.signals import agent_changed
from skills.discovery.harnesses import HARNESSES
from skills.models import AgentContext, Source


@transaction.atomic
def choose_context(
    agent: Agent, source: Source | None, harness: str, *, working_directory: str, expected: int, by: Actor
) -> AgentContext:
    """Let an agent read a source; None means it reads nothing, also not what its parent reads."""
    if harness not in HARNESSES:
        raise InvalidInput.on("harness", _("That is none of the rule sets."))
    if source is not None and harness not in source.harnesses:
        raise InvalidInput.on(
            "harness",
            _("“%(source)s” is not looked through by these rules. Edit the source first.")
            % {"source": source},
        )
    agent = edit_record(agent, {"working_directory": working_directory}, expected=expected, by=by)
    rows = AgentContext.objects.in_workspace(agent.workspace_id).select_related("source")
    row = rows.filter(agent=agent).first() or AgentContext(workspace_id=agent.workspace_id, agent=agent)
    before = context_choice_json(row) if row.pk else None
    row.source, row.harness = source, harness
    row.save()
    log_context_change(agent, "chose context", before, context_choice_json(row), by=by)
    return row


@transaction.atomic
def inherit_context(agent: Agent, *, by: Actor) -> None:
    """Drop an agent's own choice; it reads what its parent reads, or nothing."""
    row = AgentContext.objects.in_workspace(agent.workspace_id).filter(agent=agent).first()
    if row is None:
        return
    before = context_choice_json(row)
    row.delete()
    log_context_change(agent, "inherits context", before, None, by=by)


def context_choice_json(row: AgentContext) -> dict[str, object]:
    return {"source": row.source_id, "harness": row.harness}


def log_context_change(
    agent: Agent, verb: str, before: dict[str, object] | None, after: dict[str, object] | None, *, by: Actor
) -> None:
    if before == after:
        return
    write_audit_event(
        agent.workspace_id, verb, "agent", agent.pk, str(agent), by=by, before=before, after=after
    )
    below = list_descendant_ids(agent)
    agent_changed.send(sender=Agent, workspace_id=agent.workspace_id, agent_ids=below, cause=None)


def list_descendant_ids(agent: Agent) -> list[int]:
    """The agent and all its descendants: any of them may inherit."""
    children: dict[int | None, list[int]] = {}
    for pk, parent in Agent.objects.in_workspace(agent.workspace_id).values_list("pk", "parent_id"):
        children.setdefault(parent, []).append(pk)
    found, open_ones = [], [agent.pk]
    while open_ones:
        found.append(at := open_ones.pop())
        open_ones += children.get(at, [])
    return sorted(found)
