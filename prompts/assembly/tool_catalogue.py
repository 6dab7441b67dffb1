"""Tools as a program's author needs them: a heading, the signature in a code block, what the tool does."""

from collections.abc import Mapping
from typing import Any

from prompts.assembly.errors import AssemblyError
from prompts.assembly.inputs import PromptInputs, Tool
from prompts.assembly.text import close_code_fences, collapse_whitespace, format_code_block
from prompts.assembly.tool_signatures import parse_tool_signature

SIMPLE_TYPES = {
    "string": ":string",
    "integer": ":int",
    "number": ":float",
    "boolean": ":bool",
    "array": "[:any]",
}
# Deeper than this a type helps nobody: the rest of it is :any.
MAX_DEPTH = 8


def format_tool_block(name: str, signature: str, description: str) -> str:
    """One tool; neither its signature nor its description can leave a code block open."""
    said = f"### {name}\n{format_code_block(signature)}"
    return f"{said}\n{close_code_fences(description)}" if description else said


def list_tool_blocks(inputs: PromptInputs, use: str) -> list[tuple[Tool, str]]:
    """The agent's tools of one use, in their order, each with its block."""
    return [
        (tool, build_tool_block(tool, place)) for place, tool in enumerate(inputs.tools) if tool.use == use
    ]


def build_tool_block(tool: Tool, place: int) -> str:
    """A tool with its own signature, else with the one that its parameters imply."""
    name = collapse_whitespace(tool.name)
    if not name:
        raise AssemblyError(f"tools[{place}].name", "must not be empty")
    if tool.signature.strip():
        signature = parse_tool_signature(tool.signature, f"tools[{place}].signature").text(name)
    else:
        signature = f"{name}({format_schema_fields(tool.parameters or {}, MAX_DEPTH)}) -> :any"
    return format_tool_block(name, signature, tool.description.strip() or tool.snippet.strip())


def format_schema_fields(schema: Mapping[str, Any], depth: int) -> str:
    """The properties of a JSON schema as `name :type`; those not required may be absent."""
    properties, required = schema.get("properties"), schema.get("required")
    if not isinstance(properties, Mapping):
        return ""
    needed = (
        {name for name in required if isinstance(name, str)} if isinstance(required, list | tuple) else ()
    )
    said = []
    for name, property_ in properties.items():
        kind, may_be_absent = get_schema_type(property_, depth - 1)
        mark = "?" if may_be_absent or name not in needed else ""
        said.append(f"{collapse_whitespace(name)} {kind}{mark}")
    return ", ".join(said)


def get_schema_type(schema: Any, depth: int) -> tuple[str, bool]:
    """The type a JSON schema stands for, and whether it allows null; what it leaves open is `:any`."""
    if not isinstance(schema, Mapping) or depth < 1:
        return ":any", False
    kind = schema.get("type")
    kinds = list(kind) if isinstance(kind, list | tuple) else [kind]
    named = [each for each in kinds if each != "null"]
    word = named[0] if len(named) == 1 and isinstance(named[0], str) else ""
    return format_schema_type(word, schema, depth), "null" in kinds


def format_schema_type(word: str, schema: Mapping[str, Any], depth: int) -> str:
    if word == "object":
        inside = format_schema_fields(schema, depth)
        return f"{{{inside}}}" if inside else ":map"
    if word == "array" and "items" in schema:
        kind, is_optional = get_schema_type(schema["items"], depth - 1)
        return f"[{kind}{'?' if is_optional else ''}]"
    return SIMPLE_TYPES.get(word, ":any")


def list_tool_problems(inputs: PromptInputs, reserved: frozenset[str]) -> list[str]:
    """Signatures that speak of another tool, and tools that take the name of one the layout brings."""
    said = []
    for place, tool in enumerate(inputs.tools):
        name = tool.name.strip()
        if name in reserved:
            said.append(f"tools[{place}].name: {name} is the name of a tool that every agent has")
        # It was read before: what stands before the bracket is its name.
        own = tool.signature.partition("(")[0].strip()
        if own and own != name:
            said.append(f"tools[{place}].signature: is that of {own}, not of {name}")
    return said
