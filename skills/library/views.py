"""Skill pages: the list of records and discovered skills, the record pages, and an agent's skills."""

from collections import Counter
from collections.abc import Sequence
from operator import attrgetter
from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import URLPattern, path
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from core.text.lists import format_short_list
from personas.agents.selectors import list_agents_with_parts
from personas.records.list_views import get_search_query, set_filter_values
from personas.records.views import PAGE_SIZE, get_query_param, post_only
from personas.roles import Permission
from personas.tenancy.middleware import WorkspaceRequest, require_permission
from personas.ui.export import build_export_response, get_export_format
from personas.ui.review import NotReviewed, Reviewed
from personas.ui.sorting import get_sort_order
from skills.files.services import set_trust_requirement
from skills.library.bulk_views import EXPORT_COLUMNS, SkillBulkPages, iterate_skill_items
from skills.library.check_views import build_form_check, build_skill_check
from skills.library.forms import SkillForm
from skills.library.list import (
    SkillFilter,
    list_namesakes,
    list_skill_entries,
    list_source_choices,
    load_skill_items,
)
from skills.library.selectors import get_agent_skills, list_skills, list_skills_losing_use
from skills.models import Skill

MAX_NAMES_SHOWN = 20
LOCATION_CHOICES = [("", _("Everywhere")), ("here", _("Written in Dramatis")), ("found", _("Discovered"))]
STATUS_CHOICES = [
    ("", _("Not archived or ignored")),
    ("trusted", _("Trusted")),
    ("pending", _("Not trusted yet")),
    ("quarantined", _("Quarantined")),
    ("invalid", _("Invalid")),
    ("missing", _("Missing")),
    ("ignored", _("Archived or ignored")),
]


class SkillPages(SkillBulkPages):
    model, form = Skill, SkillForm
    one, many = _("skill"), _("Skills")
    name, icon, templates = "skills", "skill", "skills"
    lede = _("Instructions in Markdown. Agents see the name and description, and load the rest when needed.")
    key, usage_param = "name", "skill"
    sorts = {"name": ("sort",), "where": ("kind", "source_id", "path")}
    default_sort = "name"

    def rows(self, request: WorkspaceRequest) -> QuerySet[Skill]:
        return list_skills(request.workspace)

    def more_urls(self) -> list[URLPattern]:
        return [
            # No conflict with pages of a skill: "new" is a reserved name, and no skill has a page "policy".
            path("new/check/", post_only(self.check_draft), name="check"),
            path("trust/policy/", post_only(self.update_trust_policy), name="trust-policy"),
            *super().more_urls(),
        ]

    # --- the list ---------------------------------------------------------------------------------------

    def filters(self, request: WorkspaceRequest) -> list[dict[str, Any]]:
        sources = list_source_choices(request.workspace)
        filters: list[tuple[str, str, Sequence[tuple[str, object]]]] = [
            ("where", gettext("Where"), LOCATION_CHOICES),
            ("status", gettext("Status"), STATUS_CHOICES),
        ]
        if sources:
            filters.append(("source", gettext("Source"), [("", gettext("All sources")), *sources]))
        return [{"name": name, "label": label, "options": options} for name, label, options in filters]

    def index(self, request: WorkspaceRequest) -> HttpResponseBase:
        filters, search = set_filter_values(request, self.filters(request)), get_search_query(request)
        skill_filter = SkillFilter(search, **{entry["name"]: entry["value"] for entry in filters})
        all_entries = list_skill_entries(request.workspace, skill_filter)
        sorting = get_sort_order(request, self.sorts, self.default_sort)
        entries = [entry for entry in all_entries if entry.is_match]
        if sorting.param != self.default_sort:
            entries.sort(key=attrgetter(*self.sorts[sorting.name]), reverse=sorting.is_descending)
        if file_format := get_export_format(request):
            rows = iterate_skill_items(request.workspace, all_entries, entries)
            return build_export_response(request.workspace, self.name, file_format, EXPORT_COLUMNS, rows)
        page: Any = Paginator(entries, PAGE_SIZE).get_page(request.GET.get("page"))
        page.object_list = load_skill_items(request.workspace, all_entries, page.object_list)
        context = {
            "page": page,
            "filters": filters,
            "q": search,
            "sorting": sorting,
            "is_narrowed": skill_filter != SkillFilter(),
        }
        return self.render_page(request, "list", context)

    @require_permission(Permission.MANAGE_SOURCES, Reviewed())
    def update_trust_policy(self, request: WorkspaceRequest) -> HttpResponse:
        """Set whether a user must trust a discovered skill before agents get it.

        If prompts would lose skills that nobody has trusted, show a page that names them and asks whether to
        keep them. The answer is the form field `in_use`.
        """
        needed, in_use = request.POST.get("needed"), request.POST.get("in_use", "")
        if needed not in {"0", "1"}:
            messages.error(
                request,
                gettext("Choose whether discovered skills need approval before agents use them."),
            )
            return redirect("skills:list", request.workspace.slug)
        is_unanswered = needed == "1" and in_use not in {"keep", "remove"}
        if is_unanswered and (skills := list_skills_losing_use(request.workspace)):
            return render(request, "skills/trust_confirm.html", {"skills": skills})
        files = set_trust_requirement(
            request.workspace, needed == "1", by=request.actor, is_kept=in_use != "remove"
        )
        message = (
            gettext("Discovered skills now need approval before agents use them.")
            if needed == "1"
            else gettext(
                "Discovered skills are now used as soon as they pass the scan, unless "
                "their source requires manual review."
            )
        )
        if files:
            template = (
                gettext("Removed from prompts until someone trusts them: %(skills)s.")
                if in_use == "remove"
                else gettext("Kept in use and trusted: %(skills)s.")
            )
            names = format_short_list([file.name or file.path for file in files], MAX_NAMES_SHOWN)
            message = f"{message} {template % {'skills': names}}"
        messages.success(request, message)
        return redirect("skills:list", request.workspace.slug)

    # --- one skill --------------------------------------------------------------------------------------

    def detail_context(self, request: WorkspaceRequest, record: Skill) -> dict[str, Any]:
        return {"namesakes": list_namesakes(record)}

    def render_page(
        self, request: WorkspaceRequest, page: str, context: dict[str, Any], status: int = 200
    ) -> HttpResponse:
        if page == "form":
            context["check"] = self.build_check(context["form"])
        return super().render_page(request, page, context, status)

    def build_check(self, form: SkillForm) -> Any:
        if form.is_bound:
            return build_form_check(form)
        return build_skill_check(form.record) if form.record else None

    @require_permission(Permission.EDIT, NotReviewed("validates a text that is not saved"))
    def check_draft(self, request: WorkspaceRequest) -> HttpResponse:
        """Validate a draft without saving it. The query parameter `of` names the skill that is being edited.

        Without this parameter, the draft is a new skill.
        """
        key = get_query_param(request, "of")
        record = self.find(request, key) if key else None
        form = self.form(request.POST, workspace=request.workspace, record=record)
        return render(request, "skills/_checked.html", {"check": build_form_check(form)})


def index(request: WorkspaceRequest, agent: str) -> HttpResponse:
    row = get_object_or_404(list_agents_with_parts(request.workspace), slug=agent)
    reader, skills = get_agent_skills(row)
    context = {
        "agent": row,
        "reader": reader,
        "skills": skills,
        "used": sum(entry.skill.is_used for entry in skills),
        "kinds": Counter(entry.kind for entry in skills),
    }
    return render(request, "skills/agents/list.html", context)


urlpatterns: list[URLPattern] = [path("", index, name="list")]
urls = (urlpatterns, "agent-skills")
