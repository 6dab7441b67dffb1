"""The six dialects; a new one is a module here and a line below."""

from prompts.assembly.layout import Layout
from prompts.assembly.layouts.dramatis import DRAMATIS
from prompts.assembly.layouts.moltis import MOLTIS
from prompts.assembly.layouts.nova import NOVA
from prompts.assembly.layouts.opal import OPAL
from prompts.assembly.layouts.pi import PI
from prompts.assembly.layouts.ptc import PTC

LAYOUTS: dict[str, Layout] = {layout.name: layout for layout in (DRAMATIS, OPAL, PI, MOLTIS, NOVA, PTC)}
