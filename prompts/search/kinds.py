"""The kinds of rows that a typed word may lead to: what is searched in them, and where they live."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.db.models import CharField, F, QuerySet, Value
from django.db.models.expressions import Combinable
from django.db.models.functions import Cast, Coalesce, Concat, NullIf
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from personas.models import (
    Agent,
    ApiKey,
    Channel,
    Identity,
    Membership,
    Memory,
    Responsibility,
    Soul,
    Task,
    Tool,
    UserProfile,
    Workspace,
)
from prompts.models import Release
from skills.models import ContextFile, Skill, Source


@dataclass(frozen=True)
class SearchKind:
    """One table: its title and what else is searched, the route of a row and what stands in its address."""

    name: str
    group: str | Promise
    icon: str
    route: str
    model: Any
    title: Combinable
    # A field of text, or a path to one.
    also: tuple[str, ...] = ()
    # Empty: the whole list is the address.
    key: str = "slug"
    about: str = ""
    # Whether archived rows go to the end.
    is_shelved: bool = True

    def rows(self, workspace: Workspace) -> QuerySet[Any]:
        found: QuerySet[Any] = self.model.objects.in_workspace(workspace)
        return found


def build_numbered_title(word: str) -> Combinable:
    return Concat(Value(word), Cast("number", CharField()), output_field=CharField())


def build_search_kind(
    name: str, group: Promise | str, icon: str, model: Any, title: str | Combinable, **more: Any
) -> SearchKind:
    said: dict[str, Any] = {"route": f"{name}:detail"} | more
    return SearchKind(
        name, group, icon, model=model, title=F(title) if isinstance(title, str) else title, **said
    )


# In the order in which they are shown.
SEARCH_KINDS: tuple[SearchKind, ...] = (
    build_search_kind("agents", _("Agents"), "agents", Agent, "name", also=("slug",), about="slug"),
    build_search_kind(
        "identities", _("Identities"), "identity", Identity, "label", also=("name",), about="name"
    ),
    build_search_kind("souls", _("Souls"), "soul", Soul, "label"),
    build_search_kind(
        "user-profiles", _("User profiles"), "profile", UserProfile, "label", also=("name",), about="name"
    ),
    build_search_kind(
        "memories", _("Memories"), "memory", Memory, "text", also=("text", "source"), key="pk", about="state"
    ),
    build_search_kind(
        "responsibilities",
        _("Responsibilities"),
        "duty",
        Responsibility,
        "title",
        key="pk",
        about="agent__name",
    ),
    build_search_kind(
        "tasks", _("Tasks"), "task", Task, "title", also=("number",), key="number", about="status"
    ),
    build_search_kind("skills", _("Skills"), "skill", Skill, "name", also=("description",), key="name"),
    build_search_kind(
        "tools", _("Tools"), "tool", Tool, "name", also=("snippet",), key="name", about="snippet"
    ),
    build_search_kind("channels", _("Channels"), "channel", Channel, "name", also=("slug",), about="slug"),
    build_search_kind("sources", _("Sources"), "source", Source, "label", also=("folder",), about="folder"),
    build_search_kind(
        "files",
        _("Found files"),
        "file",
        ContextFile,
        "path",
        also=("name",),
        key="pk",
        about="source__label",
        is_shelved=False,
    ),
    build_search_kind(
        "releases",
        _("Releases"),
        "release",
        Release,
        build_numbered_title("Release "),
        also=("message",),
        key="number",
        about="message",
        is_shelved=False,
    ),
    build_search_kind(
        "keys", _("Keys"), "key", ApiKey, "name", also=("prefix",), key="pk", about="prefix", is_shelved=False
    ),
    build_search_kind(
        "members",
        _("Members"),
        "members",
        Membership,
        Coalesce(NullIf("user__name", Value("")), "user__email"),
        also=("user__email",),
        route="members:list",
        key="",
        about="user__email",
        is_shelved=False,
    ),
)

# Rows that are shown only to those who may see their pages.
KIND_PERMISSIONS = {"keys": "manage_keys"}
PermissionTest = Callable[[str], bool]
