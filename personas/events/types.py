"""Types of events, each with the JSON Schema of its data.

The data has ids, numbers, digests, slugs and fixed words, never text of records: who receives an event reads
the text with the API, where access is checked and recorded. A new type is one line in `EVENT_TYPES`.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

Schema = dict[str, Any]

ID: Schema = {"type": "integer", "minimum": 1}
NUMBER: Schema = {"type": "integer", "minimum": 0}
SLUG: Schema = {"type": "string", "pattern": "^[a-z0-9]+(?:-[a-z0-9]+)*$", "maxLength": 64}
LABEL: Schema = {"type": "string", "pattern": "^[A-Za-z0-9_-]+$", "maxLength": 40}
DIGEST: Schema = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
WORD: Schema = {"type": "string", "pattern": "^[a-z][a-z_]*$", "maxLength": 40}
TIME: Schema = {
    "type": "string",
    "format": "date-time",
    "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)$",
}
BOOLEAN: Schema = {"type": "boolean"}


def optional(schema: Schema) -> Schema:
    return schema | {"type": [schema["type"], "null"]}


PROMPT = {"agent": SLUG, "channel": SLUG}


class InvalidEvent(ValueError):
    """An event has an unknown type, or its data does not match the schema of the type."""


@dataclass(frozen=True)
class EventData:
    """The fields of the data of some types of events. All are required."""

    title: str
    fields: Mapping[str, Schema]

    @property
    def schema(self) -> Schema:
        return {
            "type": "object",
            "properties": dict(self.fields),
            "required": list(self.fields),
            "additionalProperties": False,
            "title": self.title,
        }

    @cached_property
    def validator(self) -> Draft202012Validator:
        return Draft202012Validator(self.schema)

    @cached_property
    def checks(self) -> Mapping[str, "ValueCheck"]:
        return {name: build_value_check(schema) for name, schema in self.fields.items()}

    def is_plainly_valid(self, data: Mapping[str, Any]) -> bool:
        """Whether the data has these fields with ordinary values.

        This takes a fraction of the time of the validator, which decides about all other data.
        """
        return data.keys() == self.checks.keys() and all(
            check(data[name]) for name, check in self.checks.items()
        )


ValueCheck = Callable[[Any], bool]


def build_value_check(schema: Schema) -> ValueCheck:
    """Return a function that accepts only values that match the schema. It may reject some that do."""
    types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    accepts_null = "null" in types
    if "integer" in types:
        minimum = schema["minimum"]
        return lambda value: (type(value) is int and value >= minimum) or (accepts_null and value is None)
    if "string" in types:
        find, longest = re.compile(schema["pattern"]).search, schema.get("maxLength", math.inf)
        return lambda value: (
            (type(value) is str and len(value) <= longest and find(value) is not None)
            or (accepts_null and value is None)
        )
    return lambda _: False


@dataclass(frozen=True)
class EventType:
    """A type of event: what it reports, and its data."""

    name: str
    description: str
    data: EventData

    def check_data(self, data: Mapping[str, Any]) -> None:
        """Raise InvalidEvent unless the data matches the schema."""
        if self.data.is_plainly_valid(data):
            return
        if error := best_match(self.data.validator.iter_errors(data)):
            raise InvalidEvent(f"{self.name}: {error.json_path}: {error.message}")


VERSION = EventData("VersionEventData", PROMPT | {"version_id": ID, "number": ID, "digest": DIGEST})
LABEL_MOVE = EventData(
    "LabelEventData",
    PROMPT
    | {
        "label": LABEL,
        "number": optional(ID),
        "previous_number": optional(ID),
        "version_id": optional(ID),
        "reason": WORD,
    },
)
RELEASE = EventData(
    "ReleaseEventData", {"release_id": ID, "number": ID, "label": LABEL, "is_override": BOOLEAN}
)
DISCUSSION = {"release_id": ID, "number": ID, "label": LABEL}
RELEASE_REVIEW = EventData(
    "ReleaseReviewEventData", DISCUSSION | {"member_ids": {"type": "array", "items": ID, "minItems": 1}}
)
RELEASE_COMMENT = EventData("ReleaseCommentEventData", DISCUSSION | {"comment_id": ID})
VERSION_COMMENT = EventData(
    "VersionCommentEventData",
    PROMPT | {"prompt_id": ID, "version_id": ID, "number": ID, "line": ID, "comment_id": ID},
)
REVIEW_LIFT = EventData("ReviewLiftEventData", {"agent": SLUG})
DEFAULT_POLICY = EventData("DefaultPolicyEventData", {"default_release_policy": WORD})
RECORD = EventData("RecordEventData", {"kind": WORD, "id": ID, "revision": NUMBER, "action": WORD})
MEMORY = EventData("MemoryEventData", {"memory_id": ID, "revision": ID})
MEMORY_COMMENT = EventData("MemoryCommentEventData", {"memory_id": ID, "comment_id": ID})
FILE = EventData(
    "FileEventData",
    {"file_id": ID, "source_id": ID, "kind": WORD, "status": WORD, "digest": optional(DIGEST)},
)
BUILD = EventData("BuildEventData", PROMPT)
KEY = EventData("KeyEventData", {"key_id": ID, "kind": WORD, "expires_at": TIME, "new_key_id": optional(ID)})
CHECKPOINT = EventData("CheckpointEventData", {"sequence": ID, "digest": DIGEST})
BOT = EventData(
    "BotEventData",
    PROMPT | {"label": LABEL, "key_id": ID, "number": ID, "current_number": optional(ID), "ledger_id": ID},
)
DRIFT = EventData(
    "DriftEventData",
    PROMPT
    | {
        "label": LABEL,
        "key_id": ID,
        "report_id": ID,
        "status": WORD,
        "previous_status": WORD,
        "number": optional(ID),
        "current_number": optional(ID),
    },
)
WEBHOOK = EventData("WebhookEventData", {"endpoint_id": ID, "status": WORD})
VERIFICATION = EventData("VerificationEventData", {"verification_id": ID, "count": NUMBER})


def index_types(types: Iterable[EventType]) -> dict[str, EventType]:
    return {one.name: one for one in types}


EVENT_TYPES: dict[str, EventType] = index_types(
    [
        EventType(
            "version.created",
            "A build created a version of a prompt.",
            VERSION,
        ),
        EventType("version.commented", "A member commented on a line of a version.", VERSION_COMMENT),
        EventType(
            "label.moved",
            "A label moved to another version. `number` is null if the label was removed.",
            LABEL_MOVE,
        ),
        EventType("release.requested", "A release was requested.", RELEASE),
        EventType("release.review_requested", "Members were asked for a review.", RELEASE_REVIEW),
        EventType("release.commented", "A member commented on a release.", RELEASE_COMMENT),
        EventType("release.changes_requested", "A reviewer requested changes.", RELEASE_COMMENT),
        EventType("release.approved", "A reviewer approved a release.", RELEASE),
        EventType("release.rejected", "A reviewer rejected a release.", RELEASE),
        EventType("release.withdrawn", "A release was withdrawn.", RELEASE),
        EventType("release.voided", "A release was voided because one of its prompts changed.", RELEASE),
        EventType(
            "release.released", "A release was published: its label moved on all its prompts.", RELEASE
        ),
        EventType(
            "agent.review_lifted",
            "The release policy of an agent was changed from reviewed to automatic.",
            REVIEW_LIFT,
        ),
        EventType(
            "workspace.review_lifted",
            "The release policy for new agents was changed from reviewed to automatic.",
            DEFAULT_POLICY,
        ),
        EventType(
            "record.changed",
            "A record was created, edited, archived or restored. `action` is the action in the audit log.",
            RECORD,
        ),
        EventType("memory.proposed", "A bot proposed a memory.", MEMORY),
        EventType("memory.approved", "A proposed memory was approved.", MEMORY),
        EventType("memory.rejected", "A proposed memory was rejected.", MEMORY),
        EventType("memory.commented", "A member commented on a memory.", MEMORY_COMMENT),
        EventType("context_file.changed", "The text of a context file that prompts use changed.", FILE),
        EventType("context_file.waiting", "A context file in the inbox needs review.", FILE),
        EventType("skill.trusted", "The content of a discovered skill was approved.", FILE),
        EventType("build.failed", "A prompt could not be built. It keeps its latest version.", BUILD),
        EventType(
            "bot.outdated",
            (
                "The last fetch of a bot was over an hour ago, and its label has moved to another "
                "version since."
            ),
            BOT,
        ),
        EventType(
            "bot.drifted",
            "A report changed the status of a bot: `same`, `outdated`, or `never_released` if the loaded "
            "text matches no version.",
            DRIFT,
        ),
        EventType("key.created", "An API key was created.", KEY),
        EventType("key.rotated", "An API key was replaced by another one.", KEY),
        EventType("key.expiring", "An API key expires within seven days.", KEY),
        EventType("key.revoked", "An API key was revoked.", KEY),
        EventType("checkpoint.signed", "A checkpoint was signed.", CHECKPOINT),
        EventType(
            "chain.broken",
            "A verification found rows that do not match their hash chain.",
            VERIFICATION,
        ),
        EventType("webhook.test", "A member sent a test event. Only its endpoint gets it.", WEBHOOK),
        EventType(
            "webhook.disabled", "An endpoint was disabled because it kept failing or returned 410.", WEBHOOK
        ),
    ]
)


def get_event_type(name: str) -> EventType:
    if name not in EVENT_TYPES:
        raise InvalidEvent(f"“{name}” is not an event type.")
    return EVENT_TYPES[name]
