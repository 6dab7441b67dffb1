"""Format tools for generated programs: a heading, the signature in a code block, and the description."""

from collections.abc import Mapping
from typing import Any

from prompts.assembly.errors import AssemblyError
from prompts.assembly.inputs import PromptInputs, ToolInput
from prompts.assembly.text import close_code_fences, collapse_whitespace, format_code_block
from prompts.assembly.tool_signatures import parse_tool_signature

SIMPLE_TYPES = {
    "string": ":string",
    "integer": ":int",
    "number": ":float",
    "boolean": ":bool",
    "array": "[:any]",
}
# Types nested deeper than this are shortened to `:any`.
MAX_DEPTH = 8


def format_tool_block(name: str, signature: str, description: str) -> str:
    """Format one tool; neither its signature nor its description can leave a code block open."""
    block = f"### {name}\n{format_code_block(signature)}"
    return f"{block}\n{close_code_fences(description)}" if description else block


def list_tool_blocks(inputs: PromptInputs, use: str) -> list[tuple[ToolInput, str]]:
    """List the tools of one use (`active` or `planning`) in order, each with its formatted text."""
    return [
        (tool, build_tool_block(tool, index)) for index, tool in enumerate(inputs.tools) if tool.use == use
    ]


def build_tool_block(tool: ToolInput, index: int) -> str:
    """Format a tool with its signature; if it has none, derive the signature from its parameters."""
    name = collapse_whitespace(tool.name)
    if not name:
        raise AssemblyError(f"tools[{index}].name", "must not be empty")
    if tool.signature.strip():
        signature = parse_tool_signature(tool.signature, f"tools[{index}].signature").text(name)
    else:
        signature = f"{name}({format_schema_fields(tool.parameters or {}, MAX_DEPTH)}) -> :any"
    return format_tool_block(name, signature, tool.description.strip() or tool.snippet.strip())


def format_schema_fields(schema: Mapping[str, Any], depth: int) -> str:
    """Format the properties of a JSON schema as `name :type`; optional properties end with `?`."""
    properties, required = schema.get("properties"), schema.get("required")
    if not isinstance(properties, Mapping):
        return ""
    needed = (
        {name for name in required if isinstance(name, str)} if isinstance(required, list | tuple) else ()
    )
    fields = []
    for name, property_ in properties.items():
        kind, may_be_absent = get_schema_type(property_, depth - 1)
        mark = "?" if may_be_absent or name not in needed else ""
        fields.append(f"{collapse_whitespace(name)} {kind}{mark}")
    return ", ".join(fields)


def get_schema_type(schema: Any, depth: int) -> tuple[str, bool]:
    """Return the type of a JSON schema, and whether it allows null; an unspecified type is `:any`."""
    if not isinstance(schema, Mapping) or depth < 1:
        return ":any", False
    kind = schema.get("type")
    kinds = list(kind) if isinstance(kind, list | tuple) else [kind]
    nonnull_types = [type_ for type_ in kinds if type_ != "null"]
    type_name = nonnull_types[0] if len(nonnull_types) == 1 and isinstance(nonnull_types[0], str) else ""
    return format_schema_type(type_name, schema, depth), "null" in kinds


def format_schema_type(type_name: str, schema: Mapping[str, Any], depth: int) -> str:
    if type_name == "object":
        inside = format_schema_fields(schema, depth)
        return f"{{{inside}}}" if inside else ":map"
    if type_name == "array" and "items" in schema:
        kind, is_optional = get_schema_type(schema["items"], depth - 1)
        return f"[{kind}{'?' if is_optional else ''}]"
    return SIMPLE_TYPES.get(type_name, ":any")


def list_tool_problems(inputs: PromptInputs, reserved: frozenset[str]) -> list[str]:
    """List signatures that name another tool, and tools that use a reserved name of the layout."""
    problems = []
    for index, tool in enumerate(inputs.tools):
        name = tool.name.strip()
        if name in reserved:
            problems.append(f"tools[{index}].name: {name} is the name of a tool that every agent has")
        # The build has already parsed the signature, so the text before the bracket is a valid name or empty.
        signature_name = tool.signature.partition("(")[0].strip()
        if signature_name and signature_name != name:
            problems.append(f"tools[{index}].signature: is that of {signature_name}, not of {name}")
    return problems
