"""Set or clear the source and harness of an agent."""

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
    """Set the source, harness and working directory of an agent.

    With the source None, the agent reads no files and does not inherit its parent's source either.
    `expected` is the agent's revision number that the edit is based on.
    """
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
    """Remove the agent's own source and harness, so that it inherits those of its parent."""
    row = AgentContext.objects.in_workspace(agent.workspace_id).filter(agent=agent).first()
    if row is None:
        return
    before = context_choice_json(row)
    row.delete()
    log_context_change(agent, "inherits context", before, None, by=by)


def context_choice_json(row: AgentContext) -> dict[str, object]:
    return {"source": row.source_id, "harness": row.harness}


def log_context_change(
    agent: Agent, action: str, before: dict[str, object] | None, after: dict[str, object] | None, *, by: Actor
) -> None:
    if before == after:
        return
    write_audit_event(
        agent.workspace_id, action, "agent", agent.pk, str(agent), by=by, before=before, after=after
    )
    agent_ids = list_descendant_ids(agent)
    agent_changed.send(sender=Agent, workspace_id=agent.workspace_id, agent_ids=agent_ids, cause=None)


def list_descendant_ids(agent: Agent) -> list[int]:
    """Return the ids of the agent and all its descendants, because they may inherit its source."""
    children: dict[int | None, list[int]] = {}
    for pk, parent in Agent.objects.in_workspace(agent.workspace_id).values_list("pk", "parent_id"):
        children.setdefault(parent, []).append(pk)
    ids, queue = [], [agent.pk]
    while queue:
        ids.append(agent_id := queue.pop())
        queue += children.get(agent_id, [])
    return sorted(ids)
