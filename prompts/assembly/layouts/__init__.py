"""The six layouts; a new one is a module in this package and an entry in `LAYOUTS`."""

from prompts.assembly.layout import Layout
from prompts.assembly.layouts.dramatis import DRAMATIS_LAYOUT
from prompts.assembly.layouts.moltis import MOLTIS_LAYOUT
from prompts.assembly.layouts.nova import NOVA_LAYOUT
from prompts.assembly.layouts.opal import OPAL_LAYOUT
from prompts.assembly.layouts.pi import PI_LAYOUT
from prompts.assembly.layouts.ptc import PTC_LAYOUT

LAYOUTS: dict[str, Layout] = {
    layout.name: layout
    for layout in (DRAMATIS_LAYOUT, OPAL_LAYOUT, PI_LAYOUT, MOLTIS_LAYOUT, NOVA_LAYOUT, PTC_LAYOUT)
}
