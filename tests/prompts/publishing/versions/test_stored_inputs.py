"""Stored inputs: what is packed into contents is read back unchanged, and shared parts are stored once."""

import json

import pytest
from hypothesis import given, settings

from core.salted_digests import salt_digest
from personas.contents.services import SaltedDigest
from prompts.assembly.builder import build_prompt
from prompts.assembly.inputs import Data, MemoryInput, PromptInputs
from prompts.assembly.layouts import LAYOUTS
from prompts.assembly.segments import Origin
from prompts.publishing.versions.stored_inputs import (
    ENCODED_PARTS,
    MAX_ENCODED_BYTES,
    PackedInputs,
    PartEncoder,
    encode_input_parts,
    encode_part,
    list_manifest_digests,
    pack_inputs,
    unpack_inputs,
)
from tests.prompts.assembly import strategies


def pack(inputs: PromptInputs, encoder: PartEncoder) -> PackedInputs:
    """Pack the inputs as a build does, with fixed salts; the contents include the parts."""
    parts = encode_input_parts(inputs, encoder)
    salted = {plain: SaltedDigest(salt_digest(plain, "0" * 32), "0" * 32) for plain in parts}
    packed = pack_inputs(inputs, encoder, salted)
    return PackedInputs(
        packed.digest, packed.contents | {salted[plain].digest: data for plain, data in parts.items()}
    )


@pytest.mark.slow
@settings(max_examples=60)
@given(strategies.inputs)
def test_inputs_are_read_back_and_give_the_same_prompt(inputs):
    packed = pack(inputs, PartEncoder())
    read = unpack_inputs(packed.digest, packed.contents)
    for layout in LAYOUTS.values():
        assert build_prompt(layout, read).segments == build_prompt(layout, inputs).segments


def test_values_keep_the_order_of_their_keys_and_their_numbers():
    inputs = PromptInputs(data=Data({"zeta": 0.5, "alpha": [1, {"b": 1, "a": 2}]}))
    packed = pack(inputs, PartEncoder())
    data = unpack_inputs(packed.digest, packed.contents).data
    assert data is not None
    values = data.values
    assert list(values) == ["zeta", "alpha"]
    assert list(values["alpha"][1]) == ["b", "a"]
    assert values["zeta"] == 0.5


def test_two_prompts_share_the_contents_of_equal_parts_and_lists():
    memories = tuple(MemoryInput(f"Fact {number}.", Origin("memory", str(number), 1)) for number in range(9))
    encoder = PartEncoder()
    first = pack(PromptInputs(agent="one", memories=memories), encoder)
    second = pack(PromptInputs(agent="two", memories=memories), encoder)
    assert len(first.contents) == 11
    assert second.contents.keys() - first.contents.keys() == {second.digest}
    assert list_manifest_digests(json.loads(first.contents[first.digest]))[1][0] in second.contents


def test_an_edit_replaces_the_encoded_part_of_its_record():
    ENCODED_PARTS.clear()
    for revision in range(1, 4):
        encoded = encode_part(MemoryInput(f"Text {revision}.", origin=Origin("memory", "7", revision)))
        assert f"Text {revision}." in encoded.data.decode()
    assert len(ENCODED_PARTS) == 1


def test_a_new_revision_with_equal_values_is_encoded_again():
    """True equals 1 in Python, but not in JSON."""
    for revision, value in enumerate([1, True, 1.0], start=1):
        part = Data({"count": value}, origin=Origin("data", "7", revision))
        assert json.loads(encode_part(part).data)["values"] == {"count": value}
        assert json.dumps({"count": value}, separators=(",", ":")) in encode_part(part).data.decode()


def test_long_parts_do_not_fill_the_memory():
    ENCODED_PARTS.clear()
    for number in range(30):
        encode_part(MemoryInput(f"{number} " + "word " * 100_000, origin=Origin("memory", str(number), 1)))
    assert ENCODED_PARTS.currsize <= MAX_ENCODED_BYTES
    assert 1 < len(ENCODED_PARTS) < 10
    ENCODED_PARTS.clear()
