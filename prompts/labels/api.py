"""Labels: which there are, where they stand on a prompt, moved, taken off, put back."""

from typing import Any

from django.db.models import QuerySet
from django.http import Http404
from django.urls import URLPattern

from personas.api.etags import refuse_unless
from personas.api.operations import Call, Operation
from personas.api.pagination import PAGING, page_answered, page_of_rows
from personas.api.problems import Problem, ProblemError
from personas.api.responses import Answer, answered, empty, moment_told
from personas.api.schema import Shape, digest, flag, line, listed, moment, nullable, page_of, shape, whole
from personas.api.views import endpoint
from personas.roles import Permission
from prompts.api_lookup import found_prompt, named_version, refuse_label, refuse_limited
from prompts.errors import MovedMeanwhile, NotAllowed
from prompts.labels.services import follow_again, move_label, protect_label, roll_back, take_off_label
from prompts.ledger.selectors import heavy
from prompts.models import LATEST, PRODUCTION, AgentPrompt, LabelMove, LabelRule, PromptLabel
from prompts.releases.selectors import labels_in_use
from prompts.versions.selectors import labels_of
from prompts.versions.serializers import REF, TEXT, label_told, ref

IN_USE = shape({"name": TEXT, "prompts": whole(), "is_protected": flag()})
STANDING = shape({"name": TEXT, "number": whole(1), "digest": digest(), "moved_at": moment(), "etag": TEXT})
MOVE = shape(
    {
        "sequence": whole(1),
        "label": TEXT,
        "version": nullable(REF),
        "previous": nullable(REF),
        "reason": TEXT,
        "note": TEXT,
        "release": nullable(whole(1)),
        "author": TEXT,
        "at": moment(),
        "hash": digest(),
        "previous_hash": TEXT,
    }
)
NAMED: Shape = {
    "anyOf": [whole(1, 2**31 - 1), digest()],
    "description": "A version of this prompt by its number or digest.",
}
NOTE = line(500, description="Why; it stands in the history of the label.")
MOVING = shape(
    {
        "version": NAMED,
        "expected": nullable(NAMED)
        | {"description": "Where you saw it, null for nowhere; or send If-Match."},
        "note": NOTE,
    },
    required=["version"],
)
WHY = line(500, least=1, description="Why; those who look later will want to know.")
BACK = shape({"note": WHY, "to": NAMED}, required=["note"])
CHANGED = {409: "refused", 412: "precondition_failed", 428: "precondition_required"}


# --- of the workspace ----------------------------------------------------------------------------------


def index(call: Call) -> Answer:
    refuse_limited(call)
    return answered({"data": [in_use_told(label) for label in labels_in_use(call.workspace)]})


def in_use_told(label: Any) -> dict[str, Any]:
    return {"name": label.name, "prompts": label.prompts, "is_protected": label.is_protected}


def protect(call: Call, label: str) -> Answer:
    """Protected labels are moved by owners only."""
    refuse_limited(call)
    refuse_label(call, label)
    rule: LabelRule = protect_label(call.workspace, label, call.body["is_protected"], by=call.actor)
    labels = PromptLabel.objects.in_workspace(call.workspace).filter(name=label)
    return answered({"name": label, "prompts": labels.count(), "is_protected": rule.is_protected})


# --- of one prompt -------------------------------------------------------------------------------------


def standing(call: Call, agent: str, channel: str) -> Answer:
    prompt = found_prompt(call, agent, channel)
    return answered({"data": [told(label) for label in labels_of(prompt).defer(*heavy("version"))]})


def read(call: Call, agent: str, channel: str, label: str) -> Answer:
    found = present(found_prompt(call, agent, channel), label)
    if found is None:
        raise Http404
    return given(found)


def move(call: Call, agent: str, channel: str, label: str) -> Answer:
    refuse_label(call, label)
    prompt = found_prompt(call, agent, channel)
    if label == PRODUCTION:
        raise NotAllowed("Production moves by builds, releases and roll-backs.")
    version = named_version(prompt, call.body["version"], "/version")
    expected, note = seen(call, prompt, label), call.body.get("note", "")
    try:
        move_label(prompt, label, version, expected=expected, by=call.actor, note=note)
    except MovedMeanwhile as error:
        raise ProblemError(Problem(412, "precondition_failed", error.message)) from error
    return read(call, agent, channel, label)


def seen(call: Call, prompt: AgentPrompt, label: str) -> int | None:
    """The id of the version at which the caller saw the label, by the body or the header."""
    now = present(prompt, label)
    if "expected" not in call.body:
        refuse_unless(etag_of(now), call.if_match)
        return now.version_id if now else None
    said = call.body["expected"]
    if said is None or (now and said == now.version.digest):
        return now.version_id if now and said else None
    return named_version(prompt, said, "/expected").pk


def take_off(call: Call, agent: str, channel: str, label: str) -> Answer:
    refuse_label(call, label)
    prompt = found_prompt(call, agent, channel)
    now = present(prompt, label)
    if now is None:
        raise Http404
    refuse_unless(etag_of(now), call.if_match)
    take_off_label(prompt, label, by=call.actor)
    return empty()


