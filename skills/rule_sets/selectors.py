"""Queries for the rule sets of a workspace: built-in or custom, and the sources that use them."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from django.db.models import QuerySet

from personas.models import Workspace
from skills.discovery.harnesses import FILE_KINDS, HARNESSES, FileKind, Harness
from skills.models import RuleSet, Source
from skills.rule_sets.descriptions import describe_harness_files


@dataclass(frozen=True)
class HarnessRules:
    """The rules of one harness in one workspace, with the sources that use them.

    `rule_set` holds the custom rules of the workspace. If it is None or archived, the built-in rules apply.
    """

    name: str
    rule_set: RuleSet | None = None
    sources: tuple[Source, ...] = ()

    def __str__(self) -> str:
        return self.name

    @property
    def is_custom(self) -> bool:
        return self.rule_set is not None and not self.rule_set.is_archived

    @cached_property
    def harness(self) -> Harness:
        """The rules that apply: custom or built-in."""
        return self.rule_set.as_harness() if self.rule_set and self.is_custom else HARNESSES[self.name]

    @property
    def file_names(self) -> str:
        return describe_harness_files(self.harness)

    @property
    def kinds(self) -> list[FileKind]:
        """The kinds of files that have custom or built-in rules, or that are disabled."""
        kinds = {rule.kind for rule in self.harness.rules} | set(self.harness.off)
        kinds |= {rule.kind for rule in HARNESSES[self.name].rules}
        return [kind for kind in FILE_KINDS if kind in kinds]


def list_rule_sets(workspace: Workspace | int) -> QuerySet[RuleSet]:
    return RuleSet.objects.in_workspace(workspace).order_by("harness")


def find_rule_set(workspace: Workspace, harness: str) -> RuleSet | None:
    """Return the custom rules of the workspace for this harness, even if they are archived."""
    return list_rule_sets(workspace).filter(harness=harness).first()


def list_harness_rules(workspace: Workspace, names: Iterable[str] = HARNESSES) -> list[HarnessRules]:
    """List the rules of the named harnesses, with two queries in total."""
    rule_sets = {row.harness: row for row in list_rule_sets(workspace)}
    sources = list(Source.objects.in_workspace(workspace).filter(archived_at=None).order_by("name", "pk"))
    return [
        HarnessRules(
            name, rule_sets.get(name), tuple([source for source in sources if name in source.harnesses])
        )
        for name in names
    ]
