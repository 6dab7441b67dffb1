"""What an edit in a form would do to prompts, asked before it is saved."""

from typing import Any

from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.urls import path
from django.views.decorators.http import require_POST

from personas.roles import Permission
from personas.tenancy import WorkspaceRequest, needs
from personas.urls import FAMILIES
from personas.views.records import RecordPages
from prompts.drafts import agents_touched, draft_of
from prompts.impact import impact_of
from skills.views.skills import SkillPages

PAGES: dict[str, RecordPages[Any]] = {
    pages.name: pages for pages in (*FAMILIES, SkillPages()) if pages.feeds_prompts
}


@needs(Permission.EDIT)
@require_POST
def impact(request: WorkspaceRequest, family: str, key: str = "") -> HttpResponse:
    """The answer beside the form, or as a page of its own where there is no script."""
    pages = PAGES.get(family)
    if pages is None:
        raise Http404("No such kind of record.")
    record = pages.find(request, key) if key else None
    form = pages.form(request.POST, workspace=request.workspace, record=record)
    context: dict[str, Any] = {"form": form, "record": record, "pages": pages}
    if form.is_valid():
        subject = record or pages.model(workspace=request.workspace)
        draft = draft_of(subject, form.values())
        context["impact"] = impact_of(request.workspace, draft, agents_touched(subject, draft))
        context["again"] = [
            (name, value)
            for name, values in request.POST.lists()
            for value in values
            if name != "csrfmiddlewaretoken"
        ]
    # The address to save at, for the page that stands alone.
    context["save_url"] = pages.address(record, "edit") if record else pages.new_address(request)
    name = "_panel" if request.headers.get("HX-Request") else "page"
    return render(request, f"prompts/impact/{name}.html", context, status=200 if form.is_valid() else 422)


urls = (
    [
        path("<slug:family>/", impact, name="new"),
        path("<slug:family>/<str:key>/", impact, name="edit"),
    ],
    "impact",
)
