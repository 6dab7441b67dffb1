"""Rebuild the text of an evidence bundle from its segments, slots and inputs alone, without a database."""

from prompts.assembly.builder import build_prompt
from prompts.assembly.call_inputs import apply_call_inputs, changes_inputs

# The layouts also register the renderers of their slots.
from prompts.assembly.layouts import LAYOUTS
from prompts.assembly.segments import Segment
from prompts.assembly.slots import Slots, build_slot_spans, fill_spans
from prompts.proof.evidence_reader import EvidenceBundle
from prompts.publishing.versions.segments import unpack_segments
from prompts.publishing.versions.stored_inputs import unpack_inputs
from prompts.serving.slot_values import slots_from_json


def rebuild_evidence_text(bundle: EvidenceBundle) -> str:
    """Join the segments and fill in the slot values, with the same code that serves prompts."""
    slots = slots_from_json(bundle.call_values)
    segments = rebuild_segments(bundle, slots) if changes_inputs(slots) else read_segments(bundle)
    return fill_spans(build_slot_spans(segments), slots)


def read_segments(bundle: EvidenceBundle) -> tuple[Segment, ...]:
    contents = {
        segment.stored[name]: text.encode()
        for segment in bundle.segments
        for name, text in (("content", segment.text), ("given", segment.given))
        if name in segment.stored and text is not None
    }
    return unpack_segments([segment.stored for segment in bundle.segments], contents)


def rebuild_segments(bundle: EvidenceBundle, slots: Slots) -> tuple[Segment, ...]:
    """Build the version with the inputs that the call changed."""
    contents = {digest: text.encode() for digest, text in bundle.inputs.items()}
    inputs = unpack_inputs(str(bundle.lockfile.get("inputs", "")), contents)
    return build_prompt(LAYOUTS[bundle.version.layout], apply_call_inputs(inputs, slots)).segments
