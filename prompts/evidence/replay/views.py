"""Replay pages: the exact text that was served in a fetch or at a time, with evidence."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any
from urllib.parse import urlencode

from django.http import Http404, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from personas.errors import DomainError
from personas.models import Workspace
from personas.tenancy.middleware import WorkspaceRequest
from personas.ui.display_names import get_display_name
from prompts.assembly.segments import Segment, get_texts_by_section
from prompts.assembly.slots import fill_segments
from prompts.errors import FetchNotFound, LedgerRowExpired, NoSuchLabelAtTime
from prompts.evidence.replay.evidence import build_evidence, run_evidence_checks
from prompts.evidence.replay.forms import ReplayByRequestForm, ReplayByTimeForm
from prompts.evidence.replay.selectors import (
    AdjacentChanges,
    find_prompt_by_slugs,
    get_adjacent_changes,
    get_label_name,
    list_agent_choices,
    list_channel_choices,
    list_channels_by_agent,
    list_fetches_around,
    list_latest_fetches,
)
from prompts.evidence.replay.services import (
    Replay,
    get_skill_segments,
    list_request_entries,
    replay_entry,
    replay_prompt,
)
from prompts.models import PromptVersion
from prompts.page_lookup import get_prompt_or_404, get_version_or_404
from prompts.proof.call_values import MissingCallValue
from prompts.proof.canonical import format_timestamp
from prompts.proof.evidence import EXPECTED_KEY_CHECK, CheckResult
from prompts.publishing.builds.tokens import count_tokens_cached
from prompts.publishing.versions.diff import compare_segments
from prompts.publishing.versions.diff_views import SHOW_ALL, list_full_sections
from prompts.publishing.versions.page import AnnotatedRow, VersionPage, VersionSection, find_main_origin_kind
from prompts.publishing.versions.selectors import get_segments, get_tool_definitions
from prompts.publishing.versions.stored_inputs import build_call_prompt
from prompts.publishing.versions.text_rows import TextRow
from prompts.publishing.versions.tool_definitions import DefinitionJson
from prompts.serving.call_contents.selectors import get_call_values
from prompts.serving.response_body import select_call_tools
from prompts.serving.slot_values import slots_from_json

# Minutes before now, and the label of the button for that time.
QUICK_TIMES = [
    (60, gettext_lazy("1 hour ago")),
    (1_440, gettext_lazy("1 day ago")),
    (10_080, gettext_lazy("1 week ago")),
]


class ReplayPage(VersionPage):
    """A replay prepared for a page.

    Sizes are computed from the replayed text, because filled slots make it differ from the stored version.
    """

    def __init__(self, workspace: Workspace, replay: Replay) -> None:
        super().__init__(workspace, replay.version)
        self.replay = replay

    @cached_property
    def segments(self) -> tuple[Segment, ...]:
        return self.replay.segments

    def build_section(self, name: str, rows: Sequence[TextRow], ends: dict[int, str]) -> VersionSection:
        if self.replay.entry is None:
            # The text is shown as built, so use the numbers from the page of the version.
            return super().build_section(name, rows, ends)
        text = self.section_texts.get(name, "")
        annotated = [
            AnnotatedRow(row, [self.get_origin_label(origin) for origin in row.origins]) for row in rows
        ]
        return VersionSection(
            name, annotated, len(text), count_tokens_cached(text), [], "", find_main_origin_kind(rows)
        )

    @cached_property
    def section_texts(self) -> dict[str, str]:
        return get_texts_by_section(self.segments)

    @cached_property
    def definitions(self) -> Sequence[DefinitionJson] | None:
        return self.replay.tools

    @property
    def text_tokens(self) -> int:
        return sum(section.tokens for section in self.sections)

    @cached_property
    def facts(self) -> list[tuple[str, str]]:
        """Display names and values of the slots that the client filled in this fetch."""
        entry = self.replay.entry
        if entry is None:
            return []
        try:
            values = get_call_values(entry)
        except MissingCallValue:
            # A value is no longer stored. Show the digests, which are still in the row.
            values = entry.slots
        return [(get_display_name(name), format_slot_value(value)) for name, value in values.items()]


def compare_with_current(replay: Replay, now: PromptVersion, *, is_whole: bool) -> dict[str, Any]:
    """Diff the replayed text with the current version, whose slots are filled with the same values."""
    if replay.entry and replay.entry.skill is not None:
        segments = get_skill_segments(now, replay.entry.skill)
        diff = compare_segments(replay.segments, segments, count_tokens_cached)
        shown = list_full_sections(diff, segments) if is_whole else diff.changed
        return {"diff": diff, "shown": shown, "is_whole": is_whole}
    segments = get_segments(now)
    if replay.entry and not replay.is_erased and not replay.problem:
        slots = slots_from_json(get_call_values(replay.entry))
        prompt = build_call_prompt(now, slots)
        segments = fill_segments(prompt.segments if prompt else segments, slots)
    tools = [] if replay.tools is None else select_replay_tools(replay, get_tool_definitions(now))
    diff = compare_segments(replay.segments, segments, count_tokens_cached, tools=(replay.tools or [], tools))
    sections = list_full_sections(diff, segments) if is_whole else diff.changed
    return {"diff": diff, "shown": sections, "is_whole": is_whole}


def select_replay_tools(replay: Replay, definitions: list[dict[str, Any]]) -> Sequence[DefinitionJson]:
    """Return the definitions that the call of the replay would select; all if it was no call."""
    names = (
        slots_from_json(get_call_values(replay.entry)).tools if replay.entry and not replay.problem else None
    )
    return select_call_tools(definitions, names)[0]


def get_change_links(workspace: Workspace, replay: Replay, changes: AdjacentChanges) -> dict[str, Any]:
    """Return the label changes before and after the replayed time, each with the URL of its replay."""
    links: dict[str, Any] = {"before": changes.before, "after": changes.after}
    for name, change in (("before", changes.before), ("after", changes.after)):
        if change:
            url_args = [workspace.slug, replay.prompt.pk, get_label_name(replay), format_timestamp(change.at)]
            links[f"{name}_url"] = reverse("replay:moment", args=url_args)
    return links


def format_slot_value(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def search_replays(request: WorkspaceRequest) -> HttpResponse:
    """Find a replay by agent, channel and time, or by the request id of a bot's response."""
    params = request.GET
    if params.get("request", "").strip() or ("request" in params and "agent" not in params):
        return search_by_request(request)
    if "at" in params or "ago" in params:
        return search_by_time(request)
    return render_replay_search(request)


