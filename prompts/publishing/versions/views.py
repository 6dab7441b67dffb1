"""Version pages: the timeline of an agent's prompts, one version in detail, and downloads."""

from collections.abc import Sequence
from typing import Any

from django.contrib import messages
from django.http import HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext as _

from personas.models import Agent, Erasure
from personas.tenancy.middleware import WorkspaceRequest
from prompts.models import PRODUCTION, AgentPrompt, PromptLabel, PromptVersion
from prompts.page_lookup import get_agent_or_404, get_prompt_or_404, get_version_or_404
from prompts.publishing.builds.tokens import count_tokens_cached
from prompts.publishing.labels import action_views
from prompts.publishing.labels.forms import LabelForm, RollBackForm
from prompts.publishing.sizes.size_history import load_size_history
from prompts.publishing.sizes.size_table import build_size_table, describe_contributors
from prompts.publishing.versions import diff_views
from prompts.publishing.versions.diff_views import SHOW_ALL
from prompts.publishing.versions.page import VersionPage
from prompts.publishing.versions.selectors import find_earlier_move
from prompts.publishing.versions.serializers import version_json
from prompts.publishing.versions.timeline import (
    VersionPaginator,
    get_pending_changes,
    group_labels_by_version,
    list_agent_prompts,
    list_labels_with_rules,
    list_timeline_entries,
    list_versions_with_history,
)
from prompts.publishing.versions.version_contents import describe_erasures, load_version_contents

MAX_SHOWN_CONTRIBUTORS = 8


def version_timeline(request: WorkspaceRequest, agent: str) -> HttpResponse:
    prompts = list(list_agent_prompts(request.workspace, agent))
    row = prompts[0].agent if prompts else get_agent_or_404(request, agent)
    prompt = find_channel_prompt(prompts, request.GET.get("channel", ""))
    if prompt is None:
        return render(request, "prompts/versions/list.html", {"agent": row, "prompts": prompts})
    if "before" in request.GET or "after" in request.GET:
        return redirect_to_diff(request, row, prompt)
    page = VersionPaginator(prompt).get_page(request.GET.get("page"))
    labels = list(list_labels_with_rules(prompt))
    context: dict[str, Any] = {
        "agent": row,
        "prompts": prompts,
        "prompt": prompt,
        "page": page,
        "entries": list_timeline_entries(page, group_labels_by_version(prompt, labels)),
        "pending": get_pending_changes(row),
        "roll_back_form": RollBackForm(),
    }
    context |= build_label_context(prompt, labels)
    context["back_to"] = find_rollback_number(prompt, context["production"])
    context |= build_size_context(request, prompt)
    context["size_history"] = load_size_history(prompt)
    return render(request, "prompts/versions/list.html", context)


def build_size_context(request: WorkspaceRequest, prompt: AgentPrompt) -> dict[str, Any]:
    """Build the size table of the latest version: the largest contributors, or all with `?sizes=all`.

    There is no table if text was erased: what is left says nothing about the size.
    """
    if prompt.latest_id is None:
        return {}
    version = PromptVersion.objects.in_workspace(request.workspace).get(pk=prompt.latest_id)
    contents = load_version_contents(version)
    if contents.erasures or contents.tools is None:
        return {}
    table = build_size_table(contents.segments, contents.tools, count_tokens_cached)
    shown = len(table.contributors) if request.GET.get("sizes") == SHOW_ALL else MAX_SHOWN_CONTRIBUTORS
    return {
        "size_table": table,
        "size_version": version,
        "size_rows": describe_contributors(request.workspace, table.contributors[:shown]),
        "hidden_sizes": max(0, len(table.contributors) - shown),
    }


def find_channel_prompt(prompts: list[AgentPrompt], channel: str) -> AgentPrompt | None:
    """Return the prompt of the channel given in the URL, otherwise the first."""
    named = [prompt for prompt in prompts if prompt.channel.slug == channel]
    return next(iter(named or prompts), None)


def build_label_context(prompt: AgentPrompt, labels: list[PromptLabel]) -> dict[str, Any]:
    """Build the context for the labels of a prompt and the state of production."""
    production = next((label for label in labels if label.name == PRODUCTION), None)
    return {
        "production": production,
        "labels": [label for label in labels if label.name != PRODUCTION],
        "protected": {label.name for label in labels if getattr(label, "is_protected", False)},
        "is_reviewed": prompt.is_reviewed,
        "is_behind": prompt.latest_id != (production.version_id if production else None),
    }


