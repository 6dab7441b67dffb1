"""REST resource for replay: the exact bytes of a fetch or of a point in time, and the evidence for them.

Only for keys that act for a user, because a replay writes no ledger row. A bot that needs the text of a past
time fetches the prompt with the parameter `at`; that fetch is recorded in the ledger.
"""

from datetime import UTC
from typing import Any

from django.urls import URLPattern
from django.utils import timezone

from personas.api.exception_handler import validation_problem
from personas.api.key_limits import Touches
from personas.api.operations import ApiRequest, Operation
from personas.api.problems import FieldError, ProblemError
from personas.api.responses import ApiResponse, datetime_json, json_response
from personas.api.schema import (
    Schema,
    any_object_schema,
    datetime_schema,
    digest_schema,
    nullable_schema,
    object_schema,
    slug_schema,
)
from personas.api.views import endpoint
from prompts.api_lookup import check_label_scope, get_visible_prompt
from prompts.evidence.ledger.api import LEDGER_ROW_SCHEMA, get_visible_entry, ledger_entry_json
from prompts.evidence.replay.evidence import build_evidence
from prompts.evidence.replay.services import Replay, build_replay, replay_prompt
from prompts.models import PRODUCTION
from prompts.publishing.provenance.api import SPAN_SCHEMA, provenance_spans_json
from prompts.publishing.versions.serializers import TEXT_SCHEMA, VERSION_REF_SCHEMA, version_ref_json

REPLAY_SCHEMA = object_schema(
    {
        "agent": TEXT_SCHEMA,
        "channel": TEXT_SCHEMA,
        "label": TEXT_SCHEMA,
        "at": datetime_schema(),
        **VERSION_REF_SCHEMA["properties"],
        "served_digest": digest_schema(description="SHA-256 of the text below in UTF-8, computed now."),
        "salt": {
            "type": "string",
            "description": "Salt of the recorded digest.",
        },
        "recorded_digest": digest_schema(
            description="The recorded digest: SHA-256 of `dramatis:salted:v1`, the salt and "
            "`served_digest`, each on its own line. If it does not match, the text is "
            "not returned."
        ),
        "text": TEXT_SCHEMA,
        "tools": nullable_schema(
            {
                "type": "array",
                "items": any_object_schema(),
                "description": "The tool definitions that were sent with the text. Null if erased.",
            }
        ),
        "spans": {"type": "array", "items": SPAN_SCHEMA},
        "ledger_entry": nullable_schema(LEDGER_ROW_SCHEMA),
        "moved_at": nullable_schema(datetime_schema(description="When the label moved to this version.")),
    },
    title="Replay",
)
EVIDENCE_SCHEMA: Schema = any_object_schema(description="A bundle that can be verified without this server.")
REPLAY_PROBLEMS = {410: "erased", 409: "refused"}
REPLAY_PARAMETERS: dict[str, Schema] = {
    "agent": slug_schema(description="The slug of an agent."),
    "channel": slug_schema(description="The slug of a channel."),
    "label": slug_schema(maxLength=40, default=PRODUCTION),
    "at": datetime_schema(description="A time in the past."),
}
REQUIRED_REPLAY_PARAMETERS = ("agent", "channel", "at")


def replay_row_endpoint(call: ApiRequest, key: int) -> ApiResponse:
    return build_replay_response(call, build_replay(get_visible_entry(call, key)))


def replay_time_endpoint(call: ApiRequest) -> ApiResponse:
    return build_replay_response(call, get_requested_replay(call))


def time_evidence_endpoint(call: ApiRequest) -> ApiResponse:
    return json_response(build_evidence(get_requested_replay(call)))


def get_requested_replay(call: ApiRequest) -> Replay:
    query = call.query
    if query["at"] > timezone.now():
        error = FieldError("Must be in the past.", parameter="at")
        raise ProblemError(validation_problem([error]))
    check_label_scope(call, query["label"])
    prompt = get_visible_prompt(call, query["agent"], query["channel"])
    # Convert to UTC: ISO 8601 allows wider offsets than databases accept.
    return replay_prompt(prompt, query["at"].astimezone(UTC), query["label"])


def evidence_endpoint(call: ApiRequest, key: int) -> ApiResponse:
    return json_response(build_evidence(build_replay(get_visible_entry(call, key))))


def build_replay_response(call: ApiRequest, replay: Replay) -> ApiResponse:
    """Serialise the replay; raise unless its bytes match the recorded digest."""
    replay.require_exact()
    body: dict[str, Any] = {
        "agent": replay.prompt.agent.slug,
        "channel": replay.prompt.channel.slug,
        "label": replay.label,
        "at": datetime_json(replay.at),
        **version_ref_json(replay.version),
        "served_digest": replay.digest,
        "salt": replay.salt,
        "recorded_digest": replay.recorded_digest,
        "text": replay.text,
        "tools": replay.tools,
        "spans": provenance_spans_json(call.workspace, replay.segments),
        "ledger_entry": replay.entry and ledger_entry_json(replay.entry),
        "moved_at": replay.move and datetime_json(replay.move.at),
    }
    return json_response(body)


COMMON_OPTIONS: dict[str, Any] = {
    "touches": Touches.LABEL,
    "tag": "ledger",
    "budget": "render",
    "refusals": REPLAY_PROBLEMS,
}
urlpatterns: list[URLPattern] = [
    endpoint(
        "ledger/<int:id>/replay",
        "ledger-replay",
        get=Operation(
            replay_row_endpoint,
            "Replay the exact text of a ledger entry",
            operation_id="replayLedgerEntry",
            answer=REPLAY_SCHEMA,
            **COMMON_OPTIONS,
        ),
    ),
    endpoint(
        "ledger/<int:id>/evidence",
        "ledger-evidence",
        get=Operation(
            evidence_endpoint,
            "Get the evidence for a ledger entry",
            operation_id="getLedgerEvidence",
            answer=EVIDENCE_SCHEMA,
            **COMMON_OPTIONS,
        ),
    ),
    endpoint(
        "replay",
        "replay",
        get=Operation(
            replay_time_endpoint,
            "Replay a prompt at a time in the past",
            operation_id="replayPrompt",
            answer=REPLAY_SCHEMA,
            query=REPLAY_PARAMETERS,
            required_params=REQUIRED_REPLAY_PARAMETERS,
            **COMMON_OPTIONS | {"refusals": {**REPLAY_PROBLEMS, 404: "not_found"}},
        ),
    ),
    endpoint(
        "replay/evidence",
        "replay-evidence",
        get=Operation(
            time_evidence_endpoint,
            "Get the evidence for a prompt at a time in the past",
            operation_id="getReplayEvidence",
            answer=EVIDENCE_SCHEMA,
            query=REPLAY_PARAMETERS,
            required_params=REQUIRED_REPLAY_PARAMETERS,
            **COMMON_OPTIONS | {"refusals": {**REPLAY_PROBLEMS, 404: "not_found"}},
        ),
    ),
]
