"""Lists of names for sentences: all of them, or the first few and how many more there are."""

from collections.abc import Sequence

from django.utils.translation import gettext, ngettext

DEFAULT_SHOWN = 3


def format_list(names: Sequence[str]) -> str:
    """Join names to a text such as “Juniper, Fox and Mira”."""
    if len(names) < 2:
        return "".join(names)
    return gettext("%(names)s and %(last)s") % {"names": ", ".join(names[:-1]), "last": names[-1]}


def format_short_list(names: Sequence[str], limit: int = DEFAULT_SHOWN) -> str:
    """Join the first names to a text such as “Juniper, Fox, Mira and 2 more”."""
    more = len(names) - limit
    if more <= 0:
        return format_list(names)
    template = ngettext("%(names)s and %(count)s more", "%(names)s and %(count)s more", more)
    return template % {"names": ", ".join(names[:limit]), "count": more}