def find_rollback_number(prompt: AgentPrompt, production: PromptLabel | None) -> int | None:
    """Return the version number a roll-back would restore; None if production never had a lower version."""
    move = find_earlier_move(prompt, PRODUCTION, production.version.number) if production else None
    return move.version.number if move and move.version else None


def redirect_to_diff(request: WorkspaceRequest, agent: Agent, prompt: AgentPrompt) -> HttpResponse:
    """Redirect two selected versions to the shareable URL of their diff, older version first."""
    numbers = [request.GET.get(name, "") for name in ("before", "after")]
    if not all(number.isascii() and number.isdecimal() and len(number) < 10 for number in numbers):
        messages.error(request, _("Select two versions to compare."))
        back = reverse("versions:list", args=[request.workspace.slug, agent.slug])
        return redirect(f"{back}?channel={prompt.channel.slug}")
    before, after = sorted(map(int, numbers))
    return redirect("versions:diff", request.workspace.slug, prompt.pk, before, after)


def detail(request: WorkspaceRequest, prompt: int, number: int) -> HttpResponse:
    row = get_prompt_or_404(request, prompt)
    version = get_version_or_404(row, number, list_versions_with_history(row))
    labels = list(list_labels_with_rules(row))
    label_names = group_labels_by_version(row, labels).get(version.pk, [])
    context = {
        "agent": row.agent,
        "prompt": row,
        "here": label_names,
        "label_form": LabelForm(initial={"seen": LabelForm.format_seen(labels)}),
        # Different element ids, because the label form on the same page also has a note field.
        "roll_back_form": RollBackForm(initial={"to": number}, auto_id="back_%s"),
        "can_return": PRODUCTION not in label_names and getattr(version, "was_labelled", False),
        "others": diff_views.list_comparison_targets(row, labels, number),
    }
    line = request.GET.get("line", "")
    version_page = VersionPage(
        request.workspace,
        version,
        has_lockfile="lockfile" in request.GET,
        open_line=int(line) if line.isascii() and line.isdecimal() and len(line) < 9 else 0,
    )
    context["comments_url"] = version_page.comments_url
    context |= build_label_context(row, labels) | version_page.build_context()
    return render(request, "prompts/versions/detail.html", context)


def download_version_text(request: WorkspaceRequest, prompt: int, number: int) -> HttpResponse:
    """Download the text; slots appear as their placeholders."""
    row = get_prompt_or_404(request, prompt)
    contents = load_version_contents(get_version_or_404(row, number))
    if contents.erasures:
        return build_erased_response(contents.erasures)
    text = "".join([segment.text for segment in contents.segments])
    return set_version_filename(
        HttpResponse(text.encode(), content_type="text/markdown; charset=utf-8"), row, number, "md"
    )


def download_version_json(request: WorkspaceRequest, prompt: int, number: int) -> HttpResponse:
    row = get_prompt_or_404(request, prompt)
    version = get_version_or_404(row, number)
    if erasures := load_version_contents(version).erasures:
        return build_erased_response(erasures)
    data = version_json(version)
    response = JsonResponse(data, json_dumps_params={"ensure_ascii": False, "indent": 2})
    return set_version_filename(response, row, number, "json")


def build_erased_response(erasures: Sequence[Erasure]) -> HttpResponse:
    text = describe_erasures(erasures)
    return HttpResponse(f"{text}\n", status=410, content_type="text/plain; charset=utf-8")


def set_version_filename(
    response: HttpResponse, prompt: AgentPrompt, number: int, ending: str
) -> HttpResponse:
    name = f"{prompt.agent.slug}-{prompt.channel.slug}-v{number}.{ending}"
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


urlpatterns: list[URLPattern] = [
    path("agents/<slug:agent>/versions/", version_timeline, name="list"),
    path("prompts/<int:prompt>/versions/<int:number>/", detail, name="detail"),
    path("prompts/<int:prompt>/versions/<int:number>/text/", download_version_text, name="text"),
    path("prompts/<int:prompt>/versions/<int:number>/json/", download_version_json, name="json"),
    *diff_views.urlpatterns,
    *action_views.urlpatterns,
]
urls = (urlpatterns, "versions")
