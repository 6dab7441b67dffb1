"""Rebuild the text of an evidence bundle from its segments and slots alone, without a database."""

from collections.abc import Mapping, Sequence
from typing import Any

# Imported for its side effect: each layout registers the renderers of its slots.
import prompts.assembly.layouts  # noqa: F401
from prompts.assembly.slots import build_slot_spans, fill_spans
from prompts.proof.evidence_reader import EvidenceSegment
from prompts.serving.slots import slots_from_json
from prompts.versions.segments import unpack_segments


def rebuild_evidence_text(segments: Sequence[EvidenceSegment], slots: Mapping[str, Any]) -> str:
    """Join the segments and fill in the slot values, with the same code that serves prompts."""
    contents = {
        segment.stored[name]: text.encode()
        for segment in segments
        for name, text in (("content", segment.text), ("given", segment.given))
        if name in segment.stored and text is not None
    }
    rows = [segment.stored for segment in segments]
    return fill_spans(build_slot_spans(unpack_segments(rows, contents)), slots_from_json(slots))
