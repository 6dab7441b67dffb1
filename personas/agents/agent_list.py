"""The list of agents: what it is sorted and narrowed by, and what a file of it holds."""

from dataclasses import replace

from personas.models import Agent
from personas.records.bulk_views import SHELVING
from personas.records.list_views import DATES, Listing, asked, chip
from personas.records.views import RecordPages
from personas.tenancy.middleware import WorkspaceRequest
from personas.ui.display_names import title_of
from personas.ui.export import Column, columns_of

# Where the page of a record leads to: all agents that use it, by the record's word in addresses.
USED = {
    "channel": "channel_links__channel__slug",
    "tool": "tool_links__tool__name",
    "skill": "skill_links__skill__name",
    "identity": "identity__slug",
    "soul": "soul__slug",
    "user_profile": "user_profile__slug",
}


class AgentLists(RecordPages[Agent]):
    """The list; the pages of one agent follow elsewhere."""

    sorts = {
        "name": ("name",),
        "layout": ("layout", "name"),
        "soul": ("soul__label", "name"),
        "changed": ("updated_at",),
    }
    usual_sort, bulk_verbs = "name", SHELVING
    columns_exported = (
        "slug",
        "name",
        "description",
        "layout",
        "release_policy",
        "identity__label",
        "soul__label",
        "user_profile__label",
        "parent__slug",
        "working_directory",
        "instructions",
    )

    def listing(self, request: WorkspaceRequest) -> Listing[Agent]:
        listing = super().listing(request)
        said = {word: asked(request, word)[:100] for word in USED if asked(request, word)}
        if not said:
            return listing
        using = Agent.objects.in_workspace(request.workspace)
        for word, value in said.items():
            using = using.filter(**{USED[word]: value})
        chips = [chip(request, word, title_of(word), value) for word, value in said.items()]
        return replace(listing, rows=listing.rows.filter(pk__in=using.values("pk")), chips=chips)

    def columns(self) -> list[Column]:
        links = [
            Column("channels", lambda agent: [link.channel.slug for link in agent.channel_links.all()]),
            Column("tools", lambda agent: [link.tool.name for link in agent.tool_links.all()]),
        ]
        return [*columns_of(self.columns_exported), *links, *columns_of(DATES)]
