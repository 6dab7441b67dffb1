"""Model of the discovery rules that a workspace has customized."""

from typing import Any

from django.core.exceptions import ValidationError
from django.db import models
from django.utils.translation import gettext as _

from core.db.fields import LineField
from personas.models import Record
from skills.discovery.harness_json import InvalidHarness, parse_harness
from skills.discovery.harnesses import HARNESSES, Harness


class RuleSet(Record):
    """Discovery rules that replace the built-in rules of the same harness in this workspace."""

    kind = "rule_set"
    content = ("rules",)

    harness = LineField(max_length=40)
    rules = models.JSONField()

    class Meta(Record.Meta):
        constraints = [models.UniqueConstraint(fields=["workspace", "harness"], name="rule_set_once")]

    def __str__(self) -> str:
        return self.harness

    def clean(self) -> None:
        super().clean()
        if self.harness not in HARNESSES:
            raise ValidationError({"harness": _("This harness does not exist.")})
        try:
            name = parse_harness(self.rules).name
        except InvalidHarness as error:
            messages = [f"{pointer or '/'}: {message}" for pointer, message in error.problems]
            raise ValidationError({"rules": messages}) from error
        if name != self.harness:
            raise ValidationError({"rules": "/name: " + _("Expected “%(name)s”.") % {"name": self.harness}})

    def as_harness(self) -> Harness:
        return parse_harness(self.rules)

    def agent_ids(self) -> list[int]:
        from skills.sources.models import AgentContext, Source

        choices = AgentContext.objects.in_workspace(self.workspace_id).filter(harness=self.harness)
        sources = Source.objects.in_workspace(self.workspace_id).filter(
            pk__in=choices.values("uses__source_id"), archived_at=None
        )
        agent_ids: set[int] = set()
        for source in sources:
            agent_ids |= set(source.agent_ids())
        return sorted(agent_ids)

    def values_from_snapshot(self, data: dict[str, Any]) -> dict[str, Any]:
        return {"rules": data["rules"]}
