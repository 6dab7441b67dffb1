"""Build a version again for a call that changes its inputs, such as its data, limits or tools.

The version stays the same: the ledger records what the call changed, so a replay gives the same bytes.
"""

import json
from dataclasses import replace

from core.db.workspace_scope import workspace_scope
from personas.errors import InvalidInput
from prompts.assembly.builder import AssembledPrompt, build_changed_prompt
from prompts.assembly.call_inputs import apply_call_inputs, mask_hidden_fields, parse_json_object
from prompts.assembly.data_inventory import list_shortened_values, summarize_names
from prompts.assembly.errors import AssemblyError
from prompts.assembly.inputs import PromptInputs
from prompts.assembly.layouts import LAYOUTS
from prompts.assembly.slots import Slots
from prompts.models import PromptVersion
from prompts.publishing.versions.segments import encode_json
from prompts.publishing.versions.stored_inputs import get_inputs_salt, load_input_contents, unpack_inputs
from prompts.publishing.versions.tool_definitions import list_definitions_json
from prompts.serving.cache import CachedVersion, SaltedInputs
from prompts.serving.rendered_prompt import build_render_parts
from prompts.serving.warnings import get_assembly_warnings

# The layouts that show the data.
DATA_LAYOUTS = frozenset(name for name, layout in LAYOUTS.items() if "data" in layout.used)
# By path in an assembly error: the field of the request, if its name differs.
REQUEST_FIELDS = {"data.signature": "signature", "data.values": "data", "limits.parts": "limits.sections"}


def get_version_inputs(workspace_id: int, version: CachedVersion) -> PromptInputs:
    """Return the inputs of a version. They are loaded once and cached with the version."""
    if not version.inputs:
        with workspace_scope(workspace_id):
            rows = PromptVersion.objects.in_workspace(workspace_id).only("lockfile", "workspace_id")
            row = rows.get(pk=version.version_id)
            contents = load_input_contents(row, has_erased_parts=True)
            salt = get_inputs_salt(workspace_id, contents)
        inputs = unpack_inputs(row.lockfile["inputs"], contents)
        version.inputs.append(SaltedInputs(inputs, salt))
    return version.inputs[0].inputs


def mask_call_data(slots: Slots, inputs: PromptInputs) -> Slots:
    """Remove the values of hidden fields from the data, before the ledger stores it."""
    if not slots.data:
        return slots
    hidden = frozenset([*slots.hidden, *(inputs.data.hidden if inputs.data else ())])
    values = mask_hidden_fields(parse_json_object(slots.data, "data"), hidden)
    return replace(slots, data=json.dumps(values, ensure_ascii=False, separators=(",", ":")))


def build_for_call(version: CachedVersion, inputs: PromptInputs, slots: Slots) -> CachedVersion:
    """Return the version as this call builds it; it is not cached."""
    prompt, shortened = assemble_for_call(version.layout, inputs, slots)
    # Files and skills were left out by the build of the version, so its warnings about them are kept.
    warnings = get_assembly_warnings(prompt.report)._replace(withheld=version.warnings.withheld)
    if shortened and version.layout in DATA_LAYOUTS:
        notice = f"The samples of {summarize_names(shortened)} show only a part of the data."
        warnings = warnings._replace(text=(*warnings.text, notice))
    tools = encode_json(list_definitions_json(prompt.tools)).decode() if prompt.tools else ""
    return replace(
        version,
        parts=build_render_parts(prompt.segments),
        tools=tools,
        warnings=warnings,
        is_built_for_call=True,
        last_rendered=[],
    )


def assemble_for_call(layout: str, inputs: PromptInputs, slots: Slots) -> tuple[AssembledPrompt, list[str]]:
    """Build the prompt with the inputs of the call, and list the data that its samples shorten.

    Raise InvalidInput, which names the field of the request, if the inputs do not fit.
    """
    try:
        changed = apply_call_inputs(inputs, slots)
        shortened = list_shortened_values(changed.data, changed.limits) if slots.data else []
        return build_changed_prompt(LAYOUTS[layout], inputs, slots), shortened
    except AssemblyError as error:
        raise InvalidInput.on(get_request_field(error.path), error.message) from error


def get_request_field(path: str) -> str:
    for prefix, field in REQUEST_FIELDS.items():
        if path == prefix or path.startswith((f"{prefix}.", f"{prefix}[")):
            return field + path.removeprefix(prefix)
    return path or "data"
