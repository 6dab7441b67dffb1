"""Text in one form: LF line ends, and nothing that UTF-8 cannot carry."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from prompts.assembly.errors import AssemblyError
from prompts.assembly.segments import Origin, Segment
from prompts.assembly.text import normalised

T = TypeVar("T")


def normal(value: T) -> T:
    """The same inputs with LF line ends in every string, however deep."""
    changed: Any = value
    if isinstance(value, str):
        changed = normalised(value)
    elif isinstance(value, Origin):
        pass
    elif isinstance(value, tuple):
        changed = tuple(normal(item) for item in value)
    elif isinstance(value, list):
        changed = [normal(item) for item in value]
    elif isinstance(value, Mapping):
        changed = {normal(key): normal(item) for key, item in value.items()}
    elif is_dataclass(value) and not isinstance(value, type):
        changed = replace(value, **{each.name: normal(getattr(value, each.name)) for each in fields(value)})
    return changed  # type: ignore[no-any-return]


def refuse_unwritable(texts: Sequence[str], segments: Sequence[Segment]) -> None:
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
