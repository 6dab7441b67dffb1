"""The six dialects; a new one is a module here and a line below."""

from prompts.assembly.layout import Layout
from prompts.assembly.layouts.nova import NOVA
from prompts.assembly.layouts.opal import OPAL
from prompts.assembly.layouts.pi import PI

LAYOUTS: dict[str, Layout] = {layout.name: layout for layout in (NOVA, OPAL, PI)}
