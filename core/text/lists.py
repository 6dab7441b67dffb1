"""Names in a sentence: the first few, and how many more there are."""

from collections.abc import Sequence

from django.utils.translation import ngettext

SHOWN = 3


def first_few(names: Sequence[str], shown: int = SHOWN) -> str:
    """“Juniper, Fox, Mira and 2 more”."""
    listed, more = ", ".join(names[:shown]), len(names) - shown
    if more <= 0:
        return listed
    words = ngettext("%(names)s and %(count)s more", "%(names)s and %(count)s more", more)
    return words % {"names": listed, "count": more}
