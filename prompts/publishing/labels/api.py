"""REST resource for labels: list, read, move, remove, protect and roll back."""

from typing import Any

from django.db.models import QuerySet
from django.urls import URLPattern

from personas.api.etags import NOT_MODIFIED_RESPONSES, check_etag, check_put_precondition
from personas.api.exception_handler import RecordNotFound, validation_problem
from personas.api.key_limits import Touches
from personas.api.operations import ApiRequest, Operation
from personas.api.pagination import (
    PAGINATION_PARAMS,
    complete_list_response,
    page_response,
    paginate_rows,
)
from personas.api.problems import FieldError, Problem, ProblemError
from personas.api.responses import ApiResponse, datetime_json, json_response, no_content_response
from personas.api.schema import (
    Schema,
    boolean_schema,
    datetime_schema,
    digest_schema,
    integer_schema,
    line_schema,
    nullable_schema,
    object_schema,
    page_schema,
)
from personas.api.views import endpoint
from personas.errors import InvalidInput
from personas.roles import Permission
from prompts.api_lookup import can_see_label, check_label_scope, get_named_version, get_visible_prompt
from prompts.errors import LabelConflict, NotAllowed
from prompts.models import PRODUCTION, AgentPrompt, LabelMove, LabelRule, PromptLabel
from prompts.publishing.labels.move_queries import find_prompt_label
from prompts.publishing.labels.services import (
    move_label,
    protect_label,
    remove_label,
    roll_back,
    unpin_production,
    validate_label_name,
)
from prompts.publishing.releases.selectors import list_label_usage
from prompts.publishing.versions.selectors import get_prompt_labels, list_heavy_columns
from prompts.publishing.versions.serializers import (
    TEXT_SCHEMA,
    VERSION_REF_SCHEMA,
    label_json,
    version_ref_json,
)

LABEL_USAGE_SCHEMA = object_schema(
    {"name": TEXT_SCHEMA, "prompts": integer_schema(), "is_protected": boolean_schema()}, title="Label"
)
PROMPT_LABEL_SCHEMA = object_schema(
    {
        "name": TEXT_SCHEMA,
        "version": integer_schema(1),
        "digest": digest_schema(),
        "moved_at": datetime_schema(),
        "etag": TEXT_SCHEMA,
    },
    title="PromptLabel",
)
LABEL_MOVE_SCHEMA = object_schema(
    {
        "sequence": integer_schema(1),
        "label": TEXT_SCHEMA,
        "version": nullable_schema(integer_schema(1)),
        "digest": nullable_schema(digest_schema()),
        "previous": nullable_schema(VERSION_REF_SCHEMA),
        "reason": TEXT_SCHEMA,
        "note": TEXT_SCHEMA,
        "release": nullable_schema(integer_schema(1)),
        "author": TEXT_SCHEMA,
        "moved_at": datetime_schema(),
        "hash": digest_schema(),
        "previous_hash": TEXT_SCHEMA,
    },
    title="LabelMove",
)
VERSION_KEY_SCHEMA: Schema = {
    "anyOf": [integer_schema(1, 2**31 - 1), digest_schema()],
    "description": "A version of this prompt by its number or digest.",
}
NOTE_SCHEMA = line_schema(500, description="The reason, shown in the history of the label.")
MOVE_REQUEST_SCHEMA = object_schema(
    {
        "version": VERSION_KEY_SCHEMA,
        "expected": nullable_schema(VERSION_KEY_SCHEMA)
        | {
            "description": (
                "The version that you expect the label to point to, or null for none. "
                "Alternatively, send If-Match."
            )
        },
        "note": NOTE_SCHEMA,
    },
    required=["version"],
    title="LabelTarget",
)
REQUIRED_NOTE_SCHEMA = line_schema(500, least=1, description="The reason, shown in the history.")
ROLLBACK_REQUEST_SCHEMA = object_schema(
    {"note": REQUIRED_NOTE_SCHEMA, "to": VERSION_KEY_SCHEMA}, required=["note"], title="LabelRollback"
)
EDIT_PROBLEMS = {409: "refused", 412: "precondition_failed", 428: "precondition_required"}


# --- labels of the workspace ---------------------------------------------------------------------------


def index(call: ApiRequest) -> ApiResponse:
    return complete_list_response([label_usage_json(label) for label in list_label_usage(call.workspace)])


def label_usage_json(label: Any) -> dict[str, Any]:
    return {"name": label.name, "prompts": label.prompts, "is_protected": label.is_protected}


def protect_label_endpoint(call: ApiRequest, label: str) -> ApiResponse:
    """Protect or unprotect a label. Only owners may move a protected label."""
    require_label_parameter(label)
    rule: LabelRule = protect_label(call.workspace, label, call.body["is_protected"], by=call.actor)
    labels = PromptLabel.objects.in_workspace(call.workspace).filter(name=label)
    return json_response({"name": label, "prompts": labels.count(), "is_protected": rule.is_protected})


