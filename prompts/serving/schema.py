"""JSON Schema of the responses that contain a prompt.

It is published in the OpenAPI document, and a test validates real responses against it.
"""

from personas.api.problems import PROBLEM_SCHEMA
from personas.api.schema import (
    Schema,
    any_object_schema,
    array_schema,
    datetime_schema,
    digest_schema,
    enum_schema,
    integer_schema,
    nullable_schema,
    object_schema,
)
from prompts.assembly.segments import VOLATILITY_LEVELS
from prompts.publishing.versions.text_schema import (
    BLOCK_SCHEMA,
    BLOCKS_DESCRIPTION,
    SEGMENT_SCHEMA,
    TEXT_SCHEMA,
    TOKENS_SCHEMA,
    TOOL_SCHEMA,
)

MESSAGE_SCHEMA = object_schema(
    {"role": enum_schema(("user", "assistant"), title="MessageRole"), "content": TEXT_SCHEMA}, title="Message"
)
MAX_ITEMS = 100_000
SERVED_PROMPT_SCHEMA = object_schema(
    {
        "version": integer_schema(1, description="The number of the version."),
        "digest": digest_schema(description="Digest of the version. The ETag contains it."),
        "layout": TEXT_SCHEMA,
        "created_at": datetime_schema(description="When the version was built."),
        "tokens": TOKENS_SCHEMA,
        "served_digest": digest_schema(description="SHA-256 of the text in UTF-8."),
        "text": TEXT_SCHEMA,
        "blocks": array_schema(BLOCK_SCHEMA, most=len(VOLATILITY_LEVELS), description=BLOCKS_DESCRIPTION),
        "segments": array_schema(
            SEGMENT_SCHEMA,
            most=MAX_ITEMS,
            description="Consecutive ranges that cover the whole text.",
        ),
        "agent": TEXT_SCHEMA,
        "channel": TEXT_SCHEMA,
        "label": TEXT_SCHEMA,
        "as_of": nullable_schema(datetime_schema(description="The requested time.")),
        "slots": any_object_schema(description="The values of the call, as recorded."),
        "tools": array_schema(
            TOOL_SCHEMA, most=MAX_ITEMS, description="Tool definitions for the provider's API."
        ),
        "warnings": array_schema(TEXT_SCHEMA, most=MAX_ITEMS),
        "messages": array_schema(MESSAGE_SCHEMA),
        "ledger_id": integer_schema(1),
    },
    title="Prompt",
)
SERVED, NOT_MODIFIED, FAILED = "served", "not_modified", "failed"


def build_batch_result_schema(status: str, title: str, **fields: Schema) -> Schema:
    requested = {"agent": TEXT_SCHEMA, "channel": TEXT_SCHEMA, "label": TEXT_SCHEMA}
    return object_schema({"status": {"type": "string", "const": status}, **requested, **fields}, title=title)


BATCH_RESULT_SCHEMAS = {
    SERVED: build_batch_result_schema(SERVED, "ServedResult", prompt=SERVED_PROMPT_SCHEMA),
    NOT_MODIFIED: build_batch_result_schema(NOT_MODIFIED, "NotModifiedResult", ledger_id=integer_schema(1)),
    FAILED: build_batch_result_schema(FAILED, "FailedResult", problem=PROBLEM_SCHEMA),
}
BATCH_RESULT_SCHEMA = {
    "oneOf": list(BATCH_RESULT_SCHEMAS.values()),
    "discriminator": {
        "propertyName": "status",
        "mapping": {
            status: f"#/components/schemas/{schema['title']}"
            for status, schema in BATCH_RESULT_SCHEMAS.items()
        },
    },
    "title": "BatchResult",
}
BATCH_SCHEMA = object_schema({"results": array_schema(BATCH_RESULT_SCHEMA, most=50)}, title="BatchResults")
