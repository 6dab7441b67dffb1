"""REST resource of bots: what is released, what each bot was served and what it has loaded."""

from typing import Any

from django.urls import URLPattern

from personas.api.authentication import ApiClient
from personas.api.key_limits import Touches
from personas.api.operations import ApiRequest, Operation
from personas.api.pagination import PAGINATION_PARAMS, page_response, paginate_list
from personas.api.responses import ApiResponse, datetime_json
from personas.api.schema import (
    datetime_schema,
    digest_schema,
    integer_schema,
    nullable_schema,
    object_schema,
    page_schema,
    slug_schema,
)
from personas.api.views import endpoint
from prompts.api_lookup import can_see_label, is_scope_limited, list_visible_prompt_ids
from prompts.evidence.drift.reports_api import DETAIL_FIELDS, STATUS_SCHEMA, report_details_fields_json
from prompts.evidence.drift.selectors import Bot, list_bots
from prompts.evidence.ledger.api import KEY_SCHEMA
from prompts.publishing.versions.serializers import TEXT_SCHEMA, VERSION_REF_SCHEMA, version_ref_json

SERVED_SCHEMA = object_schema(
    {**VERSION_REF_SCHEMA["properties"], "ledger_id": integer_schema(1), "served_at": datetime_schema()},
    title="BotServedVersion",
)
LOADED_SCHEMA = object_schema(
    {
        "report_id": integer_schema(1),
        "version": nullable_schema(integer_schema(1, description="Null if the text matches no version.")),
        "digest": digest_schema(),
        **DETAIL_FIELDS,
        "reported_at": datetime_schema(),
    },
    title="BotLoadedText",
)
BOT_SCHEMA = object_schema(
    {
        "key": KEY_SCHEMA,
        "agent": TEXT_SCHEMA,
        "channel": TEXT_SCHEMA,
        "label": TEXT_SCHEMA,
        "status": STATUS_SCHEMA,
        "since": nullable_schema(
            datetime_schema(
                description=("When it was reported. If nothing was reported, when it was last served.")
            )
        ),
        "released": nullable_schema(VERSION_REF_SCHEMA),
        "served": nullable_schema(SERVED_SCHEMA),
        "loaded": nullable_schema(LOADED_SCHEMA),
    },
    title="Bot",
)
LIST_PARAMETERS = {
    "agent": slug_schema(),
    "channel": slug_schema(),
    "status": STATUS_SCHEMA,
    **PAGINATION_PARAMS,
}


def api_list_bots(call: ApiRequest) -> ApiResponse:
    bots = list_visible_bots(call)
    page = paginate_list(bots, "bots", limit=call.query["limit"], cursor=call.query.get("cursor", ""))
    return page_response(call, page, [bot_json(call.caller, bot) for bot in page.rows])


def list_visible_bots(call: ApiRequest) -> list[Bot]:
    """List the bots that match the query, within the limits of the key. A bot key sees only itself."""
    bots = list_bots(call.workspace)
    bots = [bot for bot in bots if can_see_label(call.caller, bot.label) and has_values(bot, call.query)]
    if is_scope_limited(call.caller):
        visible_ids = set(list_visible_prompt_ids(call.caller))
        bots = [bot for bot in bots if bot.prompt.pk in visible_ids]
    return [bot for bot in bots if bot.key.pk == call.caller.key.pk] if call.caller.is_bot else bots


def has_values(bot: Bot, query: dict[str, Any]) -> bool:
    values = {"agent": bot.prompt.agent.slug, "channel": bot.prompt.channel.slug, "status": bot.status.value}
    return all(name not in query or query[name] == value for name, value in values.items())


def bot_json(caller: ApiClient, bot: Bot) -> dict[str, Any]:
    return {
        "key": {"id": bot.key.pk, "name": bot.key.name},
        "agent": bot.prompt.agent.slug,
        "channel": bot.prompt.channel.slug,
        "label": bot.label,
        "status": bot.status.value,
        "since": bot.since and datetime_json(bot.since),
        "released": bot.released and version_ref_json(bot.released),
        "served": served_version_json(bot),
        "loaded": loaded_text_json(caller, bot),
    }


def served_version_json(bot: Bot) -> dict[str, Any] | None:
    if bot.served is None or bot.served_at is None:
        return None
    return {
        **version_ref_json(bot.served),
        "ledger_id": bot.ledger_id,
        "served_at": datetime_json(bot.served_at),
    }


def loaded_text_json(caller: ApiClient, bot: Bot) -> dict[str, Any] | None:
    if bot.report is None:
        return None
    return {
        "report_id": bot.report.pk,
        "version": bot.loaded.number if bot.loaded else None,
        "digest": bot.report.digest,
        **report_details_fields_json(caller, bot.details),
        "reported_at": datetime_json(bot.report.at),
    }


urlpatterns: list[URLPattern] = [
    endpoint(
        "bots",
        "bots-list",
        get=Operation(
            api_list_bots,
            "List bots and the prompts they have loaded",
            operation_id="listBots",
            bots=True,
            touches=Touches.LABEL,
            answer=page_schema(BOT_SCHEMA),
            query=LIST_PARAMETERS,
            tag="reports",
        ),
    ),
]
