"""JSON Schema of the text of a prompt: segments, blocks, token counts and tool definitions."""

from personas.api.schema import (
    any_object_schema,
    boolean_schema,
    enum_schema,
    integer_schema,
    nullable_schema,
    object_schema,
)
from prompts.assembly.segments import VOLATILITY_LEVELS

TEXT_SCHEMA = {"type": "string"}
OFFSET_DESCRIPTION = "Position in the text, in Unicode code points."
SEGMENT_SCHEMA = object_schema(
    {
        "section": TEXT_SCHEMA,
        "volatility": enum_schema(VOLATILITY_LEVELS, description="How often it changes.", title="Volatility"),
        "range": {
            "type": "array",
            "items": integer_schema(),
            "minItems": 2,
            "maxItems": 2,
            "description": OFFSET_DESCRIPTION,
        },
        "slot": nullable_schema({"type": "string", "description": "What a call can fill in."}),
        "is_cacheable": boolean_schema(
            description=("Whether the text up to its end is the same for all sessions and turns.")
        ),
    },
    title="PromptSegment",
)
BLOCK_SCHEMA = object_schema(
    {
        "text": TEXT_SCHEMA,
        "volatility": enum_schema(
            VOLATILITY_LEVELS,
            description="The text up to the end of the block changes no more often than this.",
            title="Volatility",
        ),
        "is_cacheable": boolean_schema(
            description="Whether the text up to its end is the same for all sessions and turns. Set "
            "a provider's cache breakpoint at the end of such a block, preferably of the "
            "last one."
        ),
    },
    title="PromptBlock",
)
BLOCKS_DESCRIPTION = (
    "The text in blocks, for providers that accept a prompt in blocks. Joined, they are the text."
)
TOKENS_SCHEMA = object_schema(
    {
        "total": integer_schema(
            description="Text and tool definitions of the version, without what a call adds."
        ),
        "text": integer_schema(description="The sum of the sections, as a fetch without slots sends them."),
        "tools": integer_schema(description="All tool definitions of the version."),
        "sections": {"type": "object", "additionalProperties": integer_schema()},
    },
    title="TokenCounts",
)
TOOL_SCHEMA = object_schema(
    {"name": TEXT_SCHEMA, "description": TEXT_SCHEMA, "parameters": any_object_schema()},
    ("name",),
    title="ToolDefinition",
)
