"""Versions of an agent's prompts: the timeline, one version, and two beside each other."""

from typing import Any

from django.contrib import messages
from django.http import HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import URLPattern, path, reverse

from personas.models import Agent, ReleasePolicy
from personas.tenancy import WorkspaceRequest
from prompts.compiling import tokens_in
from prompts.forms.labels import LabelForm, RollBackForm
from prompts.models import PRODUCTION, AgentPrompt, PromptLabel
from prompts.origins import told_of
from prompts.selectors import labels_of, segments_of
from prompts.timeline import (
    NumberedPages,
    entries_on,
    labels_by_version,
    pending_of,
    prompts_of_agent,
    protected_labels,
    was_labelled,
)
from prompts.version_diff import compare
from prompts.version_json import as_plain
from prompts.views import version_verbs
from prompts.views.finding import found_agent, found_prompt, found_version
from prompts.views.version_pages import Reading

MOST_MOVED = 40


def timeline(request: WorkspaceRequest, agent: str) -> HttpResponse:
    row = found_agent(request, agent)
    prompts = list(prompts_of_agent(row))
    prompt = chosen(prompts, request.GET.get("channel", ""))
    if prompt is None:
        return render(request, "prompts/versions/list.html", {"agent": row, "prompts": prompts})
    if "before" in request.GET or "after" in request.GET:
        return to_diff(request, row, prompt)
    page = NumberedPages(prompt).get_page(request.GET.get("page"))
    labels = list(labels_of(prompt))
    context = {
        "agent": row,
        "prompts": prompts,
        "prompt": prompt,
        "page": page,
        "entries": entries_on(page, labels_by_version(prompt, labels)),
        "pending": pending_of(row),
        "roll_back_form": RollBackForm(),
    }
    return render(request, "prompts/versions/list.html", context | standing(prompt, labels))


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
        "protected": protected_labels(prompt.workspace_id),
        "is_reviewed": prompt.agent.release_policy == ReleasePolicy.REVIEWED,
        "is_behind": prompt.latest_id != (production.version_id if production else None),
    }


def to_diff(request: WorkspaceRequest, agent: Agent, prompt: AgentPrompt) -> HttpResponse:
    """Two picked versions lead to the page that can be handed on; older first, whatever was picked."""
    picked = [request.GET.get(name, "") for name in ("before", "after")]
    if not all(said.isascii() and said.isdecimal() and len(said) < 10 for said in picked):
        messages.error(request, "Pick two versions to compare.")
        back = reverse("versions:list", args=[request.workspace.slug, agent.slug])
        return redirect(f"{back}?channel={prompt.channel.slug}")
    before, after = sorted(map(int, picked))
    return redirect("versions:diff", request.workspace.slug, prompt.pk, before, after)


def detail(request: WorkspaceRequest, prompt: int, number: int) -> HttpResponse:
    row = found_prompt(request, prompt)
    version = found_version(row, number)
    labels = list(labels_of(row))
    here = labels_by_version(row, labels).get(version.pk, [])
    context = {
        "agent": row.agent,
        "prompt": row,
        "here": here,
        "label_form": LabelForm(initial={"seen": LabelForm.seen_now(labels)}),
        "roll_back_form": RollBackForm(initial={"to": number}),
        "can_return": PRODUCTION not in here and was_labelled(version),
    }
    context |= standing(row, labels) | Reading(request.workspace, version).context()
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


def diff(request: WorkspaceRequest, prompt: int, before: int, after: int) -> HttpResponse:
    row = found_prompt(request, prompt)
    old, new = found_version(row, before), found_version(row, after)
    found = compare(segments_of(old), segments_of(new), tokens_in)
    told = told_of(request.workspace, [one.origin for one in found.moved[:MOST_MOVED]])
    labels = labels_by_version(row, list(labels_of(row)))
    context = {
        "agent": row.agent,
        "prompt": row,
        "before": old,
        "after": new,
        "diff": found,
        "moved": [(one, told[one.origin]) for one in found.moved[:MOST_MOVED] if one.origin in told],
        "more_moved": max(0, len(found.moved) - MOST_MOVED),
        "sides": [(version, labels.get(version.pk, [])) for version in (old, new)],
    }
    return render(request, "prompts/versions/diff.html", context)


urlpatterns: list[URLPattern] = [
    path("agents/<slug:agent>/versions/", timeline, name="list"),
    path("prompts/<int:prompt>/versions/<int:number>/", detail, name="detail"),
    path("prompts/<int:prompt>/versions/<int:number>/text/", text, name="text"),
    path("prompts/<int:prompt>/versions/<int:number>/json/", plain, name="json"),
    path("prompts/<int:prompt>/diff/<int:before>/<int:after>/", diff, name="diff"),
    *version_verbs.urlpatterns,
]
urls = (urlpatterns, "versions")
