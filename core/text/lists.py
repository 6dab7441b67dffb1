"""Short lists of names for sentences: the first few, and how many more there are."""

from collections.abc import Sequence

from django.utils.translation import ngettext

DEFAULT_SHOWN = 3


def format_short_list(names: Sequence[str], limit: int = DEFAULT_SHOWN) -> str:
    """Join the first names to a text such as “Juniper, Fox, Mira and 2 more”."""
    first_names, more = ", ".join(names[:limit]), len(names) - limit
    if more <= 0:
        return first_names
    template = ngettext("%(names)s and %(count)s more", "%(names)s and %(count)s more", more)
    return template % {"names": first_names, "count": more}
