"""The agents on a page of the fleet: searched, narrowed, sorted and counted in one question."""

from collections.abc import Iterable
from typing import Any

from django.core.paginator import Page, Paginator
from django.db.models import Count, Exists, F, Max, OuterRef, Q, QuerySet, Window
from django.db.models.functions import Coalesce

from personas.models import Agent, AgentChannel, Channel, Workspace
from prompts.fleet.filters import SORT_BY_CHANGE, SORT_BY_PROBLEMS, SORT_BY_TOKENS, FleetFilter
from prompts.fleet.prompt_status import build_state_condition, list_prompts_with_status
from prompts.models import PRODUCTION, BuildCause

# As many as a browser draws well within a second, on six channels.
AGENTS_PER_PAGE = 30
AGENT_COLUMNS = (
    *("slug", "name", "layout", "workspace_id", "updated_at"),
    *("identity__emoji", "identity__workspace_id", "parent__name", "parent__slug", "parent__workspace_id"),
)


class CountedPaginator(Paginator):  # type: ignore[type-arg]  # generic only in the stubs
    """Rows that were cut out of a longer list already, by the database, which also told the length."""

    def __init__(self, count: int) -> None:
        super().__init__([], AGENTS_PER_PAGE)
        self.length = count

    @property
    def count(self) -> int:
        return self.length


def list_channels_in_use(workspace: Workspace | int) -> list[Channel]:
    """The columns: wherever some agent in use speaks."""
    links = AgentChannel.objects.in_workspace(workspace).filter(
        channel=OuterRef("pk"), agent__archived_at=None
    )
    rows = Channel.objects.in_workspace(workspace).filter(Exists(links), archived_at=None)
    return list(rows.only("slug", "name", "workspace_id").order_by("name", "pk"))


def get_agent_page(workspace: Workspace, asked: FleetFilter, stale: Iterable[int]) -> Page[Any]:
    rows = sort_agents(filter_agents(workspace, asked, stale), asked.sort)
    rows = rows.annotate(
        total=Window(Count("*")),
        is_waiting=Exists(BuildCause.objects.in_workspace(workspace).filter(agent=OuterRef("pk"))),
    )
    found, number = slice_agent_page(rows, asked.page), asked.page
    if not found and number > 1:
        # Somebody asks for a page beyond the end: they get the last one there is.
        number = CountedPaginator(rows.count()).num_pages
        found = slice_agent_page(rows, number)
    return Page(found, number, CountedPaginator(found[0].total if found else 0))


def slice_agent_page(rows: QuerySet[Any], number: int) -> list[Any]:
    return list(rows[(number - 1) * AGENTS_PER_PAGE : number * AGENTS_PER_PAGE])


def filter_agents(workspace: Workspace, asked: FleetFilter, stale: Iterable[int]) -> QuerySet[Agent]:
    rows = Agent.objects.in_workspace(workspace).filter(archived_at=None)
    rows = rows.select_related("identity", "parent").only(*AGENT_COLUMNS)
    if asked.words:
        fields = ("name", "slug", "description", "identity__name")
        rows = rows.filter(Q(*[(f"{field}__icontains", asked.words) for field in fields], _connector=Q.OR))
    if asked.layout:
        rows = rows.filter(layout=asked.layout)
    if asked.channel or asked.state:
        prompts = list_prompts_with_status(workspace).filter(build_state_condition(asked.state, stale))
        prompts = prompts.filter(channel__slug=asked.channel) if asked.channel else prompts
        rows = rows.filter(pk__in=prompts.order_by().values("agent"))
    return rows


def sort_agents(rows: QuerySet[Agent], sort: str) -> QuerySet[Agent]:
    """Figures are summed up over all prompts in one go, so that a long list stays one plain join."""
    by_name, live = ("name", "pk"), Q(prompts__is_live=True)
    if sort == SORT_BY_CHANGE:
        last = Max("prompts__latest__created_at", filter=live)
        return rows.annotate(changed_at=Coalesce(last, "updated_at")).order_by("-changed_at", *by_name)
    if sort == SORT_BY_TOKENS:
        most = Max("prompts__labels__version__tokens", filter=live & Q(prompts__labels__name=PRODUCTION))
        return rows.annotate(most=most).order_by(F("most").desc(nulls_last=True), *by_name)
    if sort == SORT_BY_PROBLEMS:
        wrong = Count("prompts", filter=live & ~Q(prompts__problem=""))
        held = Count("prompts", filter=live & Q(prompts__is_held=True))
        return rows.annotate(wrong=wrong, held=held).order_by("-wrong", "-held", *by_name)
    return rows.order_by(*by_name)
