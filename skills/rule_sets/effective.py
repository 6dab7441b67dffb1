"""The effective discovery rules of a workspace.

For each harness these are the custom rules of the workspace if there are any, otherwise the built-in rules.
"""

from personas.models import Workspace
from skills.discovery.harnesses import HARNESSES, Harness
from skills.models import RuleSet


def get_effective_harnesses(workspace: Workspace | int) -> dict[str, Harness]:
    """Return the effective rules by harness."""
    rows = RuleSet.objects.in_workspace(workspace).filter(archived_at=None)
    return HARNESSES | {row.harness: row.as_harness() for row in rows}
