"""What an answer with a prompt looks like, as JSON Schema: published, and held to by a test."""

from personas.api.schema import anything, choice, digest, flag, listed, moment, nullable, shape, whole
from prompts.assembly.segments import VOLATILITY

TEXT = {"type": "string"}
PLACE = "In characters of the text, that is in Unicode code points."
VERSION = shape({"number": whole(1), "digest": digest(), "layout": TEXT, "created_at": moment()})
SEGMENT = shape(
    {
        "section": TEXT,
        "volatility": choice(VOLATILITY, description="How often it changes."),
        "range": {"type": "array", "items": whole(), "minItems": 2, "maxItems": 2, "description": PLACE},
        "slot": nullable({"type": "string", "description": "What a call may fill it with."}),
        "cacheable": flag(description="Nothing up to its end changes with a session or a turn."),
    }
)
BOUNDARY = shape(
    {
        "offset": whole(description=f"A provider's cache may break here. {PLACE}"),
        "volatility": choice(VOLATILITY, description="Everything before it changes no quicker than this."),
    }
)
TOKENS = shape(
    {
        "total": whole(description="Of the version as it was built; what a call adds is not counted."),
        "sections": {"type": "object", "additionalProperties": whole()},
    }
)
TOOL = shape({"name": TEXT, "description": TEXT, "parameters": anything()}, ("name",))
MESSAGE = shape({"role": choice(("user", "assistant")), "text": TEXT})
MANY = 100_000
PROMPT = shape(
    {
        "version": VERSION,
        "digest": digest(description="Of the version; the ETag names it."),
        "tokens": TOKENS,
        "served_digest": digest(description="SHA-256 of the text in UTF-8."),
        "text": TEXT,
        "segments": listed(
            SEGMENT, most=MANY, description="They follow each other and cover the whole text."
        ),
        "cache_boundaries": listed(BOUNDARY, most=len(VOLATILITY)),
        "agent": TEXT,
        "channel": TEXT,
        "label": TEXT,
        "as_of": nullable(moment(description="The moment that was asked for.")),
        "slots": anything(description="The facts of the call as they were recorded."),
        "tools": listed(TOOL, most=MANY, description="Definitions for the provider's interface."),
        "warnings": listed(TEXT, most=MANY),
        "messages": listed(MESSAGE),
        "ledger_id": whole(1),
    }
)
RESULT = {
    "oneOf": [
        shape({"status": {"const": 200}, "prompt": PROMPT}),
        shape({"status": {"const": 304}, "ledger_id": whole(1)}),
        shape({"status": whole(400, 599), "problem": anything()}),
    ]
}
BATCH = shape({"results": listed(RESULT, most=50)})
