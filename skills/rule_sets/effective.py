"""The effective discovery rules of a workspace.

For each harness these are the custom rules of the workspace if there are any, otherwise the built-in rules.
"""

from collections.abc import Iterable

from personas.models import Workspace
from skills.discovery.harnesses import HARNESSES, Harness
from skills.models import RuleSet


def get_custom_harnesses(workspace: Workspace | int) -> dict[str, Harness]:
    rows = RuleSet.objects.in_workspace(workspace).filter(archived_at=None)
    return {row.harness: row.as_harness() for row in rows}


def list_effective_harnesses(workspace: Workspace | int, names: Iterable[str]) -> list[Harness]:
    """List the effective rules of the named harnesses."""
    rules = HARNESSES | get_custom_harnesses(workspace)
    return [rules[name] for name in names]
