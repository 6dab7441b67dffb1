"""Model of channels (Telegram, Slack, web, …) and the built-in ones."""

from typing import Any

from django.db import models

from core.db.fields import LineField, ProseField
from personas.records.models import Record
from personas.workspaces.models import slug_validator, validate_not_reserved

# Channels that every new workspace starts with; members can add others.
BUILT_IN_CHANNELS = {
    "telegram": "Telegram",
    "slack": "Slack",
    "discord": "Discord",
    "whatsapp": "WhatsApp",
    "email": "Email",
    "web": "Web",
    "cli": "Command line",
    "api": "API",
}


class Channel(Record):
    """A medium on which agents communicate, with formatting rules for the prompt."""

    kind = "channel"
    content = ("name", "formatting")

    slug = models.SlugField(max_length=64, db_index=False, validators=[slug_validator, validate_not_reserved])
    name = LineField(max_length=80)
    formatting = ProseField(max_length=8_000, blank=True)

    class Meta(Record.Meta):
        constraints = [models.UniqueConstraint(fields=["workspace", "slug"], name="channel_slug_once")]

    def __str__(self) -> str:
        return self.name

    @property
    def is_built_in(self) -> bool:
        return self.slug in BUILT_IN_CHANNELS

    def query_agent_ids(self) -> "models.QuerySet[Any, int]":
        return self.agent_links.filter(agent__archived_at=None).values_list("agent_id", flat=True)


TELEGRAM_FORMATTING = """\
Telegram shows a small part of Markdown. Keep to it:
- *bold* with single asterisks, _italic_ with underscores, `code` in backticks, longer code in a fenced block.
- Links as [words](address). No headings, tables, footnotes or nested lists: they arrive as raw signs.
- A list is a few short lines that each begin with a dash.
- Stay under 4,000 characters in one message; put the point into the first line, for a phone.\
"""

BUILT_IN_FORMATTING = {"telegram": TELEGRAM_FORMATTING}
