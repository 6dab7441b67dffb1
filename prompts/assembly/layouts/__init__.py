"""The six dialects; a new one is a module here and a line below."""

from prompts.assembly.layout import Layout
from prompts.assembly.layouts.nova import NOVA

LAYOUTS: dict[str, Layout] = {layout.name: layout for layout in (NOVA,)}
