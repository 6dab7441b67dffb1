"""JSON Schema of the responses that contain a prompt.

It is published in the OpenAPI document, and a test validates real responses against it.
"""

from personas.api.schema import (
    any_object_schema,
    array_schema,
    boolean_schema,
    datetime_schema,
    digest_schema,
    enum_schema,
    integer_schema,
    nullable_schema,
    object_schema,
)
from prompts.assembly.segments import VOLATILITY_LEVELS

TEXT_SCHEMA = {"type": "string"}
OFFSET_DESCRIPTION = "In characters of the text, that is in Unicode code points."
SERVED_VERSION_SCHEMA = object_schema(
    {
        "number": integer_schema(1),
        "digest": digest_schema(),
        "layout": TEXT_SCHEMA,
        "created_at": datetime_schema(),
    }
)
SERVED_SEGMENT_SCHEMA = object_schema(
    {
        "section": TEXT_SCHEMA,
        "volatility": enum_schema(VOLATILITY_LEVELS, description="How often it changes."),
        "range": {
            "type": "array",
            "items": integer_schema(),
            "minItems": 2,
            "maxItems": 2,
            "description": OFFSET_DESCRIPTION,
        },
        "slot": nullable_schema({"type": "string", "description": "What a call may fill it with."}),
        "cacheable": boolean_schema(description="Nothing up to its end changes with a session or a turn."),
    }
)
CACHE_BOUNDARY_SCHEMA = object_schema(
    {
        "offset": integer_schema(description=f"A provider's cache may break here. {OFFSET_DESCRIPTION}"),
        "volatility": enum_schema(
            VOLATILITY_LEVELS, description="Everything before it changes no quicker than this."
        ),
    }
)
TOKENS_SCHEMA = object_schema(
    {
        "total": integer_schema(
            description="Text and tool definitions of the version; what a call adds is not counted."
        ),
        "text": integer_schema(description="The sum of the sections, as a fetch without slots sends them."),
        "tools": integer_schema(description="All tool definitions of the version."),
        "sections": {"type": "object", "additionalProperties": integer_schema()},
    }
)
TOOL_SCHEMA = object_schema(
    {"name": TEXT_SCHEMA, "description": TEXT_SCHEMA, "parameters": any_object_schema()}, ("name",)
)
MESSAGE_SCHEMA = object_schema({"role": enum_schema(("user", "assistant")), "text": TEXT_SCHEMA})
MAX_ITEMS = 100_000
SERVED_PROMPT_SCHEMA = object_schema(
    {
        "version": SERVED_VERSION_SCHEMA,
        "digest": digest_schema(description="Of the version; the ETag names it."),
        "tokens": TOKENS_SCHEMA,
        "served_digest": digest_schema(description="SHA-256 of the text in UTF-8."),
        "text": TEXT_SCHEMA,
        "segments": array_schema(
            SERVED_SEGMENT_SCHEMA,
            most=MAX_ITEMS,
            description="They follow each other and cover the whole text.",
        ),
        "cache_boundaries": array_schema(CACHE_BOUNDARY_SCHEMA, most=len(VOLATILITY_LEVELS)),
        "agent": TEXT_SCHEMA,
        "channel": TEXT_SCHEMA,
        "label": TEXT_SCHEMA,
        "as_of": nullable_schema(datetime_schema(description="The moment that was asked for.")),
        "slots": any_object_schema(description="The facts of the call as they were recorded."),
        "tools": array_schema(
            TOOL_SCHEMA, most=MAX_ITEMS, description="Definitions for the provider's interface."
        ),
        "warnings": array_schema(TEXT_SCHEMA, most=MAX_ITEMS),
        "messages": array_schema(MESSAGE_SCHEMA),
        "ledger_id": integer_schema(1),
    }
)
BATCH_RESULT_SCHEMA = {
    "oneOf": [
        object_schema({"status": {"const": 200}, "prompt": SERVED_PROMPT_SCHEMA}),
        object_schema({"status": {"const": 304}, "ledger_id": integer_schema(1)}),
        object_schema({"status": integer_schema(400, 599), "problem": any_object_schema()}),
    ]
}
BATCH_SCHEMA = object_schema({"results": array_schema(BATCH_RESULT_SCHEMA, most=50)})
