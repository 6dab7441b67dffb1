"""Search kinds: the tables that are searched, their searched columns and detail pages."""

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

# List routes that are not named after their kind, and kinds whose list cannot be searched.
LIST_ROUTES = {"files": "inbox:list"}
NOT_SEARCHABLE_LISTS = {"releases", "keys", "members", "sources"}


@dataclass(frozen=True)
class SearchKind:
    """One searched table: the title of a row, further searched fields, and the page of a row."""

    name: str
    group: str | Promise
    icon: str
    route: str
    model: Any
    title: Combinable
    # Text fields that are searched besides the title, as field names or lookup paths.
    extra_fields: tuple[str, ...] = ()
    # Long texts that are searched too; matches there are ranked after those in the fields above.
    text_fields: tuple[str, ...] = ()
    # Field used in the URL; empty if results link to the list page.
    key: str = "slug"
    about: str = ""
    # Whether rows can be archived; archived ones are ranked last.
    has_archive: bool = True

    @property
    def list_route(self) -> str:
        """The route of the list that can be searched; empty if there is none."""
        return "" if self.name in NOT_SEARCHABLE_LISTS else LIST_ROUTES.get(self.name, f"{self.name}:list")

    def list_rows(self, workspace: Workspace | int) -> QuerySet[Any]:
        rows: QuerySet[Any] = self.model.objects.in_workspace(workspace)
        return rows


def build_numbered_title(prefix: str) -> Combinable:
    return Concat(Value(prefix), Cast("number", CharField()), output_field=CharField())


def build_search_kind(
    name: str, group: Promise | str, icon: str, model: Any, title: str | Combinable, **more: Any
) -> SearchKind:
    options: dict[str, Any] = {"route": f"{name}:detail"} | more
    return SearchKind(
        name, group, icon, model=model, title=F(title) if isinstance(title, str) else title, **options
    )


# In display order.
SEARCH_KINDS: tuple[SearchKind, ...] = (
    build_search_kind(
        "agents",
        _("Agents"),
        "agents",
        Agent,
        "name",
        extra_fields=("slug",),
        text_fields=("description", "instructions"),
        about="slug",
    ),
    build_search_kind(
        "identities",
        _("Identities"),
        "identity",
        Identity,
        "name",
        extra_fields=("display_name",),
        text_fields=("text", "vibe", "creature"),
        about="display_name",
    ),
    build_search_kind("souls", _("Souls"), "soul", Soul, "name", text_fields=("text",)),
    build_search_kind(
        "user-profiles",
        _("User profiles"),
        "profile",
        UserProfile,
        "name",
        extra_fields=("display_name",),
        text_fields=("notes", "location"),
        about="display_name",
    ),
    build_search_kind(
        "memories",
        _("Memories"),
        "memory",
        Memory,
        "text",
        extra_fields=("text", "source"),
        key="pk",
        about="status",
    ),
    build_search_kind(
        "responsibilities",
        _("Responsibilities"),
        "duty",
        Responsibility,
        "title",
        text_fields=("text",),
        key="pk",
        about="agent__name",
    ),
    build_search_kind(
        "tasks",
        _("Tasks"),
        "task",
        Task,
        "title",
        extra_fields=("number",),
        text_fields=("description",),
        key="number",
        about="status",
    ),
    build_search_kind(
        "skills",
        _("Skills"),
        "skill",
        Skill,
        "name",
        extra_fields=("description",),
        text_fields=("body",),
        key="name",
    ),
    build_search_kind(
        "tools",
        _("Tools"),
        "tool",
        Tool,
        "name",
        extra_fields=("snippet",),
        text_fields=("description", "guidelines"),
        key="name",
        about="snippet",
    ),
    build_search_kind(
        "channels",
        _("Channels"),
        "channel",
        Channel,
        "name",
        extra_fields=("slug",),
        about="slug",
    ),
    build_search_kind(
        "sources", _("Sources"), "source", Source, "name", extra_fields=("folder",), about="folder"
    ),
    build_search_kind(
        "files",
        _("Discovered files"),
        "file",
        ContextFile,
        "path",
        extra_fields=("name",),
        key="pk",
        about="source__name",
        has_archive=False,
    ),
    build_search_kind(
        "releases",
        _("Releases"),
        "release",
        Release,
        build_numbered_title("Release "),
        extra_fields=("message",),
        key="number",
        about="message",
        has_archive=False,
    ),
    build_search_kind(
        "keys",
        _("API keys"),
        "key",
        ApiKey,
        "name",
        extra_fields=("prefix",),
        route="api-keys:detail",
        key="pk",
        about="prefix",
        has_archive=False,
    ),
    build_search_kind(
        "members",
        _("Members"),
        "members",
        Membership,
        Coalesce(NullIf("user__name", Value("")), "user__email"),
        extra_fields=("user__email",),
        route="members:list",
        key="",
        about="user__email",
        has_archive=False,
    ),
)

# Kinds that are searched only for members with the given permission.
KIND_PERMISSIONS = {"keys": "manage_keys"}
PermissionTest = Callable[[str], bool]