# --- labels of a prompt --------------------------------------------------------------------------------


def require_label_parameter(label: str) -> None:
    """Raise 422 that names the parameter of the path, if it is not the name of a label."""
    try:
        validate_label_name(label)
    except InvalidInput as error:
        errors = [FieldError(message, parameter="label") for message in error.errors["label"]]
        raise ProblemError(validation_problem(errors)) from None


def list_prompt_labels(call: ApiRequest, agent: str, channel: str) -> ApiResponse:
    prompt = get_visible_prompt(call, agent, channel)
    labels = get_prompt_labels(prompt).defer(*list_heavy_columns("version"))
    return complete_list_response(
        [prompt_label_json(label) for label in labels if can_see_label(call.caller, label.name)]
    )


def label_detail(call: ApiRequest, agent: str, channel: str, label: str) -> ApiResponse:
    prompt = get_visible_prompt(call, agent, channel)
    check_label_scope(call, label)
    return build_label_response(prompt, label)


def move_label_endpoint(call: ApiRequest, agent: str, channel: str, label: str) -> ApiResponse:
    prompt = get_visible_prompt(call, agent, channel)
    check_label_scope(call, label)
    if label == PRODUCTION:
        raise NotAllowed("Production can only be moved by builds, releases and rollbacks.")
    require_label_parameter(label)
    version = get_named_version(prompt, call.body["version"], "/version")
    expected, note = get_expected_version_id(call, prompt, label), call.body.get("note", "")
    status = 201 if find_prompt_label(prompt, label) is None else 200
    try:
        move_label(prompt, label, version, expected=expected, by=call.actor, note=note)
    except LabelConflict as error:
        raise ProblemError(Problem(412, "precondition_failed", error.message)) from error
    return build_label_response(prompt, label, status)


def get_expected_version_id(call: ApiRequest, prompt: AgentPrompt, label: str) -> int | None:
    """Return the id of the version that the client expects the label to point to; None for no label.

    The client states it in the body field `expected` or in the headers If-Match and If-None-Match.
    """
    current = find_prompt_label(prompt, label)
    if "expected" not in call.body:
        check_put_precondition(call.headers, get_label_etag(current), exists=current is not None)
        return current.version_id if current else None
    expected = call.body["expected"]
    if expected is None or (current and expected == current.version.digest):
        return current.version_id if current and expected else None
    return get_named_version(prompt, expected, "/expected").pk


def remove_label_endpoint(call: ApiRequest, agent: str, channel: str, label: str) -> ApiResponse:
    prompt = get_visible_prompt(call, agent, channel)
    check_label_scope(call, label)
    current = find_prompt_label(prompt, label)
    if current is None:
        raise RecordNotFound(f"This prompt has no label “{label}”.")
    check_etag(get_label_etag(current), call.if_match)
    remove_label(prompt, label, by=call.actor)
    return no_content_response()


def roll_back_endpoint(call: ApiRequest, agent: str, channel: str, label: str) -> ApiResponse:
    prompt = get_visible_prompt(call, agent, channel)
    check_label_scope(call, label)
    to = get_named_version(prompt, call.body["to"], "/to") if "to" in call.body else None
    roll_back([prompt], by=call.actor, note=call.body["note"], label=label, to=to)
    return build_label_response(prompt, label)


def unpin_production_endpoint(call: ApiRequest, agent: str, channel: str) -> ApiResponse:
    prompt = get_visible_prompt(call, agent, channel)
    check_label_scope(call, PRODUCTION)
    unpin_production(prompt, by=call.actor)
    return build_label_response(prompt, PRODUCTION)


def list_label_moves(call: ApiRequest, agent: str, channel: str, label: str) -> ApiResponse:
    prompt = get_visible_prompt(call, agent, channel)
    check_label_scope(call, label)
    rows: QuerySet[LabelMove] = LabelMove.objects.in_workspace(call.workspace).filter(
        prompt=prompt, label=label
    )
    rows = rows.select_related("version", "previous_version", "release")
    rows = rows.defer(*list_heavy_columns("version"), *list_heavy_columns("previous_version"))
    page = paginate_rows(
        rows, limit=call.query["limit"], cursor=call.query.get("cursor", ""), newest_first=True
    )
    return page_response(call, page, [label_move_json(row) for row in page.rows])


# --- serialization -------------------------------------------------------------------------------------


def get_label_etag(label: PromptLabel | None) -> str:
    """Return the ETag of a label: the number of its version, or 0 if the label does not exist."""
    return f'"{label.version.number if label else 0}"'