def render_replay_search(
    request: WorkspaceRequest,
    *,
    status: int = 200,
    moment_form: ReplayByTimeForm | None = None,
    request_form: ReplayByRequestForm | None = None,
    **more: Any,
) -> HttpResponse:
    context = {
        "moment_form": moment_form or build_time_form(request, None),
        "request_form": request_form or ReplayByRequestForm(),
        "recent": list_latest_fetches(request.workspace),
        "channels_by_agent": list_channels_by_agent(request.workspace),
        "quick_times": QUICK_TIMES,
    }
    return render(request, "prompts/replay/find.html", context | more, status=status)


def build_time_form(request: WorkspaceRequest, data: Any) -> ReplayByTimeForm:
    """Build the search form. Agent and channel are preset from the URL, because agent pages link to it."""
    workspace, params = request.workspace, {name: request.GET.get(name) for name in ("agent", "channel")}
    initial = {name: value for name, value in params.items() if value}
    choices = {"agents": list_agent_choices(workspace), "channels": list_channel_choices(workspace)}
    return ReplayByTimeForm(data, initial=initial, **choices)


def get_time_data(request: WorkspaceRequest) -> QueryDict:
    """Return the data of the form. The buttons such as “1 hour ago” set the time instead of its field."""
    data, minutes = request.GET.copy(), request.GET.get("ago", "")
    if minutes in {str(value) for value, _label in QUICK_TIMES}:
        at = timezone.localtime(timezone.now() - timedelta(minutes=int(minutes)))
        data["at"] = f"{at:%Y-%m-%dT%H:%M:%S}"
    return data


