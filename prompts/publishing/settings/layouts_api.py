"""REST operation that lists the layouts of prompts."""

from typing import Any

from django.urls import URLPattern

from personas.api.key_limits import Touches
from personas.api.operations import ApiRequest, Operation
from personas.api.pagination import complete_list_response
from personas.api.responses import ApiResponse
from personas.api.schema import boolean_schema, object_schema, page_schema
from personas.api.views import endpoint
from prompts.assembly.layout import Layout
from prompts.assembly.layouts import LAYOUTS

TEXTS_SCHEMA = {"type": "array", "items": {"type": "string"}}
LAYOUT_SCHEMA = object_schema(
    {
        "name": {"type": "string", "description": "As in `layout` of an agent."},
        "summary": {"type": "string"},
        "sections": {
            "type": "array",
            "items": object_schema(
                {
                    "name": {"type": "string"},
                    "volatility": {"type": "string", "description": "How often the section changes."},
                    "slot": {
                        "type": "string",
                        "description": ("What a call can fill in here. Empty otherwise."),
                    },
                    "is_cuttable": boolean_schema(description="Whether it is shortened to fit the budget."),
                },
                title="LayoutSection",
            ),
            "description": "In the order of the prompt.",
        },
        "slots": TEXTS_SCHEMA | {"description": "What a call of `prompt:render` can fill."},
        "inputs": TEXTS_SCHEMA | {"description": "The records and settings that it uses."},
    },
    title="LayoutDetail",
)


def list_layouts(call: ApiRequest) -> ApiResponse:
    return complete_list_response([layout_json(layout) for layout in LAYOUTS.values()])


def layout_json(layout: Layout) -> dict[str, Any]:
    return {
        "name": layout.name,
        "summary": layout.summary,
        "sections": [
            {
                "name": part.name,
                "volatility": part.volatility,
                "slot": part.slot,
                "is_cuttable": part.is_cuttable,
            }
            for part in layout.parts
        ],
        "slots": list(layout.slots),
        "inputs": sorted(layout.used),
    }


urlpatterns: list[URLPattern] = [
    endpoint(
        "layouts",
        "layouts-list",
        get=Operation(
            list_layouts,
            "List layouts",
            operation_id="listLayouts",
            # Any limited key can read layouts: they are part of the product, not rows of the workspace.
            touches=Touches.AGENT,
            answer=page_schema(LAYOUT_SCHEMA),
            note="The formats of prompts, with their sections in order.",
            tag="layouts",
        ),
    ),
]
