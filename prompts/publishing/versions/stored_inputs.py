"""Store the inputs of a version, so that a call can build the version again with other data or limits.

The manifest names the content of each part (a record or file) by its digest and holds the plain values. Lists
of parts are separate contents, because the prompts of a workspace have most lists in common. The lockfile of
the version contains the digest of the manifest.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

from core.shared_cache import SharedLRUCache
from personas.contents.services import SaltedDigest
from personas.models import sha256_digest
from prompts.assembly.builder import AssembledPrompt, build_changed_prompt
from prompts.assembly.call_inputs import changes_inputs
from prompts.assembly.inputs import PromptInputs
from prompts.assembly.json_codec import dataclass_json, get_field_default, parse_dataclass
from prompts.assembly.layouts import LAYOUTS
from prompts.assembly.segments import Origin
from prompts.assembly.slots import Slots
from prompts.models import PromptVersion
from prompts.proof.text_salts import combine_input_salts
from prompts.publishing.versions.segments import encode_json
from prompts.publishing.versions.selectors import get_content_salts, get_contents


def build_call_prompt(version: PromptVersion, slots: Slots) -> AssembledPrompt | None:
    """Build a version with the inputs of a call, without filling slots; None if the call changes no input."""
    if not changes_inputs(slots):
        return None
    return build_changed_prompt(LAYOUTS[version.layout], load_inputs(version), slots)


class InputsUnavailable(LookupError):
    """Some inputs of the version were erased."""


class EncodedPart(NamedTuple):
    """A part with its JSON and the plain SHA-256 of the JSON."""

    part: Any
    digest: str
    data: bytes


@dataclass
class PartEncoder:
    """Encode each part once for all prompts of a batch, because they have most parts in common."""

    # Keyed by id(part). Holding the part keeps its id from being reused.
    encoded: dict[int, EncodedPart] = field(default_factory=dict)

    def encode(self, part: Any) -> EncodedPart:
        encoded = self.encoded.get(id(part))
        if encoded is None:
            encoded = self.encoded[id(part)] = encode_part(part)
        return encoded


# An edit usually changes one part of a prompt, so encoded parts are cached, up to this many bytes in total.
# The cache key is the origin of the part without the revision: a new revision replaces the old entry.
MAX_ENCODED_BYTES = 8_000_000
ENCODED_PARTS: SharedLRUCache[tuple[str, str, str], EncodedPart] = SharedLRUCache(
    MAX_ENCODED_BYTES, lambda encoded: get_encoded_size(encoded.data)
)


def get_encoded_size(data: bytes) -> int:
    """Return about how much memory an entry needs: its JSON, the part itself, and their objects."""
    return 2 * len(data) + 1_000


def encode_part(part: Any) -> EncodedPart:
    """Encode a part, or return the encoded form of an equal part of the same record or file."""
    kind, record_id, _, path = part.origin
    known = ENCODED_PARTS.find((kind, record_id, path))
    if known is not None and type(known.part) is type(part) and known.part == part:
        return known._replace(part=part)
    data = encode_json(dataclass_json(part))
    encoded = EncodedPart(part, sha256_digest(data), data)
    if get_encoded_size(data) <= MAX_ENCODED_BYTES:
        ENCODED_PARTS.store((kind, record_id, path), encoded)
    return encoded


@dataclass
class PackedInputs:
    """The inputs of a version as stored: digest of the manifest, and the manifest and its lists by digest.

    The parts are stored before, as salted contents.
    """

    digest: str
    contents: dict[str, bytes]


def encode_input_parts(inputs: PromptInputs, encoder: PartEncoder) -> dict[str, bytes]:
    """Return the JSON of all parts by its plain SHA-256."""
    values = [getattr(inputs, input_field.name) for input_field in fields(inputs)]
    members = [part for value in values for part in (value if isinstance(value, tuple) else (value,))]
    encoded = [encoder.encode(part) for part in members if has_origin(part)]
    return {part.digest: part.data for part in encoded}


def pack_inputs(
    inputs: PromptInputs, encoder: PartEncoder, salted: Mapping[str, SaltedDigest]
) -> PackedInputs:
    """Pack the manifest of the inputs. `salted` has the digests of the parts by their plain SHA-256.

    Manifest and lists hold salted digests and settings. Nothing of them is erased, so they are not salted.
    """
    contents: dict[str, bytes] = {}

    def keep(data: bytes) -> str:
        digest = sha256_digest(data)
        contents[digest] = data
        return digest

    def get_digest(part: Any) -> str:
        return salted[encoder.encode(part).digest].digest

    manifest: dict[str, Any] = {}
    for name in [input_field.name for input_field in fields(inputs)]:
        value = getattr(inputs, name)
        if value == get_field_default(PromptInputs, name):
            continue
        if has_origin(value):
            manifest[name] = {"part": get_digest(value)}
        elif isinstance(value, tuple) and value and has_origin(value[0]):
            manifest[name] = {"parts": keep(encode_json([get_digest(part) for part in value]))}
        else:
            manifest[name] = {"value": dataclass_json(value)}
    return PackedInputs(keep(encode_json(manifest)), contents)


def has_origin(value: Any) -> bool:
    return isinstance(getattr(value, "origin", None), Origin)


def list_manifest_digests(manifest: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """List the digests that a manifest names: of single parts, and of lists of parts."""
    members = manifest.values()
    return (
        [member["part"] for member in members if "part" in member],
        [member["parts"] for member in members if "parts" in member],
    )


def load_inputs(version: PromptVersion) -> PromptInputs:
    """Load the inputs of a version with three queries; raise InputsUnavailable if a part was erased."""
    return unpack_inputs(version.lockfile["inputs"], load_input_contents(version))


def load_remaining_inputs(version: PromptVersion) -> PromptInputs:
    """Load the inputs of a version without the parts that were erased."""
    contents = load_input_contents(version, has_erased_parts=True)
    return unpack_inputs(version.lockfile["inputs"], contents)


def load_input_contents(version: PromptVersion, *, has_erased_parts: bool = False) -> dict[str, bytes]:
    """Load the manifest of a version, its lists and its parts, by digest.

    With `has_erased_parts`, parts that were erased are left out. Otherwise they raise InputsUnavailable.
    """
    digest = version.lockfile["inputs"]
    contents = require_all(version.workspace_id, [digest])
    names, part_lists = list_manifest_digests(json.loads(contents[digest]))
    lists = require_all(version.workspace_id, part_lists)
    names += [part for data in lists.values() for part in json.loads(data)]
    parts = require_all(version.workspace_id, names, may_be_erased=has_erased_parts)
    return contents | lists | parts


def get_inputs_salt(workspace_id: int, digests: Iterable[str]) -> str:
    """Return the salt of the contents of inputs, which are given by digest."""
    named = set(digests)
    return combine_input_salts(named, get_content_salts(workspace_id, named))


def require_all(
    workspace_id: int, digests: Iterable[str], *, may_be_erased: bool = False
) -> dict[str, bytes]:
    wanted = set(digests)
    stored = get_contents(workspace_id, wanted)
    found = {digest: data for digest, data in stored.items() if data is not None}
    if len(stored if may_be_erased else found) < len(wanted):
        raise InputsUnavailable
    return found


def unpack_inputs(digest: str, contents: Mapping[str, bytes]) -> PromptInputs:
    """Build the inputs from the manifest; parts that are not among the contents are left out."""
    manifest = json.loads(contents[digest])
    values = {name: unpack_member(one, contents) for name, one in manifest.items() if has_data(one, contents)}
    return parse_dataclass(PromptInputs, values)


def has_data(member: Mapping[str, Any], contents: Mapping[str, bytes]) -> bool:
    return "part" not in member or member["part"] in contents


def unpack_member(member: Mapping[str, Any], contents: Mapping[str, bytes]) -> Any:
    if "part" in member:
        return json.loads(contents[member["part"]])
    if "parts" in member:
        return [
            json.loads(contents[part]) for part in json.loads(contents[member["parts"]]) if part in contents
        ]
    return member["value"]
