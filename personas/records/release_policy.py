"""Who may lift the review of an agent: else an editor could take it away and then move production alone."""

from typing import Any

from django.utils.translation import gettext as _

from personas.actors import SYSTEM, Actor
from personas.agents.models import ReleasePolicy
from personas.errors import Invalid
from personas.models import Agent, Membership, Record
from personas.roles import Permission, may


def refuse_lifting_review(record: Record, values: dict[str, Any], by: Actor) -> None:
    """Only somebody who may approve says that nobody has to."""
    if not isinstance(record, Agent) or record.release_policy != ReleasePolicy.REVIEWED:
        return
    wanted = values.get("release_policy", ReleasePolicy.REVIEWED)
    if wanted != ReleasePolicy.REVIEWED and not may_approve(record, by):
        raise Invalid.on("release_policy", _("Lifting the review takes an owner, an admin or a reviewer."))


def may_approve(agent: Agent, by: Actor) -> bool:
    if by == SYSTEM:
        return True
    rows = Membership.objects.in_workspace(agent.workspace_id).filter(user=by.user) if by.user else None
    role = rows.values_list("role", flat=True).first() if rows is not None else None
    return may(role or "", Permission.APPROVE)
