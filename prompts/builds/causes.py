"""Notes why prompts must be built again, for whoever builds them next."""

from collections.abc import Iterable
from typing import Any

from personas.actors import Actor
from personas.models import Workspace
from prompts.models import BuildCause

REBUILD_CAUSE, COMPILER_CAUSE = "rebuild", "compiler"


def add_build_causes(workspace: Workspace | int, agent_ids: Iterable[int], told: dict[str, Any]) -> None:
    """One row per agent, in the caller's transaction; a build takes them in, and the sweep finds the rest."""
    workspace_id = workspace if isinstance(workspace, int) else workspace.pk
    BuildCause.objects.in_workspace(workspace_id).bulk_create(
        [BuildCause(workspace_id=workspace_id, agent_id=pk, cause=told) for pk in sorted(set(agent_ids))]
    )


def request_rebuild(workspace: Workspace | int, agent_ids: Iterable[int], *, by: Actor) -> None:
    """For somebody who wants them built although nothing has changed."""
    add_build_causes(workspace, agent_ids, {"kind": REBUILD_CAUSE, "by": by.label})
