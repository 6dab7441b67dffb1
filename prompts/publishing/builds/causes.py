"""Record build causes: why an agent's prompts must be rebuilt."""

from collections.abc import Iterable
from typing import Any

from personas.actors import Actor
from personas.models import Workspace
from prompts.models import BuildCause

REBUILD_CAUSE, COMPILER_CAUSE = "rebuild", "compiler"


def add_build_causes(workspace: Workspace | int, agent_ids: Iterable[int], cause: dict[str, Any]) -> None:
    """Insert one build cause per agent, in the caller's transaction.

    The next build of an agent deletes its causes. The periodic sweep rebuilds agents whose causes remain.
    """
    workspace_id = workspace if isinstance(workspace, int) else workspace.pk
    BuildCause.objects.insert(
        [BuildCause(workspace_id=workspace_id, agent_id=pk, cause=cause) for pk in sorted(set(agent_ids))]
    )


def request_rebuild(workspace: Workspace | int, agent_ids: Iterable[int], *, by: Actor) -> None:
    """Record that a user requested a rebuild, although no record has changed."""
    add_build_causes(workspace, agent_ids, {"kind": REBUILD_CAUSE, "by": by.label})