def search_by_time(request: WorkspaceRequest) -> HttpResponse:
    form = build_time_form(request, get_time_data(request))
    if not form.is_valid():
        return render_replay_search(request, status=422, moment_form=form)
    values = form.cleaned_data
    prompt = find_prompt_by_slugs(request.workspace, values["agent"], values["channel"])
    if prompt is None:
        form.add_error("channel", _("This agent never had a prompt on this channel."))
        return render_replay_search(request, status=422, moment_form=form)
    try:
        replay_prompt(prompt, values["at"], values["label"])
    except DomainError as error:
        form.add_error("label" if isinstance(error, NoSuchLabelAtTime) else "at", error.message)
        return render_replay_search(request, status=422, moment_form=form)
    url_args = [request.workspace.slug, prompt.pk, values["label"], format_timestamp(values["at"])]
    return redirect("replay:moment", *url_args)


def search_by_request(request: WorkspaceRequest) -> HttpResponse:
    form = ReplayByRequestForm(request.GET)
    if not form.is_valid():
        return render_replay_search(request, status=422, request_form=form)
    request_id = form.cleaned_data["request"].strip()
    try:
        entries = list_request_entries(request.workspace, request_id)
    except FetchNotFound as error:
        if request_id.isascii() and request_id.isdecimal() and len(request_id) < 16:
            return redirect("replay:fetch", request.workspace.slug, int(request_id))
        form.add_error("request", error.message)
        return render_replay_search(request, status=422, request_form=form)
    if len(entries) == 1:
        return redirect("replay:fetch", request.workspace.slug, entries[0].pk)
    return render_replay_search(request, request_form=form, entries=entries)


# --- one replay ----------------------------------------------------------------------------------------


def replay_fetch(request: WorkspaceRequest, entry: int) -> HttpResponse:
    try:
        replay = get_entry_replay(request, entry)
    except LedgerRowExpired as error:
        return render_replay_search(request, status=410, gone=error.message)
    return render_replay(request, replay, "replay:fetch", [entry])


def replay_time(request: WorkspaceRequest, prompt: int, label: str, at: str) -> HttpResponse:
    try:
        replay = get_time_replay(request, prompt, label, at)
    except DomainError as error:
        return render_replay_search(request, status=422, gone=error.message)
    return render_replay(request, replay, "replay:moment", [prompt, label, at])


def render_replay(request: WorkspaceRequest, replay: Replay, route: str, url_args: list[Any]) -> HttpResponse:
    adjacent = get_adjacent_changes(replay)
    full_args = [request.workspace.slug, *url_args]
    wants_checks = request.GET.get("check") == "all"
    context = {
        "replay": replay,
        "reading": ReplayPage(request.workspace, replay),
        "agent": replay.prompt.agent,
        "prompt": replay.prompt,
        "version": replay.version,
        "now": adjacent.now,
        "changes": get_change_links(request.workspace, replay, adjacent),
        "here": reverse(route, args=full_args),
        "around": list_fetches_around(
            replay.prompt, replay.at, exclude_id=replay.entry.pk if replay.entry else None
        ),
        "checks": list_replay_checks(replay) if wants_checks else None,
        "check_url": f"{reverse(route, args=full_args)}?{urlencode({'check': 'all'})}",
        "evidence_url": reverse(f"{route}-evidence", args=full_args),
        "text_url": reverse(f"{route}-text", args=full_args),
        "tools_url": reverse(f"{route}-tools", args=full_args),
    }
    if adjacent.now not in (None, replay.version.number) and request.GET.get("compare") == "now":
        now = get_version_or_404(replay.prompt, adjacent.now)
        context |= compare_with_current(replay, now, is_whole=request.GET.get("show") == SHOW_ALL)
    return render(request, "prompts/replay/replay.html", context)


def list_replay_checks(replay: Replay) -> list[CheckResult]:
    """Verify the evidence as a third party would, without the check of the expected key.

    That check compares with a key obtained independently of this server, so it would prove nothing here.
    """
    return [
        check
        for check in run_evidence_checks(build_evidence(replay), None)
        if check.name != EXPECTED_KEY_CHECK
    ]


def get_entry_replay(request: WorkspaceRequest, entry: int) -> Replay:
    try:
        return replay_entry(request.workspace, entry)
    except FetchNotFound as error:
        raise Http404(error.message) from None


