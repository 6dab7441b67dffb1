"""REST resource for releases: request, review, approve, reject, withdraw, run, override, comment.

A key acts for the user who created it, so a user cannot request with one key and approve with another.
A key limited to some agents, channels or labels sees only releases of its labels whose prompts are all within
its scope.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.urls import URLPattern

from personas.api.exception_handler import RecordNotFound, validation_problem
from personas.api.key_limits import Touches
from personas.api.operations import ApiRequest, Operation
from personas.api.pagination import PAGINATION_PARAMS, page_response, paginate_rows
from personas.api.problems import PROBLEM_CONTENT_TYPE, FieldError, Problem, ProblemError, json_pointer
from personas.api.responses import ApiResponse, datetime_json, json_response
from personas.api.schema import (
    Schema,
    array_schema,
    boolean_schema,
    datetime_schema,
    digest_schema,
    enum_schema,
    integer_schema,
    line_schema,
    nullable_schema,
    object_schema,
    page_schema,
    prose_schema,
    slug_schema,
)
from personas.api.views import endpoint
from personas.models import Membership
from personas.roles import Permission
from prompts.api_lookup import (
    check_label_scope,
    check_number_bounds,
    is_scope_limited,
    list_visible_prompt_ids,
    list_visible_prompts,
)
from prompts.models import (
    PRODUCTION,
    AgentPrompt,
    Release,
    ReleaseItem,
    ReleaseStatus,
)
from prompts.publishing.releases.comments import request_changes
from prompts.publishing.releases.selectors import (
    list_outdated_items,
    list_possible_reviewers,
    list_release_items,
    list_release_reviewers,
    list_releases,
)
from prompts.publishing.releases.services import (
    approve_release,
    override_release,
    reject_release,
    request_again,
    request_release,
    request_review,
    run_release,
    withdraw_release,
)
from prompts.publishing.versions.serializers import TEXT_SCHEMA, VERSION_REF_SCHEMA, version_ref_json

OPEN_STATUSES = (ReleaseStatus.REQUESTED, ReleaseStatus.APPROVED)
RELEASE_FIELDS: dict[str, Schema] = {
    "number": integer_schema(1),
    "label": TEXT_SCHEMA,
    "message": TEXT_SCHEMA,
    "status": enum_schema(ReleaseStatus.values, title="ReleaseStatus"),
    "prompts": integer_schema(description="Number of prompts that it moves."),
    "requested_by": TEXT_SCHEMA,
    "requested_at": datetime_schema(),
    "decided_by": TEXT_SCHEMA,
    "decided_at": nullable_schema(datetime_schema()),
    "reason": {"type": "string", "description": "Why it was rejected, voided, or released without approval."},
    "is_override": boolean_schema(),
    "released_at": nullable_schema(datetime_schema()),
}
RELEASE_ITEM_SCHEMA = object_schema(
    {
        "agent": TEXT_SCHEMA,
        "channel": TEXT_SCHEMA,
        **VERSION_REF_SCHEMA["properties"],
        "before": nullable_schema(VERSION_REF_SCHEMA),
        "token_delta": nullable_schema({"type": "integer"}),
        "is_outdated": boolean_schema(description="A prompt has changed since: the release will be voided."),
    },
    title="ReleaseItem",
)
REVIEWERS_SCHEMA: Schema = {
    "type": "array",
    "items": {"type": "string"},
    "description": "Email addresses of the members who were asked by name to review it.",
}
RELEASE_SUMMARY_SCHEMA = object_schema(RELEASE_FIELDS, title="ReleaseSummary")
RELEASE_SCHEMA = object_schema(
    {
        **RELEASE_FIELDS,
        "reviewers": REVIEWERS_SCHEMA,
        "items": {"type": "array", "items": RELEASE_ITEM_SCHEMA},
    },
    title="Release",
)
REQUESTED_PROMPT_SCHEMA = object_schema(
    {
        "agent": slug_schema(),
        "channel": slug_schema(),
        "digest": digest_schema(
            description=(
                "The latest versions that you have seen. If a prompt has a newer version, "
                "the request is rejected."
            )
        ),
    },
    required=["agent", "channel"],
    title="ReleasePrompt",
)
NEW_REVIEWERS_SCHEMA = array_schema(
    line_schema(254, least=1),
    most=20,
    description="Email addresses of members.",
)
NEW_RELEASE_SCHEMA = object_schema(
    {
        "message": line_schema(300, least=1, description="What changes for the users of these agents."),
        "label": slug_schema(maxLength=40, default=PRODUCTION),
        "prompts": array_schema(REQUESTED_PROMPT_SCHEMA, most=1_000, minItems=1),
        "reviewers": NEW_REVIEWERS_SCHEMA,
    },
    required=["message", "prompts"],
    title="ReleaseInput",
)
REVIEW_REQUEST_SCHEMA = object_schema(
    {"reviewers": {**NEW_REVIEWERS_SCHEMA, "minItems": 1}}, title="ReleaseReviewRequest"
)
CHANGES_SCHEMA = object_schema(
    {"reason": prose_schema(4_000, least=1, description="What must change.")}, title="ReleaseChangeRequest"
)
REASON_SCHEMA = object_schema({"reason": line_schema(500, least=1)}, title="ReleaseReason")
LIST_PARAMETERS: dict[str, Schema] = {
    "status": enum_schema(
        ["open", *ReleaseStatus.values], description="Open releases need a decision.", title="ReleaseFilter"
    ),
    **PAGINATION_PARAMS,
}


def index(call: ApiRequest) -> ApiResponse:
    rows, status = list_visible_releases(call), call.query.get("status")
    if status:
        rows = rows.filter(status__in=OPEN_STATUSES if status == "open" else [status])
    page = paginate_rows(
        rows, limit=call.query["limit"], cursor=call.query.get("cursor", ""), newest_first=True
    )
    return page_response(call, page, [release_summary_json(row, row.prompt_count) for row in page.rows])


def list_visible_releases(call: ApiRequest) -> QuerySet[Any]:
    rows = list_releases(call.workspace)
    if is_scope_limited(call.caller):
        others = ReleaseItem.objects.in_workspace(call.workspace).exclude(
            prompt__in=list_visible_prompt_ids(call.caller)
        )
        rows = rows.exclude(pk__in=others.values("release"))
    if "labels" in call.caller.key.scopes:
        rows = rows.filter(label__in=call.caller.key.scopes["labels"])
    return rows


def release_detail(call: ApiRequest, number: int) -> ApiResponse:
    return json_response(release_json(get_visible_release(call, number)))


def get_visible_release(call: ApiRequest, number: int) -> Release:
    release: Release | None = list_visible_releases(call).filter(number=check_number_bounds(number)).first()
    if release is None:
        raise RecordNotFound(f"No release {number} in this workspace.")
    return release


# --- requests ------------------------------------------------------------------------------------------


@transaction.atomic
def create_release(call: ApiRequest) -> ApiResponse:
    body = call.body
    label = body.get("label", PRODUCTION)
    check_label_scope(call, label)
    prompts = get_requested_prompts(call, body["prompts"])
    reviewers = get_requested_reviewers(call, body.get("reviewers", []))
    release = request_release(
        call.workspace, prompts, message=body["message"], by=call.actor, label=label, reviewers=reviewers
    )
    check_seen_digests(release, body["prompts"])
    return json_response(release_json(release), 201, Location=f"/api/v1/releases/{release.number}")


def get_requested_prompts(call: ApiRequest, items: Sequence[Mapping[str, str]]) -> list[AgentPrompt]:
    rows = list_visible_prompts(call.caller).filter(
        is_active=True, agent__slug__in={item["agent"] for item in items}
    )
    prompts = {(row.agent.slug, row.channel.slug): row for row in rows}
    errors = [
        FieldError("Prompt not found.", json_pointer(["prompts", index]))
        for index, item in enumerate(items)
        if (item["agent"], item["channel"]) not in prompts
    ]
    if errors:
        raise ProblemError(validation_problem(errors))
    return [prompts[item["agent"], item["channel"]] for item in items]


def get_requested_reviewers(call: ApiRequest, emails: Sequence[str]) -> list[Membership]:
    """Return the members with these addresses who may approve releases; raise a problem if one is none."""
    members = {
        member.user.email: member for member in list_possible_reviewers(call.workspace, call.actor.user)
    }
    errors = [
        FieldError(
            "There is no other member with this address who may approve releases.",
            json_pointer(["reviewers", index]),
        )
        for index, email in enumerate(emails)
        if email.lower() not in members
    ]
    if errors:
        raise ProblemError(validation_problem(errors))
    return [members[email.lower()] for email in dict.fromkeys(emails)]


def request_release_review(call: ApiRequest, number: int) -> ApiResponse:
    release = get_visible_release(call, number)
    reviewers = get_requested_reviewers(call, call.body["reviewers"])
    return json_response(release_json(request_review(release, reviewers, by=call.actor)))


def check_seen_digests(release: Release, items: Sequence[Mapping[str, str]]) -> None:
    """Raise a validation problem if a digest sent by the client differs from the digest to be released.

    It means that the prompt was rebuilt after the client read it. The release exists already and its prompts
    are locked, so no build can change them meanwhile; the exception rolls the release back.
    """
    digests = {
        (release_item.prompt.agent.slug, release_item.prompt.channel.slug): release_item.digest
        for release_item in list_release_items(release)
    }
    errors = [
        FieldError(
            "A prompt has a newer version than the one you sent. Read the prompts again.",
            json_pointer(["prompts", index, "digest"]),
        )
        for index, wish in enumerate(items)
        if "digest" in wish
        and digests.get((wish["agent"], wish["channel"]), wish["digest"]) != wish["digest"]
    ]
    if errors:
        raise ProblemError(validation_problem(errors))


# --- decisions -----------------------------------------------------------------------------------------


def make_decision_handler(action: Callable[..., Release]) -> Callable[..., ApiResponse]:
    def decide(call: ApiRequest, number: int) -> ApiResponse:
        release = get_visible_release(call, number)
        return build_decision_response(call, action(release, by=call.actor))

    return decide


def make_reason_handler(action: Callable[..., Release]) -> Callable[..., ApiResponse]:
    def decide(call: ApiRequest, number: int) -> ApiResponse:
        release = get_visible_release(call, number)
        return build_decision_response(call, action(release, reason=call.body["reason"], by=call.actor))

    return decide


def build_decision_response(call: ApiRequest, release: Release) -> ApiResponse:
    """Return the release, or a 409 problem if it was voided.

    The problem is returned, not raised: an exception would roll back the status “voided”.
    """
    if release.status == ReleaseStatus.VOIDED:
        problem = Problem(409, "release_voided", release.reason)
        return ApiResponse(409, problem.to_bytes(call.request_id), {"Content-Type": PROBLEM_CONTENT_TYPE})
    return json_response(release_json(release))


# --- serialization -------------------------------------------------------------------------------------


def release_json(release: Release) -> dict[str, Any]:
    items = list_release_items(release)
    outdated = {item.pk for item in list_outdated_items(items)} if release.status in OPEN_STATUSES else set()
    rows = [release_item_json(item, is_outdated=item.pk in outdated) for item in items]
    reviewers = [reviewer.user.email for reviewer in list_release_reviewers(release)]
    return {**release_summary_json(release, len(items)), "reviewers": reviewers, "items": rows}


def release_summary_json(release: Release, count: int) -> dict[str, Any]:
    return {
        "number": release.number,
        "label": release.label,
        "message": release.message,
        "status": str(release.status),
        "prompts": count,
        "requested_by": release.requested_label,
        "requested_at": datetime_json(release.requested_at),
        "decided_by": release.decided_label,
        "decided_at": release.decided_at and datetime_json(release.decided_at),
        "reason": release.reason,
        "is_override": release.is_override,
        "released_at": release.released_at and datetime_json(release.released_at),
    }


def release_item_json(item: ReleaseItem, *, is_outdated: bool) -> dict[str, Any]:
    return {
        "agent": item.prompt.agent.slug,
        "channel": item.prompt.channel.slug,
        **version_ref_json(item.version),
        "before": item.before and version_ref_json(item.before),
        "token_delta": item.version.tokens - item.before.tokens if item.before else None,
        "is_outdated": is_outdated,
    }


# Operation ids that are not the name of the action followed by "Release".
OPERATION_IDS = {
    "requestAgain": "requestReleaseAgain",
    "requestReview": "requestReleaseReview",
    "requestChanges": "requestReleaseChanges",
}


def build_action_endpoint(
    name: str,
    summary: str,
    permission: Permission,
    run: Callable[..., ApiResponse],
    body: Schema | None = None,
) -> URLPattern:
    operation = Operation(
        run,
        summary,
        operation_id=OPERATION_IDS.get(name, f"{name}Release"),
        permission=permission,
        touches=Touches.LABEL,
        body=body,
        answer=RELEASE_SCHEMA,
        is_retryable=True,
        tag="releases",
    )
    return endpoint(f"releases/<int:number>:{name}", f"releases-{name}", post=operation)


EDIT, APPROVE = Permission.EDIT, Permission.APPROVE
urlpatterns: list[URLPattern] = [
    endpoint(
        "releases",
        "releases-list",
        get=Operation(
            index,
            "List releases, newest first",
            operation_id="listReleases",
            touches=Touches.LABEL,
            answer=page_schema(RELEASE_SUMMARY_SCHEMA),
            query=LIST_PARAMETERS,
            tag="releases",
        ),
        post=Operation(
            create_release,
            "Request a release of the latest versions",
            operation_id="createRelease",
            permission=EDIT,
            touches=Touches.LABEL,
            body=NEW_RELEASE_SCHEMA,
            answer=RELEASE_SCHEMA,
            status=201,
            is_retryable=True,
            tag="releases",
        ),
    ),
    endpoint(
        "releases/<int:number>",
        "releases-one",
        get=Operation(
            release_detail,
            "Get a release",
            operation_id="getRelease",
            touches=Touches.LABEL,
            answer=RELEASE_SCHEMA,
            tag="releases",
        ),
    ),
    build_action_endpoint(
        "requestReview", "Request a review of a release", EDIT, request_release_review, REVIEW_REQUEST_SCHEMA
    ),
    build_action_endpoint(
        "requestChanges",
        "Request changes to a release",
        APPROVE,
        make_reason_handler(request_changes),
        CHANGES_SCHEMA,
    ),
    build_action_endpoint(
        "requestAgain", "Request a release again", EDIT, make_decision_handler(request_again)
    ),
    build_action_endpoint("approve", "Approve a release", APPROVE, make_decision_handler(approve_release)),
    build_action_endpoint(
        "reject", "Reject a release", APPROVE, make_reason_handler(reject_release), REASON_SCHEMA
    ),
    build_action_endpoint("withdraw", "Withdraw a release", EDIT, make_decision_handler(withdraw_release)),
    build_action_endpoint("publish", "Publish a release", EDIT, make_decision_handler(run_release)),
    build_action_endpoint(
        "override",
        "Publish a release without approval",
        Permission.OVERRIDE,
        make_reason_handler(override_release),
        REASON_SCHEMA,
    ),
]
