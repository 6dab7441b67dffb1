"""GET /me: what a key is, what it may do, and which prompts it may fetch. Every valid key may ask."""

from typing import Any

from django.urls import URLPattern

from personas.api.authentication import ApiClient
from personas.api.key_limits import Touches
from personas.api.operations import ApiRequest, Operation
from personas.api.responses import ApiResponse, datetime_json, json_response
from personas.api.schema import (
    array_schema,
    datetime_schema,
    enum_schema,
    integer_schema,
    nullable_schema,
    object_schema,
)
from personas.api.views import endpoint
from personas.api_keys.format import ADMIN, BOT
from personas.api_keys.scopes import FETCH, RENDER, VERB_PERMISSIONS, VERBS, get_key_verbs
from personas.api_keys.selectors import list_fetchable_prompts

MAX_PROMPTS = 200
TEXT_SCHEMA = {"type": "string"}
LIMIT_SCHEMA = nullable_schema(array_schema(TEXT_SCHEMA, description="Null if the key is not limited."))
ME_SCHEMA = object_schema(
    {
        "workspace": object_schema({"slug": TEXT_SCHEMA, "name": TEXT_SCHEMA}, title="MeWorkspace"),
        "key": object_schema(
            {
                "id": integer_schema(1),
                "name": TEXT_SCHEMA,
                "kind": enum_schema([BOT, ADMIN], title="KeyKind"),
                "prefix": TEXT_SCHEMA,
                "created_at": datetime_schema(),
                "expires_at": datetime_schema(),
            },
            title="MeKey",
        ),
        "verbs": array_schema(
            enum_schema(VERBS, title="KeyVerb"),
            description="What the key can do. An admin key cannot do more than the member it acts for.",
        ),
        "agents": LIMIT_SCHEMA,
        "channels": LIMIT_SCHEMA,
        "labels": LIMIT_SCHEMA,
        "prompts": array_schema(
            object_schema({"agent": TEXT_SCHEMA, "channel": TEXT_SCHEMA}, title="PromptAddress"),
            most=MAX_PROMPTS,
            description=f"Prompts that the key can fetch or render, at most {MAX_PROMPTS}.",
        ),
    },
    title="Me",
)


def read_me(call: ApiRequest) -> ApiResponse:
    key, verbs = call.caller.key, list_effective_verbs(call.caller)
    pairs = list_fetchable_prompts(key)[:MAX_PROMPTS] if {FETCH, RENDER} & set(verbs) else []
    return json_response(
        {
            "workspace": {"slug": call.workspace.slug, "name": call.workspace.name},
            "key": {
                "id": key.pk,
                "name": key.name,
                "kind": key.kind,
                "prefix": key.prefix,
                "created_at": datetime_json(key.created_at),
                "expires_at": datetime_json(key.expires_at),
            },
            "verbs": verbs,
            **{name: key.scopes.get(name) for name in ("agents", "channels", "labels")},
            "prompts": [{"agent": agent, "channel": channel} for agent, channel in pairs],
        }
    )


def list_effective_verbs(caller: ApiClient) -> list[str]:
    """List the verbs of a key in their usual order, without those that the role of its creator excludes."""
    permissions_by_verb: dict[str, tuple[Any, ...]] = VERB_PERMISSIONS[caller.key.kind]
    allowed = get_key_verbs(caller.key.scopes, caller.key.kind)
    return [
        verb
        for verb in VERBS
        if verb in allowed
        and (verb not in permissions_by_verb or caller.permissions & set(permissions_by_verb[verb]))
    ]


urlpatterns: list[URLPattern] = [
    endpoint(
        "me",
        "me",
        get=Operation(
            read_me,
            "Get the key of this request",
            operation_id="getMe",
            bots=True,
            is_for_all_keys=True,
            touches=Touches.KEY,
            answer=ME_SCHEMA,
            tag="keys",
        ),
    ),
]