def get_time_replay(request: WorkspaceRequest, prompt: int, label: str, at: str) -> Replay:
    row = get_prompt_or_404(request, prompt)
    try:
        timestamp = datetime.fromisoformat(at)
    except ValueError:
        raise Http404("Invalid time.") from None
    return replay_prompt(row, timestamp if timestamp.tzinfo else timestamp.replace(tzinfo=UTC), label)


# --- downloads -----------------------------------------------------------------------------------------


def download_fetch_evidence(request: WorkspaceRequest, entry: int) -> HttpResponse:
    return build_evidence_response(request, lambda: get_entry_replay(request, entry))


def download_fetch_text(request: WorkspaceRequest, entry: int) -> HttpResponse:
    return build_text_response(request, lambda: get_entry_replay(request, entry))


def download_time_evidence(request: WorkspaceRequest, prompt: int, label: str, at: str) -> HttpResponse:
    return build_evidence_response(request, lambda: get_time_replay(request, prompt, label, at))


def download_time_text(request: WorkspaceRequest, prompt: int, label: str, at: str) -> HttpResponse:
    return build_text_response(request, lambda: get_time_replay(request, prompt, label, at))


def download_fetch_tools(request: WorkspaceRequest, entry: int) -> HttpResponse:
    return build_tools_response(request, lambda: get_entry_replay(request, entry))


def download_time_tools(request: WorkspaceRequest, prompt: int, label: str, at: str) -> HttpResponse:
    return build_tools_response(request, lambda: get_time_replay(request, prompt, label, at))


def build_tools_response(request: WorkspaceRequest, load_replay: Any) -> HttpResponse:
    """Return the tool definitions that were sent with the text as a JSON download; 410 if erased."""
    try:
        replay = load_replay()
    except DomainError as error:
        return render_replay_search(request, status=410, gone=error.message)
    if replay.tools is None:
        return render_replay_search(request, status=410, gone=_("The tool definitions were erased."))
    data = json.dumps(replay.tools, indent=2, ensure_ascii=False)
    return build_attachment(replay, f"{data}\n".encode(), "application/json", "tools.json")


def build_evidence_response(request: WorkspaceRequest, load_replay: Any) -> HttpResponse:
    try:
        replay = load_replay()
    except DomainError as error:
        return render_replay_search(request, status=410, gone=error.message)
    data = json.dumps(build_evidence(replay), indent=2, ensure_ascii=False)
    return build_attachment(replay, f"{data}\n".encode(), "application/json", "evidence.json")


def build_text_response(request: WorkspaceRequest, load_replay: Any) -> HttpResponse:
    """Return the text as a download, or 410 unless its bytes match the recorded digest."""
    try:
        replay = load_replay()
        replay.require_exact()
    except DomainError as error:
        return render_replay_search(request, status=410, gone=error.message)
    return build_attachment(replay, replay.text.encode(), "text/markdown; charset=utf-8", "md")


def build_attachment(replay: Replay, data: bytes, content_type: str, extension: str) -> HttpResponse:
    response = HttpResponse(data, content_type=content_type)
    prompt = replay.prompt
    when = f"ledger-{replay.entry.pk}" if replay.entry else f"{replay.at.astimezone(UTC):%Y%m%dT%H%M%SZ}"
    name = f"{prompt.agent.slug}-{prompt.channel.slug}-{when}.{extension}"
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


TIME_PATH = "prompts/<int:prompt>/<slug:label>/<str:at>/"
urlpatterns: list[URLPattern] = [
    path("", search_replays, name="find"),
    path("fetches/<int:entry>/", replay_fetch, name="fetch"),
    path("fetches/<int:entry>/evidence/", download_fetch_evidence, name="fetch-evidence"),
    path("fetches/<int:entry>/text/", download_fetch_text, name="fetch-text"),
    path("fetches/<int:entry>/tools/", download_fetch_tools, name="fetch-tools"),
    path(TIME_PATH, replay_time, name="moment"),
    path(f"{TIME_PATH}evidence/", download_time_evidence, name="moment-evidence"),
    path(f"{TIME_PATH}text/", download_time_text, name="moment-text"),
    path(f"{TIME_PATH}tools/", download_time_tools, name="moment-tools"),
]
urls = (urlpatterns, "replay")
