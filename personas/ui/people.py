"""Show the names of members where an author is stored as an email address."""

from contextvars import ContextVar

from django.utils.html import format_html
from django.utils.safestring import SafeString

from personas.models import Membership


class PeopleNames:
    """The names of the members of a workspace by email address, loaded when the first one is needed."""

    def __init__(self, workspace_id: int) -> None:
        self.workspace_id = workspace_id
        self.names: dict[str, str] | None = None

    def find(self, label: str) -> str:
        """Return the name of the member with this address; empty if there is none, or without a name."""
        if "@" not in label:
            return ""
        if self.names is None:
            rows = Membership.objects.in_workspace(self.workspace_id)
            self.names = dict(rows.values_list("user__email", "user__name"))
        return self.names.get(label, "")


_people: ContextVar[PeopleNames | None] = ContextVar("people_names", default=None)


def set_people_workspace(workspace_id: int | None) -> None:
    """Set the workspace whose members the functions below know, at the start and end of a request."""
    _people.set(PeopleNames(workspace_id) if workspace_id else None)


def get_person_name(label: str) -> str:
    """Return the name for a stored author label, or the label itself if it is no member's address."""
    people = _people.get()
    return (people.find(str(label)) if people else "") or str(label)


def render_person(label: str) -> SafeString:
    """Render a stored author label as the member's name, with the label as tooltip."""
    name = get_person_name(label)
    if name == str(label):
        return format_html("<bdi>{}</bdi>", name)
    return format_html('<bdi title="{}">{}</bdi>', label, name)
