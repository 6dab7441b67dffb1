"""A fault in a layout, which the tests of its seed must detect with the library and by REST."""

from contextlib import AbstractContextManager
from dataclasses import replace
from unittest.mock import patch

from prompts.assembly.layouts import LAYOUTS


def drop_first_part(name: str) -> AbstractContextManager[object]:
    """Replace the layout by one without its first part, inside the context."""
    layout = LAYOUTS[name]
    return patch.dict(LAYOUTS, {name: replace(layout, parts=layout.parts[1:])})
