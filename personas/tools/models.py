"""Model of tools that agents can call."""

import json
from typing import Any

from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator
from django.db import models
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from core.db.fields import LineField, ProseField
from personas.records.models import Record
from personas.tenancy.fields import TenantForeignKey
from personas.workspaces.models import validate_not_reserved

validate_tool_name = RegexValidator(
    r"\A[A-Za-z_][A-Za-z0-9_.-]*\Z",
    gettext_lazy("Start with a letter or underscore, then letters, digits, dots, hyphens or underscores."),
    code="tool_name",
)


class Tool(Record):
    """A tool as a prompt describes it: a description for the model, and a JSON schema or signature.

    A tool with an `agent` calls that agent. Its empty fields are then derived from the agent when a prompt is
    built (prompts/publishing/inputs/agent_tools.py).
    """

    kind = "tool"
    content = ("name", "agent", "description", "snippet", "guidelines", "parameters", "signature")

    name = LineField(max_length=64, validators=[validate_tool_name, validate_not_reserved])
    # Without an index: queries start from the links of a workspace's agents, and agents are not deleted.
    agent = TenantForeignKey(
        "personas.Agent",
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="as_tools",
        db_index=False,
    )
    description = ProseField(max_length=4_000, blank=True)
    snippet = LineField(max_length=300, blank=True)
    guidelines = ProseField(max_length=4_000, blank=True, help_text=gettext_lazy("One guideline per line."))
    # A JSON schema. Stored as text, because jsonb reorders keys and the prompt must keep the written order.
    parameters = ProseField(max_length=20_000, blank=True)
    signature = LineField(max_length=1_000, blank=True)

    class Meta(Record.Meta):
        constraints = [models.UniqueConstraint(fields=["workspace", "name"], name="tool_name_once")]

    def __str__(self) -> str:
        return self.name

    def set_values(self, values: dict[str, Any]) -> None:
        """Set the content fields, and collapse the whitespace of the snippet so that it is one line.

        Without a name, a tool that calls an agent gets its name from the slug.
        """
        super().set_values(values)
        self.snippet = " ".join(self.snippet.split())
        if not self.name and self.agent is not None:
            self.name = get_agent_tool_name(self.agent.slug)

    def clean(self) -> None:
        super().clean()
        if self.pk and self.agent_id and self.agent_links.filter(agent=self.agent_id).exists():
            raise ValidationError(
                {
                    "agent": _(
                        "This agent uses this tool, and an agent cannot call itself. Choose another agent."
                    )
                }
            )
        if self.parameters:
            validate_tool_schema(self.parameters)

    def guideline_lines(self) -> list[str]:
        return [line.strip() for line in self.guidelines.splitlines() if line.strip()]

    def query_agent_ids(self) -> "models.QuerySet[Any, int]":
        return self.agent_links.filter(agent__archived_at=None).values_list("agent_id", flat=True)


def get_agent_tool_name(slug: str) -> str:
    """Return the default name of a tool that calls the agent with this slug: `email_agent`."""
    name = slug.replace("-", "_")
    return f"_{name}" if name[:1].isdigit() else name


def validate_tool_schema(text: str) -> None:
    """Require a JSON object: model providers reject anything else as a tool schema."""
    try:
        schema = json.loads(text)
    except RecursionError:
        raise ValidationError({"parameters": _("This JSON is nested too deeply.")}) from None
    except ValueError as error:
        raise ValidationError(
            {"parameters": _("This is not valid JSON: %(error)s.") % {"error": error}}
        ) from None
    if not isinstance(schema, dict):
        raise ValidationError({"parameters": _("A JSON Schema must be an object: { … }.")})
