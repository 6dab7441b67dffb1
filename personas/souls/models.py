"""Model of souls: personalities that agents share."""

from typing import Any

from django.db import models

from core.db.compiled_query import BoundQuery
from core.db.fields import ProseField
from personas.agents.models import get_agents_query, list_agent_ids_using
from personas.records.models import Named


class Soul(Named):
    """A personality in Markdown, shared by any number of agents; imported from and exported to SOUL.md."""

    kind = "soul"
    content = ("name", "text")
    usage_fields = frozenset()

    text = ProseField(max_length=60_000, blank=True)

    def query_agent_ids(self) -> "models.QuerySet[Any, int]":
        return list_agent_ids_using("soul", self.workspace_id, self.pk)

    def bind_own_agent_ids(self) -> BoundQuery:
        return get_agents_query("soul").bind(self.workspace_id, self.pk)
