"""Names in a sentence: the first few, and how many more there are."""

from collections.abc import Sequence

from django.utils.translation import ngettext

DEFAULT_SHOWN = 3


def format_short_list(names: Sequence[str], shown: int = DEFAULT_SHOWN) -> str:
    """“Juniper, Fox, Mira and 2 more”."""
    listed, more = ", ".join(names[:shown]), len(names) - shown
    if more <= 0:
        return listed
    words = ngettext("%(names)s and %(count)s more", "%(names)s and %(count)s more", more)
    return words % {"names": listed, "count": more}
