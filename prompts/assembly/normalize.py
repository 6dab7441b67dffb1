"""Normalize text: LF line ends, and no characters that UTF-8 cannot encode."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from prompts.assembly.errors import AssemblyError
from prompts.assembly.segments import Origin, Segment
from prompts.assembly.text import normalize_line_ends

T = TypeVar("T")


def normalize_inputs(value: T) -> T:
    """Return the inputs with LF line ends in every string, at any depth."""
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
            value, **{field_.name: normalize_inputs(getattr(value, field_.name)) for field_ in fields(value)}
        )
    return changed  # type: ignore[no-any-return]


def check_encodable_texts(texts: Sequence[str], segments: Sequence[Segment]) -> None:
    """Raise AssemblyError for a lone surrogate: UTF-8 cannot encode it, so the prompt could not be sent."""
    try:
        for text in texts:
            # isascii() is cheap, and avoids encoding most texts.
            if not text.isascii():
                text.encode()
    except UnicodeEncodeError as error:
        surrogate = error.object[error.start]
        section = next(segment.section for segment in segments if surrogate in segment.text)
        raise AssemblyError(section, f"the character U+{ord(surrogate):04X} is half of a pair") from None
