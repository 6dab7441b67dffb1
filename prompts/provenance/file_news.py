"""Whether files that words came from say something else by now, or are gone."""

from collections.abc import Iterable

from django.utils.translation import gettext as _

from personas.models import Workspace
from prompts.assembly.segments import Origin
from prompts.versions.parts import is_key
from skills.models import ContextFile


def news_of(workspace: Workspace | int, origins: Iterable[Origin]) -> dict[Origin, str]:
    """By origin, what has become of its file since; unchanged ones are not told. One query, or none."""
    files = {one for one in origins if one.kind == "context_file" and one.revision and is_key(one.id)}
    if not files:
        return {}
    rows = ContextFile.objects.in_workspace(workspace).filter(pk__in={int(one.id) for one in files})
    now = {
        pk: (is_there, number)
        for pk, is_there, number in rows.values_list("pk", "is_there", "newest__number")
    }
    told = {one: news(one.revision, *now[int(one.id)]) for one in files if int(one.id) in now}
    return {one: words for one, words in told.items() if words}


def news(revision: int, is_there: bool, newest: int | None) -> str:
    if not is_there:
        return _("Source gone")
    if newest is None or newest == revision:
        return ""
    return _("Source changed: revision %(number)s now") % {"number": newest}
