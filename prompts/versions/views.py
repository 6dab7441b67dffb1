"""Versions of an agent's prompts: the timeline, and one version with all that is known of it."""

from typing import Any

from django.contrib import messages
from django.http import HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext as _

from personas.models import Agent, ReleasePolicy
from personas.tenancy.middleware import WorkspaceRequest
from prompts.labels import action_views
from prompts.labels.forms import LabelForm, RollBackForm
from prompts.models import PRODUCTION, AgentPrompt, PromptLabel
from prompts.page_lookup import found_agent, found_prompt, found_version
from prompts.versions import diff_views
from prompts.versions.page import Reading
from prompts.versions.selectors import earlier_place, segments_of
from prompts.versions.serializers import as_plain
from prompts.versions.timeline import (
    NumberedPages,
    entries_on,
    labels_by_version,
    labels_with_rules,
    pending_of,
    prompts_of_agent,
    with_past,
)


def timeline(request: WorkspaceRequest, agent: str) -> HttpResponse:
    prompts = list(prompts_of_agent(request.workspace, agent))
    row = prompts[0].agent if prompts else found_agent(request, agent)
    prompt = chosen(prompts, request.GET.get("channel", ""))
    if prompt is None:
        return render(request, "prompts/versions/list.html", {"agent": row, "prompts": prompts})
    if "before" in request.GET or "after" in request.GET:
        return to_diff(request, row, prompt)
    page = NumberedPages(prompt).get_page(request.GET.get("page"))
    labels = list(labels_with_rules(prompt))
    context: dict[str, Any] = {
        "agent": row,
        "prompts": prompts,
        "prompt": prompt,
        "page": page,
        "entries": entries_on(page, labels_by_version(prompt, labels)),
        "pending": pending_of(row),
        "roll_back_form": RollBackForm(),
    }
    context |= standing(prompt, labels)
    context["back_to"] = back_to(prompt, context["production"])
    return render(request, "prompts/versions/list.html", context)


def chosen(prompts: list[AgentPrompt], channel: str) -> AgentPrompt | None:
    """The channel in the address, else the first."""
    named = [prompt for prompt in prompts if prompt.channel.slug == channel]
    return next(iter(named or prompts), None)


def standing(prompt: AgentPrompt, labels: list[PromptLabel]) -> dict[str, Any]:
    """Where the labels of a prompt stand, and what follows for production."""
    production = next((label for label in labels if label.name == PRODUCTION), None)
    return {
        "production": production,
        "labels": [label for label in labels if label.name != PRODUCTION],
        "protected": {label.name for label in labels if getattr(label, "is_protected", False)},
        "is_reviewed": prompt.agent.release_policy == ReleasePolicy.REVIEWED,
        "is_behind": prompt.latest_id != (production.version_id if production else None),
    }


def back_to(prompt: AgentPrompt, production: PromptLabel | None) -> int | None:
    """The number that a roll-back would lead to; none where production was never anywhere else."""
    move = earlier_place(prompt, PRODUCTION, production.version.number) if production else None
    return move.version.number if move and move.version else None


def to_diff(request: WorkspaceRequest, agent: Agent, prompt: AgentPrompt) -> HttpResponse:
    """Two picked versions lead to the page that can be handed on; older first, whatever was picked."""
    picked = [request.GET.get(name, "") for name in ("before", "after")]
    if not all(said.isascii() and said.isdecimal() and len(said) < 10 for said in picked):
        messages.error(request, _("Pick two versions to compare."))
        back = reverse("versions:list", args=[request.workspace.slug, agent.slug])
        return redirect(f"{back}?channel={prompt.channel.slug}")
    before, after = sorted(map(int, picked))
    return redirect("versions:diff", request.workspace.slug, prompt.pk, before, after)


def detail(request: WorkspaceRequest, prompt: int, number: int) -> HttpResponse:
    row = found_prompt(request, prompt)
    version = found_version(row, number, with_past(row))
    labels = list(labels_with_rules(row))
    here = labels_by_version(row, labels).get(version.pk, [])
    context = {
        "agent": row.agent,
        "prompt": row,
        "here": here,
        "label_form": LabelForm(initial={"seen": LabelForm.seen_now(labels)}),
        # Beside the form for labels, which has a note as well.
        "roll_back_form": RollBackForm(initial={"to": number}, auto_id="back_%s"),
        "can_return": PRODUCTION not in here and getattr(version, "was_labelled", False),
        "others": diff_views.others(row, labels, number),
    }
    reading = Reading(request.workspace, version, has_lockfile="lockfile" in request.GET)
    context |= standing(row, labels) | reading.context()
    return render(request, "prompts/versions/detail.html", context)


def text(request: WorkspaceRequest, prompt: int, number: int) -> HttpResponse:
    """The very words, to take away; slots stand in it by name."""
    row = found_prompt(request, prompt)
    words = "".join([segment.text for segment in segments_of(found_version(row, number))])
    return taken(HttpResponse(words.encode(), content_type="text/markdown; charset=utf-8"), row, number, "md")


def plain(request: WorkspaceRequest, prompt: int, number: int) -> HttpResponse:
    """All that is known about the version, for programs."""
    row = found_prompt(request, prompt)
    said = as_plain(found_version(row, number))
    answer = JsonResponse(said, json_dumps_params={"ensure_ascii": False, "indent": 2})
    return taken(answer, row, number, "json")


def taken(answer: HttpResponse, prompt: AgentPrompt, number: int, ending: str) -> HttpResponse:
    name = f"{prompt.agent.slug}-{prompt.channel.slug}-v{number}.{ending}"
    answer["Content-Disposition"] = f'attachment; filename="{name}"'
    return answer


urlpatterns: list[URLPattern] = [
    path("agents/<slug:agent>/versions/", timeline, name="list"),
    path("prompts/<int:prompt>/versions/<int:number>/", detail, name="detail"),
    path("prompts/<int:prompt>/versions/<int:number>/text/", text, name="text"),
    path("prompts/<int:prompt>/versions/<int:number>/json/", plain, name="json"),
    *diff_views.urlpatterns,
    *action_views.urlpatterns,
]
urls = (urlpatterns, "versions")
