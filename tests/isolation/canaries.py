"""Canary values: one unique string per text field and workspace, so that a leak names its origin."""

import re
import secrets
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

from django.apps import apps
from django.db import models

from personas.limits.storage_quota import PERSON_BYTES
from personas.models import DailyUsage, SecurityEvent, User, Workspace, WorkspaceOwned

OUR_APPS = ("personas", "skills", "prompts")
# Letters and digits only: valid in slugs, tool names, email addresses and prose, and unchanged by escaping.
SHAPE = re.compile(r"cnry[0-9a-f]{12}")
# Fields with a stricter format.
FORMATS = {
    "email": "{0}@example.com",
    "extra": "{0}: {0}",
    "location": "/{0}",
    "url": "https://{0}.example.com/",
    "pulled_skills_folder": "/{0}",
    "parameters": '{{"title": "{0}"}}',
    "sample_data": '{{"title": "{0}"}}',
}
# Text columns with values from a fixed set, which contain no tenant data.
FIXED_VALUES = {
    "Agent.layout": "one of our layouts",
    "User.password": "a hash, never shown",
    "User.timezone": "a known timezone",
    "UserProfile.timezone": "a known timezone",
    "Revision.kind": "the kind of a record",
    "Source.harnesses": "names of our rule sets",
    "AgentContext.harness": "the name of a rule set",
    "RuleSet.harness": "the name of a rule set",
    "PromptSettings.section_limits": "names of sections, and numbers",
    "PromptVersion.layout": "one of our layouts",
    "PromptVersion.sizes": "names of sections, and numbers",
    "PromptVersion.lockfile": "ids and digests",
    "LabelMove.reason": "one of a few words of ours",
    "LedgerEntry.slots": "the facts of a call, which no page of another call shows",
    "FormDraft.family": "the word of a family of pages",
    "VersionPart.kind": "the kind of a record",
    "Erasure.digests": "digests",
    "RefreshRun.outcome": "states and numbers",
    "Erasure.versions": "ids",
    "SecurityEvent.kind": "one of a few words of ours",
    "DailyUsage.kind": "one of a few words of ours",
    "DailyUsage.subject": "ids, and keyed digests of addresses",
    "WebhookEndpoint.types": "types of events",
    "WebhookEndpoint.agents": "slugs",
    "WebhookEndpoint.channels": "slugs",
    "WebhookEndpoint.labels": "labels",
    "WebhookEndpoint.secret": "encrypted, and shown only once",
    "WebhookEndpoint.previous_secret": "encrypted, and never shown",
    "WebhookEndpoint.private_key": "encrypted, and never shown",
    "Event.type": "one of our types",
    "Event.data": "ids, numbers, digests and slugs",
    "SigningKey.public_key": "a key that anybody may see",
}


@dataclass
class Canaries:
    """All canaries with their workspace and field."""

    homes: dict[str, str] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)

    def word(self, home: str, place: str) -> str:
        canary = f"cnry{secrets.token_hex(6)}"
        self.homes[canary], self.places[canary] = home, place
        return canary

    def value(self, home: str, model: type[models.Model], name: str) -> Any:
        """A value that contains a canary and is valid for the field."""
        word = self.word(home, f"{model.__name__}.{name}")
        if isinstance(model._meta.get_field(name), models.JSONField):
            return {word: word}
        return FORMATS.get(name, "{0}").format(word)

    def values(self, home: str, model: type[models.Model]) -> dict[str, Any]:
        return {name: self.value(home, model, name) for name in marked_fields(model)}

    def foreign_in(self, text: str, own: Collection[str], sent: str) -> list[str]:
        """The canaries of other workspaces in a text, except for those that the requester sent."""
        canaries = set(SHAPE.findall(text)) - set(SHAPE.findall(sent))
        return sorted(canary for canary in canaries if self.homes.get(canary, "") not in own)

    def describe(self, word: str) -> str:
        return f"{self.places[word]} of {self.homes[word]}"


def our_models() -> list[type[models.Model]]:
    """The concrete models of the product."""
    return [model for label in OUR_APPS for model in apps.get_app_config(label).get_models()]


def tenant_models() -> list[type[WorkspaceOwned]]:
    return [model for model in our_models() if issubclass(model, WorkspaceOwned)]


# Columns with these names contain digests and the like in every table: no tenant data.
DIGESTS = {
    *(
        "digest",
        "plain_digest",
        "salt",
        "text_digest",
        "served_digest",
        "trusted_digest",
        "hash",
        "previous_hash",
        "last_hash",
    ),
    *("last_move_hash", "seal", "rows", "report", "tools", "compiler", "key_id", "signature", "prefix"),
}


def marked_fields(model: type[models.Model]) -> list[str]:
    """The text columns that can contain tenant data."""
    kinds = (models.CharField, models.TextField, models.JSONField)
    fields = [one for one in model._meta.concrete_fields if isinstance(one, kinds) and not one.choices]
    named = [one.name for one in fields if one.name not in DIGESTS]
    return [name for name in named if f"{model.__name__}.{name}" not in FIXED_VALUES]


def find_unmarked_fields(workspaces: Iterable[Workspace]) -> list[str]:
    """Find text fields without a canary in a workspace: a leak of their values would not be detected."""
    findings = []
    for workspace in workspaces:
        for model in our_models():
            rows = list(rows_of(model, workspace))
            marks = Counter(
                name for row in rows for name in marked_fields(model) if SHAPE.search(str(getattr(row, name)))
            )
            findings += [
                f"{model.__name__}.{name} has no canary in {workspace}: seed it in tests/isolation/cast.py"
                for name in marked_fields(model)
                if not marks[name]
            ]
    return findings


def rows_of(model: type[models.Model], workspace: Workspace) -> Iterable[models.Model]:
    """All rows of a workspace, including the workspace and its users."""
    if issubclass(model, WorkspaceOwned):
        return model.unscoped.filter(workspace=workspace).order_by("pk")
    if model is Workspace:
        return Workspace.objects.filter(pk=workspace.pk)
    if model is User:
        return User.objects.filter(memberships__workspace=workspace).order_by("pk")
    if model is SecurityEvent:
        return SecurityEvent.objects.filter(user__memberships__workspace=workspace).order_by("pk")
    if model is DailyUsage:
        # Counters without text of tenants; these are of the person that the workspace counts for.
        person = str(workspace.counted_for_id)
        return DailyUsage.objects.filter(kind=PERSON_BYTES, subject=person).order_by("pk")
    raise TypeError(f"Which workspace owns a row of {model.__name__}? Add it in tests/isolation/canaries.py.")