def build_label_response(prompt: AgentPrompt, name: str, status: int = 200) -> ApiResponse:
    label = find_prompt_label(prompt, name)
    if label is None:
        raise RecordNotFound(f"This prompt has no label “{name}”.")
    return json_response(prompt_label_json(label), status, ETag=get_label_etag(label))


def prompt_label_json(label: PromptLabel) -> dict[str, Any]:
    return {**label_json(label), "etag": get_label_etag(label)}


def label_move_json(row: LabelMove) -> dict[str, Any]:
    return {
        "sequence": row.sequence,
        "label": row.label,
        "version": row.version and row.version.number,
        "digest": row.version and row.version.digest,
        "previous": row.previous_version and version_ref_json(row.previous_version),
        "reason": row.reason,
        "note": row.note,
        "release": row.release and row.release.number,
        "author": row.author_label,
        "moved_at": datetime_json(row.at),
        "hash": row.hash,
        "previous_hash": row.previous_hash,
    }


PROMPT_LABELS_PATH = "agents/<slug:agent>/channels/<slug:channel>/labels"
READ_OPTIONS: dict[str, Any] = {"bots": True, "touches": Touches.LABEL, "tag": "labels"}
EDIT_OPTIONS: dict[str, Any] = {
    "permission": Permission.EDIT,
    "touches": Touches.LABEL,
    "tag": "labels",
    "refusals": EDIT_PROBLEMS,
}
APPROVE_OPTIONS: dict[str, Any] = {
    "touches": Touches.LABEL,
    "permission": Permission.APPROVE,
    "answer": PROMPT_LABEL_SCHEMA,
    "is_retryable": True,
    "tag": "labels",
}
urlpatterns: list[URLPattern] = [
    endpoint(
        "labels",
        "labels-list",
        get=Operation(
            index,
            "List the labels of the workspace",
            operation_id="listLabels",
            answer=page_schema(LABEL_USAGE_SCHEMA),
            **{**READ_OPTIONS, "touches": Touches.WORKSPACE},
        ),
    ),
    endpoint(
        "labels/<slug:label>:protect",
        "labels-protect",
        post=Operation(
            protect_label_endpoint,
            "Protect or unprotect a label",
            operation_id="protectLabel",
            permission=Permission.MANAGE_MEMBERS,
            touches=Touches.WORKSPACE,
            body=object_schema({"is_protected": boolean_schema()}, title="LabelProtection"),
            answer=LABEL_USAGE_SCHEMA,
            is_retryable=True,
            tag="labels",
        ),
    ),
    endpoint(
        PROMPT_LABELS_PATH,
        "prompt-labels-list",
        get=Operation(
            list_prompt_labels,
            "List the labels of a prompt",
            operation_id="listPromptLabels",
            answer=page_schema(PROMPT_LABEL_SCHEMA),
            **READ_OPTIONS,
        ),
    ),
    endpoint(
        f"{PROMPT_LABELS_PATH}/production:unpin",
        "labels-unpin",
        post=Operation(
            unpin_production_endpoint,
            "Let production follow each new version again",
            operation_id="unpinProduction",
            **APPROVE_OPTIONS,
        ),
    ),
    endpoint(
        f"{PROMPT_LABELS_PATH}/<slug:label>",
        "labels-one",
        get=Operation(
            label_detail,
            "Get a label of a prompt",
            operation_id="getLabel",
            answer=PROMPT_LABEL_SCHEMA,
            extra_responses=NOT_MODIFIED_RESPONSES,
            **READ_OPTIONS,
        ),
        put=Operation(
            move_label_endpoint,
            "Move a label to a version",
            operation_id="moveLabel",
            body=MOVE_REQUEST_SCHEMA,
            answer=PROMPT_LABEL_SCHEMA,
            can_create=True,
            note="Send where the label points now: in If-Match, `If-None-Match: *` or `expected`.",
            **EDIT_OPTIONS,
        ),
        delete=Operation(
            remove_label_endpoint,
            "Delete a label",
            operation_id="deleteLabel",
            status=204,
            is_conditional=True,
            **EDIT_OPTIONS,
        ),
    ),
    endpoint(
        f"{PROMPT_LABELS_PATH}/<slug:label>:rollback",
        "labels-roll-back",
        post=Operation(
            roll_back_endpoint,
            "Roll a label back",
            operation_id="rollbackLabel",
            body=ROLLBACK_REQUEST_SCHEMA,
            **APPROVE_OPTIONS,
        ),
    ),
    endpoint(
        f"{PROMPT_LABELS_PATH}/<slug:label>/moves",
        "labels-moves",
        get=Operation(
            list_label_moves,
            "List the moves of a label, newest first",
            operation_id="listLabelMoves",
            answer=page_schema(LABEL_MOVE_SCHEMA),
            query=PAGINATION_PARAMS,
            # Not for bots, because notes are text that people wrote.
            **{**READ_OPTIONS, "bots": False},
        ),
    ),
]
