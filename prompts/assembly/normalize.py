"""Text in one form: LF line ends, and nothing that UTF-8 cannot carry."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from prompts.assembly.errors import AssemblyError
from prompts.assembly.segments import Origin, Segment
from prompts.assembly.text import normalize_line_ends

T = TypeVar("T")


def normalize_inputs(value: T) -> T:
    """The same inputs with LF line ends in every string, however deep."""
    changed: Any = value
    if isinstance(value, str):
        changed = normalize_line_ends(value)
    elif isinstance(value, Origin):
        pass
    elif isinstance(value, tuple):
        changed = tuple(normalize_inputs(item) for item in value)
    elif isinstance(value, list):
        changed = [normalize_inputs(item) for item in value]
    elif isinstance(value, Mapping):
        changed = {normalize_inputs(key): normalize_inputs(item) for key, item in value.items()}
    elif is_dataclass(value) and not isinstance(value, type):
        changed = replace(
            value, **{each.name: normalize_inputs(getattr(value, each.name)) for each in fields(value)}
        )
    return changed  # type: ignore[no-any-return]


def check_encodable_texts(texts: Sequence[str], segments: Sequence[Segment]) -> None:
    """A lone surrogate would only fail when the prompt is sent: say where it is."""
    try:
        for text in texts:
            # A few odd characters somewhere are no reason to encode everything.
            if not text.isascii():
                text.encode()
    except UnicodeEncodeError as error:
        odd = error.object[error.start]
        section = next(segment.section for segment in segments if odd in segment.text)
        raise AssemblyError(section, f"the character U+{ord(odd):04X} is half of a pair") from None
