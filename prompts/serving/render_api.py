"""POST /agents/{slug}/prompt:render: the labelled version with the facts of one call in its slots."""

from typing import Any

from django.http import HttpRequest
from django.urls import path

from personas.api import schema as api_schema
from personas.api.exception_handler import invalid
from personas.api.operations import Operation, no_run
from personas.api.problems import FieldError, ProblemError
from personas.api.request_body import body_of
from personas.api.validation import validator
from personas.api_keys.scopes import RENDER, allows
from prompts.assembly.json_codec import load
from prompts.assembly.slots import Slots
from prompts.models import PRODUCTION
from prompts.serving import Bot, Call, OutOfScope, Wanted
from prompts.serving.fetch_api import NO_SUCH_FORM, Reply, handed_out, refuse_long, told
from prompts.serving.http_params import chosen_type
from prompts.serving.post_api import NOT_KEPT, posted
from prompts.serving.resolve import facts_of_key, refuse_malformed
from prompts.serving.schema import PROMPT
from prompts.serving.slots import task_facts as facts_of_task

SAID = 20_000
SHAPE = api_schema.shape(
    {
        "channel": api_schema.slug(),
        "label": api_schema.slug(maxLength=40),
        "now": api_schema.moment(description="The time where the call runs; without it, the server's."),
        "timezone": api_schema.line(64),
        "host": api_schema.anything(
            description="Where the call runs; keys that no layout knows leave no trace."
        ),
        "sandbox": api_schema.anything(),
        "session": api_schema.shape({"id": api_schema.line(200), "plan_path": api_schema.line(1_000)}, ()),
        "task": api_schema.whole(
            1, 2**31 - 1, description="The number of a task of the agent, or of nobody's."
        ),
        "is_background": api_schema.flag(description="Nobody reads the answer."),
        "previous_error": api_schema.shape(
            {
                "error": api_schema.line(500, least=1),
                "message": api_schema.prose(SAID),
                "context": api_schema.prose(SAID),
            },
            ("error",),
        ),
        "tools": api_schema.listed(
            api_schema.line(100, least=1), description="Names of the tools of this call."
        ),
        "append": api_schema.prose(SAID, description="Words for this call alone, behind the prompt."),
        "replace": api_schema.prose(
            200_000, description="Words for this call alone, in place of the prompt's base."
        ),
        "messages": api_schema.listed(
            api_schema.shape(
                {"text": api_schema.prose(SAID, least=1), "role": api_schema.choice(("user", "assistant"))},
                ("text",),
            )
        ),
    },
    ("channel",),
)
CHECKED = validator(SHAPE)
NOT_SLOTS = ("channel", "label", "task")


@posted
def render(request: HttpRequest, reader: Bot, request_id: str, agent: str) -> Reply:
    """A row in the ledger, and no new version: what is said here is kept nowhere else."""
    refuse_long(request.META.get("HTTP_ACCEPT", ""))
    body = body_of(request, CHECKED)
    form = chosen_type(request.META.get("HTTP_ACCEPT", ""))
    if not form:
        raise ProblemError(NO_SUCH_FORM)
    wanted = Wanted(agent, body["channel"], body.get("label", PRODUCTION), verb=RENDER)
    call = Call(slots_of(reader, wanted, body), request_id)
    served, limits = handed_out(reader, wanted, call, "render")
    return told(served, wanted, form, [*limits.items(), NOT_KEPT])


def slots_of(reader: Bot, wanted: Wanted, body: dict[str, Any]) -> Slots:
    said = {name: value for name, value in body.items() if name not in NOT_SLOTS}
    if "task" in body:
        said["task"] = task_facts(reader, wanted, body["task"])
    return load(Slots, said)


def task_facts(reader: Bot, wanted: Wanted, number: int) -> dict[str, Any]:
    """A key that may not render learns nothing of the tasks either."""
    refuse_malformed(reader)
    key = facts_of_key(reader)
    if not allows(key["scopes"], RENDER, wanted.agent, wanted.channel, wanted.label):
        raise OutOfScope
    found = facts_of_task(key["workspace_id"], wanted.agent, number)
    if found is None:
        raise ProblemError(invalid([FieldError("There is no such task.", "/task")]))
    return found


render.operations = {  # type: ignore[attr-defined]  # published; this view does its own work
    "POST": Operation(
        no_run,
        "Fetch a prompt with the facts of a call",
        bots=True,
        budget="render",
        answer=PROMPT,
        body=SHAPE,
        other_answers={"text/markdown": {"schema": {"type": "string"}}},
        refusals={410: "erased"},
        body_example={"channel": "web", "is_background": True, "host": {"name": "deck-3"}},
        tag="prompts",
    )
}
urlpatterns = [path("agents/<slug:agent>/prompt:render", render, name="render")]
