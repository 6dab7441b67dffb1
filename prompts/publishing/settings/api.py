"""REST API of prompt settings on the levels workspace, agent, channel and prompt."""

import json
import re
from typing import Any

from django.urls import URLPattern

from personas.api.etags import NOT_MODIFIED_RESPONSES, check_etag
from personas.api.exception_handler import RecordNotFound, validation_problem
from personas.api.key_limits import Touches, is_within_limit, list_linkable
from personas.api.operations import ApiRequest, Operation
from personas.api.pagination import PAGINATION_PARAMS, page_response, paginate_list
from personas.api.problems import FieldError, ProblemError, json_pointer
from personas.api.record_schema import (
    RESOURCES_BY_KIND,
    RecordSchema,
    remove_unchanged_values,
    with_article,
)
from personas.api.responses import ApiResponse, datetime_json, json_response
from personas.api.schema import (
    SIGNATURE_FORMAT,
    Schema,
    any_object_schema,
    array_schema,
    boolean_schema,
    datetime_schema,
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
from personas.models import Agent, Channel, Identity, Named, Soul, UserProfile
from personas.roles import Permission
from prompts.api_lookup import get_visible_agent
from prompts.models import PromptSettings
from prompts.publishing.settings.models import ENTRY_CHOICES, MAX_NUMBER, MIN_TOTAL_CHARACTERS, MODE_CHOICES
from prompts.publishing.settings.selectors import list_levels_with_settings
from prompts.publishing.settings.services import find_level_settings, put_settings
from prompts.publishing.versions.serializers import TEXT_SCHEMA

LINKED_MODELS: dict[str, type[Named]] = {"identity": Identity, "soul": Soul, "user_profile": UserProfile}
SETTING_SCHEMAS: dict[str, Schema] = {
    **{
        name: nullable_schema(
            slug_schema(
                description=f"Slug of {with_article(name.replace('_', ' '))}, for agents without their own. "
                "Not in the settings of an agent."
            )
        )
        for name in LINKED_MODELS
    },
    "mission": prose_schema(20_000),
    "signature": prose_schema(4_000, format=SIGNATURE_FORMAT),
    "sample_data": nullable_schema(
        any_object_schema(
            description="Values for placeholders and the data inventory, at most 60,000 characters."
        )
    ),
    "hidden": nullable_schema(
        array_schema(
            line_schema(200, least=1),
            most=100,
            uniqueItems=True,
            description=("Field names that are never shown."),
        )
    ),
    "entry": nullable_schema(enum_schema((value for value, _ in ENTRY_CHOICES), title="PromptEntry")),
    "mode": nullable_schema(enum_schema((value for value, _ in MODE_CHOICES), title="PromptMode")),
    "native_tools": nullable_schema(boolean_schema()),
    "total_characters": nullable_schema(integer_schema(MIN_TOTAL_CHARACTERS, MAX_NUMBER)),
    "token_budget": nullable_schema(integer_schema(0, MAX_NUMBER)),
    "list_sample": nullable_schema(integer_schema(1, MAX_NUMBER)),
    "string_truncate": nullable_schema(integer_schema(1, MAX_NUMBER)),
    "omit_reference": nullable_schema(boolean_schema()),
    "per_file": nullable_schema(integer_schema(1, MAX_NUMBER)),
    "all_files": nullable_schema(integer_schema(1, MAX_NUMBER)),
    "section_limits": nullable_schema(
        any_object_schema(
            additionalProperties=integer_schema(1, MAX_NUMBER),
            description="Maximum number of characters by section. In the settings of an agent, also on one "
            "channel, these are sections of its layout; otherwise of any layout (`GET /layouts`).",
        )
    ),
}
TEXT_SETTINGS = ("mission", "signature")
# The value of each setting that means "not set on this level": the setting is inherited.
EMPTY_VALUES: dict[str, Any] = dict.fromkeys(SETTING_SCHEMAS) | dict.fromkeys(
    (*TEXT_SETTINGS, "entry", "mode"), ""
)
LEVEL_SCHEMA = object_schema(
    {
        "level": enum_schema(["workspace", "agent", "channel", "prompt"], title="SettingsLevel"),
        "agent": nullable_schema(TEXT_SCHEMA),
        "channel": nullable_schema(TEXT_SCHEMA),
        **SETTING_SCHEMAS,
        "revision": integer_schema(description="0 if nothing was ever set on this level."),
        "updated_at": nullable_schema(datetime_schema()),
        "etag": TEXT_SCHEMA,
    },
    title="PromptSettings",
)
# Fields that a PUT request may contain only if they are unchanged from the response.
READ_ONLY_FIELDS = frozenset(LEVEL_SCHEMA["properties"]) - set(SETTING_SCHEMAS)


class PromptSettingsSchema(RecordSchema):
    """The names of prompt settings in the audit log. Their operations are those of a level, no record."""

    model = PromptSettings
    links = {"identity": (Identity, "slug"), "soul": (Soul, "slug"), "user_profile": (UserProfile, "slug")}

    def stored_value_json(self, name: str, value: Any) -> Any:
        return value


RESOURCES_BY_KIND[PromptSettings.kind] = PromptSettingsSchema()


def index(call: ApiRequest) -> ApiResponse:
    """List the settings of every level that has any."""
    rows = list_levels_with_settings(call.workspace)
    page = paginate_list(
        rows, "prompt settings", limit=call.query["limit"], cursor=call.query.get("cursor", "")
    )
    return page_response(call, page, [settings_json(row, row.agent, row.channel) for row in page.rows])


def handle_workspace_settings(call: ApiRequest) -> ApiResponse:
    return handle_level_settings(call)


def handle_agent_settings(call: ApiRequest, agent: str) -> ApiResponse:
    return handle_level_settings(call, agent=get_visible_agent(call, agent))


def handle_channel_settings(call: ApiRequest, channel: str) -> ApiResponse:
    return handle_level_settings(call, channel=get_settings_channel(call, channel))


def handle_prompt_settings(call: ApiRequest, agent: str, channel: str) -> ApiResponse:
    """Read or write the settings of one agent on one channel. Both must be within the scopes of the key."""
    row = get_visible_agent(call, agent)
    return handle_level_settings(call, agent=row, channel=get_settings_channel(call, channel))


def get_settings_channel(call: ApiRequest, name: str) -> Channel:
    """Return the channel, or raise 404 if it does not exist or is outside of the scopes of the key."""
    row = Channel.objects.in_workspace(call.workspace).filter(slug=name).first()
    if row is None or not is_within_limit(call.caller, "channels", name):
        raise RecordNotFound(f"No channel {name} in this workspace.")
    return row


def handle_level_settings(
    call: ApiRequest, agent: Agent | None = None, channel: Channel | None = None
) -> ApiResponse:
    """Return the settings of a level, after writing them if the request has a body."""
    row = find_level_settings(call.workspace, agent, channel)
    if call.body is not None:
        check_etag(get_settings_etag(row), call.if_match)
        call.body = remove_unchanged_values(call.body, settings_json(row, agent, channel), READ_ONLY_FIELDS)
        put_settings(
            call.workspace,
            parse_setting_values(call),
            expected=row.revision if row else 0,
            by=call.actor,
            agent=agent,
            channel=channel,
        )
        row = find_level_settings(call.workspace, agent, channel)
    return json_response(settings_json(row, agent, channel), ETag=get_settings_etag(row))


def encode_sample_data(values: dict[str, Any]) -> str:
    """Return the values as JSON. Control characters, which cannot be stored as they are, are escaped."""
    text = json.dumps(values, indent=2, ensure_ascii=False)
    return re.sub(r"[\x7f-\x9f]", lambda match: f"\\u{ord(match.group()):04x}", text)


def parse_setting_values(call: ApiRequest) -> dict[str, Any]:
    values: dict[str, Any] = {**EMPTY_VALUES, **call.body}
    values |= {name: values[name] or "" for name in ("entry", "mode")}
    sample = values["sample_data"]
    values["sample_data"] = "" if sample is None else encode_sample_data(sample)
    errors = []
    for name, model in LINKED_MODELS.items():
        if values[name] is None:
            continue
        values[name] = list_linkable(call.caller, model).filter(slug=values[name]).first()
        if values[name] is None:
            errors.append(FieldError("Record not found.", json_pointer([name])))
    if errors:
        raise ProblemError(validation_problem(errors))
    return values


def get_settings_etag(row: PromptSettings | None) -> str:
    return f'"{row.revision if row else 0}"'


def settings_json(row: PromptSettings | None, agent: Agent | None, channel: Channel | None) -> dict[str, Any]:
    values = {name: setting_value_json(row, name) for name in SETTING_SCHEMAS}
    return {
        "level": PromptSettings(agent=agent, channel=channel).level,
        "agent": agent and agent.slug,
        "channel": channel and channel.slug,
        **values,
        "revision": row.revision if row else 0,
        "updated_at": row and datetime_json(row.updated_at),
        "etag": get_settings_etag(row),
    }


def setting_value_json(row: PromptSettings | None, name: str) -> Any:
    value = getattr(row, name) if row else EMPTY_VALUES[name]
    if name in LINKED_MODELS:
        return value and value.slug
    if name == "sample_data":
        return json.loads(value) if value else None
    return value if name in TEXT_SETTINGS or value != "" else None


def build_level_endpoint(route: str, name: Touches, run: Any, where: str, noun: str) -> URLPattern:
    """Return the endpoint of a level. `noun` names the level in operation ids."""
    # A level has the same name as what its settings touch.
    common: dict[str, Any] = {"answer": LEVEL_SCHEMA, "tag": "prompt-settings", "touches": name}
    return endpoint(
        f"prompt-settings/{route}",
        f"prompt-settings-{name}",
        get=Operation(
            run,
            f"Get the prompt settings of {where}",
            operation_id=f"get{noun}PromptSettings",
            extra_responses=NOT_MODIFIED_RESPONSES,
            **common,
        ),
        put=Operation(
            run,
            f"Replace the prompt settings of {where}",
            operation_id=f"replace{noun}PromptSettings",
            permission=Permission.EDIT,
            body=object_schema(SETTING_SCHEMAS, required=(), title="PromptSettingsInput"),
            read_only_fields=READ_ONLY_FIELDS,
            is_conditional=True,
            note="Omitted settings are inherited from the next level.",
            **common,
        ),
    )


urlpatterns: list[URLPattern] = [
    endpoint(
        "prompt-settings",
        "prompt-settings-list",
        get=Operation(
            index,
            "List the prompt settings of all levels",
            operation_id="listPromptSettings",
            touches=Touches.WORKSPACE,
            answer=page_schema(LEVEL_SCHEMA),
            query=PAGINATION_PARAMS,
            tag="prompt-settings",
        ),
    ),
    build_level_endpoint(
        "workspace", Touches.WORKSPACE, handle_workspace_settings, "the workspace", "Workspace"
    ),
    build_level_endpoint("agents/<slug:agent>", Touches.AGENT, handle_agent_settings, "an agent", "Agent"),
    build_level_endpoint(
        "channels/<slug:channel>", Touches.CHANNEL, handle_channel_settings, "a channel", "Channel"
    ),
    build_level_endpoint(
        "agents/<slug:agent>/channels/<slug:channel>",
        Touches.PROMPT,
        handle_prompt_settings,
        "an agent on one channel",
        "AgentChannel",
    ),
]