def put_back(call: Call, agent: str, channel: str, label: str) -> Answer:
    refuse_label(call, label)
    prompt = found_prompt(call, agent, channel)
    to = named_version(prompt, call.body["to"], "/to") if "to" in call.body else None
    roll_back([prompt], by=call.actor, note=call.body["note"], label=label, to=to)
    return read(call, agent, channel, label)


def follow(call: Call, agent: str, channel: str) -> Answer:
    refuse_label(call, PRODUCTION)
    prompt = found_prompt(call, agent, channel)
    follow_again(prompt, by=call.actor)
    return read(call, agent, channel, PRODUCTION)


def moves(call: Call, agent: str, channel: str, label: str) -> Answer:
    prompt = found_prompt(call, agent, channel)
    rows: QuerySet[LabelMove] = LabelMove.objects.in_workspace(call.workspace).filter(
        prompt=prompt, label=label
    )
    rows = rows.select_related("version", "previous_version", "release")
    rows = rows.defer(*heavy("version"), *heavy("previous_version"))
    page = page_of_rows(
        rows, limit=call.query["limit"], cursor=call.query.get("cursor", ""), newest_first=True
    )
    return page_answered(call, page, [move_told(row) for row in page.rows])


# --- words ---------------------------------------------------------------------------------------------


def present(prompt: AgentPrompt, label: str) -> PromptLabel | None:
    return labels_of(prompt).filter(name=label).defer(*heavy("version")).first()


def etag_of(label: PromptLabel | None) -> str:
    """The number of the version it stands at; nought for a label that is not there yet."""
    return f'"{label.version.number if label else 0}"'


def given(label: PromptLabel) -> Answer:
    return answered(told(label), ETag=etag_of(label))


def told(label: PromptLabel) -> dict[str, Any]:
    return {**label_told(label), "etag": etag_of(label)}


def move_told(row: LabelMove) -> dict[str, Any]:
    return {
        "sequence": row.sequence,
        "label": row.label,
        "version": row.version and ref(row.version),
        "previous": row.previous_version and ref(row.previous_version),
        "reason": row.reason,
        "note": row.note,
        "release": row.release and row.release.number,
        "author": row.author_label,
        "at": moment_told(row.at),
        "hash": row.hash,
        "previous_hash": row.previous_hash,
    }


def list_of(item: Shape) -> Shape:
    """Few enough to come at once."""
    return shape({"data": listed(item, most=10_000)})


OF_PROMPT = "agents/<slug:agent>/prompts/<slug:channel>/labels"
READING: dict[str, Any] = {"bots": True, "tag": "labels"}
EDITING: dict[str, Any] = {"permission": Permission.EDIT, "tag": "labels", "refusals": CHANGED}
DECIDING: dict[str, Any] = {
    "permission": Permission.APPROVE,
    "answer": STANDING,
    "is_retryable": True,
    "tag": "labels",
}
urlpatterns: list[URLPattern] = [
    endpoint(
        "labels",
        "labels-list",
        get=Operation(index, "List labels and who may move them", answer=list_of(IN_USE), **READING),
    ),
    endpoint(
        "labels/<slug:label>:protect",
        "labels-protect",
        post=Operation(
            protect,
            "Let only owners move a label, or everybody again",
            permission=Permission.MANAGE_MEMBERS,
            body=shape({"is_protected": flag()}),
            answer=IN_USE,
            is_retryable=True,
            tag="labels",
        ),
    ),
    endpoint(
        OF_PROMPT,
        "labels-standing",
        get=Operation(
            standing,
            "Where the labels of a prompt stand",
            answer=list_of(STANDING),
            note=f"“{LATEST}” follows every build by itself, and is told with the prompt.",
            **READING,
        ),
    ),
    endpoint(
        f"{OF_PROMPT}/production:follow",
        "labels-follow",
        post=Operation(follow, "Let production follow each build again", **DECIDING),
    ),
    endpoint(
        f"{OF_PROMPT}/<slug:label>",
        "labels-one",
        get=Operation(read, "Where a label stands", answer=STANDING, **READING),
        put=Operation(
            move,
            "Point a label at a version",
            body=MOVING,
            answer=STANDING,
            note='Say where you saw it, by If-Match ("0" for nowhere) or `expected`.',
            **EDITING,
        ),
        delete=Operation(take_off, "Take a label off", status=204, is_conditional=True, **EDITING),
    ),
    endpoint(
        f"{OF_PROMPT}/<slug:label>:rollBack",
        "labels-roll-back",
        post=Operation(put_back, "Put a label back to where it was before", body=BACK, **DECIDING),
    ),
    endpoint(
        f"{OF_PROMPT}/<slug:label>/moves",
        "labels-moves",
        get=Operation(
            moves, "The history of a label, newest first", answer=page_of(MOVE), query=PAGING, **READING
        ),
    ),
]
