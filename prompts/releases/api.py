"""Releases: asked for, decided by somebody else, carried out at once.

A key acts for the person who made it, so whoever asks with a key cannot approve with another of his own.
A key that is limited to some agents or channels sees the releases that concern nothing else.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.http import Http404
from django.urls import URLPattern

from personas.api.exception_handler import invalid
from personas.api.operations import Call, Operation
from personas.api.pagination import PAGING, page_answered, page_of_rows
from personas.api.problems import CONTENT_TYPE, FieldError, Problem, ProblemError, pointer_to
from personas.api.responses import Answer, answered, moment_told
from personas.api.schema import (
    Shape,
    choice,
    digest,
    flag,
    line,
    listed,
    moment,
    nullable,
    page_of,
    shape,
    slug,
    whole,
)
from personas.api.views import endpoint
from personas.roles import Permission
from prompts.api_lookup import bounded, is_limited, prompt_ids, refuse_label, visible_prompts
from prompts.models import PRODUCTION, AgentPrompt, Release, ReleaseItem, ReleaseStatus
from prompts.releases.selectors import changed_since, items_of, releases_of
from prompts.releases.services import (
    approve_release,
    carry_out_release,
    override_release,
    reject_release,
    request_release,
    withdraw_release,
)
from prompts.versions.serializers import REF, TEXT, ref

OPEN = (ReleaseStatus.REQUESTED, ReleaseStatus.APPROVED)
FACTS: dict[str, Shape] = {
    "number": whole(1),
    "label": TEXT,
    "message": TEXT,
    "status": choice(ReleaseStatus.values),
    "prompts": whole(description="How many it moves."),
    "requested_by": TEXT,
    "requested_at": moment(),
    "decided_by": TEXT,
    "decided_at": nullable(moment()),
    "reason": {"type": "string", "description": "Why it was rejected, voided, or released without approval."},
    "is_override": flag(),
    "released_at": nullable(moment()),
}
ITEM = shape(
    {
        "agent": TEXT,
        "channel": TEXT,
        "version": REF,
        "before": nullable(REF),
        "token_delta": nullable({"type": "integer"}),
        "is_outdated": flag(description="Something was built since: the release will be voided."),
    }
)
LISTED = shape(FACTS)
RELEASE = shape({**FACTS, "items": {"type": "array", "items": ITEM}})
WISH = shape(
    {
        "agent": slug(),
        "channel": slug(),
        "digest": digest(description="What you have seen as latest; something newer is not released unseen."),
    },
    required=["agent", "channel"],
)
NEW = shape(
    {
        "message": line(300, least=1, description="What changes for those whom these agents serve."),
        "label": slug(maxLength=40, default=PRODUCTION),
        "prompts": listed(WISH, most=1_000, minItems=1),
    },
    required=["message", "prompts"],
)
REASON = shape({"reason": line(500, least=1)})
LISTING: dict[str, Shape] = {
    "status": choice(["open", *ReleaseStatus.values], description="Open ones wait for a decision."),
    **PAGING,
}


def index(call: Call) -> Answer:
    rows, status = visible(call), call.query.get("status")
    if status:
        rows = rows.filter(status__in=OPEN if status == "open" else [status])
    page = page_of_rows(
        rows, limit=call.query["limit"], cursor=call.query.get("cursor", ""), newest_first=True
    )
    return page_answered(call, page, [facts_told(row, row.prompt_count) for row in page.rows])


def visible(call: Call) -> QuerySet[Any]:
    rows = releases_of(call.workspace)
    if is_limited(call.caller):
        others = ReleaseItem.objects.in_workspace(call.workspace).exclude(prompt__in=prompt_ids(call.caller))
        rows = rows.exclude(pk__in=others.values("release"))
    return rows


def read(call: Call, number: int) -> Answer:
    return answered(told(found(call, number)))


def found(call: Call, number: int) -> Release:
    release: Release | None = visible(call).filter(number=bounded(number)).first()
    if release is None:
        raise Http404
    return release


# --- asking --------------------------------------------------------------------------------------------


@transaction.atomic
def add(call: Call) -> Answer:
    said = call.body
    label = said.get("label", PRODUCTION)
    refuse_label(call, label)
    prompts = chosen(call, said["prompts"])
    release = request_release(call.workspace, prompts, message=said["message"], by=call.actor, label=label)
    refuse_unseen(release, said["prompts"])
    return answered(told(release), 201, Location=f"/api/v1/releases/{release.number}")


def chosen(call: Call, wishes: Sequence[Mapping[str, str]]) -> list[AgentPrompt]:
    rows = visible_prompts(call.caller).filter(
        is_live=True, agent__slug__in={wish["agent"] for wish in wishes}
    )
    known = {(row.agent.slug, row.channel.slug): row for row in rows}
    wrong = [
        FieldError("There is no such prompt here.", pointer_to(["prompts", at]))
        for at, wish in enumerate(wishes)
        if (wish["agent"], wish["channel"]) not in known
    ]
    if wrong:
        raise ProblemError(invalid(wrong))
    return [known[wish["agent"], wish["channel"]] for wish in wishes]


def refuse_unseen(release: Release, wishes: Sequence[Mapping[str, str]]) -> None:
    """The prompts are locked by now: what is bound is what will be released."""
    bound = {(item.prompt.agent.slug, item.prompt.channel.slug): item.digest for item in items_of(release)}
    wrong = [
        FieldError("Something was built after you looked. Look again.", pointer_to(["prompts", at, "digest"]))
        for at, wish in enumerate(wishes)
        if "digest" in wish and bound.get((wish["agent"], wish["channel"]), wish["digest"]) != wish["digest"]
    ]
    if wrong:
        raise ProblemError(invalid(wrong))


# --- deciding ------------------------------------------------------------------------------------------


def plainly(verb: Callable[..., Release]) -> Callable[..., Answer]:
    def decide(call: Call, number: int) -> Answer:
        release = found(call, number)
        refuse_label(call, release.label)
        return decided(call, verb(release, by=call.actor))

    return decide


def with_reason(verb: Callable[..., Release]) -> Callable[..., Answer]:
    def decide(call: Call, number: int) -> Answer:
        release = found(call, number)
        refuse_label(call, release.label)
        return decided(call, verb(release, reason=call.body["reason"], by=call.actor))

    return decide


def decided(call: Call, release: Release) -> Answer:
    """A void is kept, and yet no success: it is answered and not raised, which would undo it."""
    if release.status == ReleaseStatus.VOIDED:
        problem = Problem(409, "release_voided", release.reason)
        return Answer(409, problem.body(call.request_id), {"Content-Type": CONTENT_TYPE})
    return answered(told(release))


# --- words ---------------------------------------------------------------------------------------------


def told(release: Release) -> dict[str, Any]:
    items = items_of(release)
    late = {item.pk for item in changed_since(items)} if release.status in OPEN else set()
    said = [item_told(item, is_outdated=item.pk in late) for item in items]
    return {**facts_told(release, len(items)), "items": said}


def facts_told(release: Release, count: int) -> dict[str, Any]:
    return {
        "number": release.number,
        "label": release.label,
        "message": release.message,
        "status": str(release.status),
        "prompts": count,
        "requested_by": release.requested_label,
        "requested_at": moment_told(release.requested_at),
        "decided_by": release.decided_label,
        "decided_at": release.decided_at and moment_told(release.decided_at),
        "reason": release.reason,
        "is_override": release.is_override,
        "released_at": release.released_at and moment_told(release.released_at),
    }


def item_told(item: ReleaseItem, *, is_outdated: bool) -> dict[str, Any]:
    return {
        "agent": item.prompt.agent.slug,
        "channel": item.prompt.channel.slug,
        "version": ref(item.version),
        "before": item.before and ref(item.before),
        "token_delta": item.version.tokens - item.before.tokens if item.before else None,
        "is_outdated": is_outdated,
    }


def verb(
    name: str, summary: str, permission: Permission, run: Callable[..., Answer], body: Shape | None = None
) -> URLPattern:
    operation = Operation(
        run,
        summary,
        permission=permission,
        body=body,
        answer=RELEASE,
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
            bots=True,
            answer=page_of(LISTED),
            query=LISTING,
            tag="releases",
        ),
        post=Operation(
            add,
            "Ask for a release of what is latest now",
            permission=EDIT,
            body=NEW,
            answer=RELEASE,
            status=201,
            is_retryable=True,
            tag="releases",
        ),
    ),
    endpoint(
        "releases/<int:number>",
        "releases-one",
        get=Operation(read, "Read a release", bots=True, answer=RELEASE, tag="releases"),
    ),
    verb("approve", "Approve what somebody else asked for", APPROVE, plainly(approve_release)),
    verb("reject", "Reject a release", APPROVE, with_reason(reject_release), REASON),
    verb("withdraw", "Withdraw a release", EDIT, plainly(withdraw_release)),
    verb("carryOut", "Move all labels of a release", EDIT, plainly(carry_out_release)),
    verb(
        "override",
        "Release without approval, in an emergency",
        Permission.MANAGE_KEYS,
        with_reason(override_release),
        REASON,
    ),
]
