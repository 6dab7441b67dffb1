"""The rules a workspace works by: its own copy where it has one, else the built-in."""

from collections.abc import Iterable

from personas.models import Workspace
from skills.discovery.harnesses import HARNESSES, Harness
from skills.models import RuleSet


def own_rule_sets(workspace: Workspace | int) -> dict[str, Harness]:
    rows = RuleSet.objects.in_workspace(workspace).filter(archived_at=None)
    return {row.harness: row.as_harness() for row in rows}


def harnesses_of(workspace: Workspace | int, names: Iterable[str]) -> list[Harness]:
    """The named rule sets, as this workspace has them."""
    rules = HARNESSES | own_rule_sets(workspace)
    return [rules[name] for name in names]
