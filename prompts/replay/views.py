"""The time machine: what an agent was told in a fetch or at a moment, to the byte, with the proof of it."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cached_property
from typing import Any
from urllib.parse import urlencode

from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext as _

from personas.errors import DomainError
from personas.models import Workspace
from personas.tenancy.middleware import WorkspaceRequest
from personas.ui.display_names import title_of
from prompts.assembly.segments import Segment
from prompts.assembly.slots import filled
from prompts.builds.compiler import tokens_in
from prompts.errors import RolledOff, UnknownFetch
from prompts.models import PromptVersion
from prompts.page_lookup import found_prompt as prompt_by_id
from prompts.page_lookup import found_version
from prompts.proof.canonical import moment as spelled
from prompts.proof.evidence import KEY_EXPECTED, Check
from prompts.replay.evidence import checks_of, evidence_of
from prompts.replay.forms import MomentForm, RequestForm
from prompts.replay.selectors import (
    Surroundings,
    agent_choices,
    channel_choices,
    fetches_around,
    found_prompt,
    label_of,
    latest_fetches,
    surroundings_of,
)
from prompts.replay.services import Replay, entries_of_request, replay_entry, replay_prompt
from prompts.serving import slots_from_json
from prompts.versions.diff import compare
from prompts.versions.diff_views import EVERYTHING, whole_text
from prompts.versions.page import Beside, Reading, Section, main_kind
from prompts.versions.selectors import segments_of
from prompts.versions.text_rows import Row


class ReplayReading(Reading):
    """A replay, read for a page; sizes are those of the words that were said, not of those built."""

    def __init__(self, workspace: Workspace, replay: Replay) -> None:
        super().__init__(workspace, replay.version)
        self.replay = replay

    @cached_property
    def segments(self) -> tuple[Segment, ...]:
        return self.replay.segments

    def section(self, name: str, rows: Sequence[Row], ends: dict[int, str]) -> Section:
        words = self.seen.text[rows[0].start : rows[-1].end]
        beside = [Beside(row, [self.words_for(origin) for origin in row.origins]) for row in rows]
        slots = [] if self.replay.entry else list(dict.fromkeys(slot for row in rows for slot in row.slots))
        return Section(name, beside, len(words), tokens_in(words), slots, "", main_kind(rows))

    @property
    def tokens(self) -> int:
        return sum(section.tokens for section in self.sections)

    @cached_property
    def facts(self) -> list[tuple[str, str]]:
        """What the call brought, by name; what it left out is not told."""
        entry = self.replay.entry
        return [(title_of(name), in_words(value)) for name, value in entry.slots.items()] if entry else []


def against_now(replay: Replay, now: PromptVersion, *, is_whole: bool) -> dict[str, Any]:
    """What was said then beside what the same call would be told now: the slots are filled alike."""
    segments = segments_of(now)
    if replay.entry and not replay.is_erased and not replay.problem:
        segments = filled(segments, slots_from_json(replay.entry.slots))
    found = compare(replay.segments, segments, tokens_in)
    shown = whole_text(found, segments) if is_whole else found.changed
    return {"diff": found, "shown": shown, "is_whole": is_whole}


def steps(workspace: Workspace, replay: Replay, found: Surroundings) -> dict[str, Any]:
    """The changes on both sides of the moment, each with the address of its own moment."""
    told: dict[str, Any] = {"before": found.before, "after": found.after}
    for name, change in (("before", found.before), ("after", found.after)):
        if change:
            place = [workspace.slug, replay.prompt.pk, label_of(replay), spelled(change.at)]
            told[f"{name}_url"] = reverse("time-machine:moment", args=place)
    return told


def in_words(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def find(request: WorkspaceRequest) -> HttpResponse:
    """Where to go: by agent, channel and moment, or by the answer a bot got, which says all by itself."""
    said = request.GET
    if said.get("request", "").strip() or ("request" in said and "agent" not in said):
        return by_request(request)
    if "at" in said:
        return by_moment(request)
    return asked_for(request)


def asked_for(
    request: WorkspaceRequest,
    *,
    status: int = 200,
    moment_form: MomentForm | None = None,
    request_form: RequestForm | None = None,
    **more: Any,
) -> HttpResponse:
    context = {
        "moment_form": moment_form or a_moment(request, None),
        "request_form": request_form or RequestForm(),
        "recent": latest_fetches(request.workspace),
    }
    return render(request, "prompts/time_machine/find.html", context | more, status=status)


def a_moment(request: WorkspaceRequest, data: Any) -> MomentForm:
    """Pages about an agent lead here with its name; the moment is then still to be said."""
    workspace, named = request.workspace, {name: request.GET.get(name) for name in ("agent", "channel")}
    known = {name: value for name, value in named.items() if value}
    choices = {"agents": agent_choices(workspace), "channels": channel_choices(workspace)}
    return MomentForm(data, initial=known, **choices)


def by_moment(request: WorkspaceRequest) -> HttpResponse:
    form = a_moment(request, request.GET)
    if not form.is_valid():
        return asked_for(request, status=422, moment_form=form)
    said = form.cleaned_data
    prompt = found_prompt(request.workspace, said["agent"], said["channel"])
    if prompt is None:
        form.add_error("channel", _("This agent never spoke on this channel."))
        return asked_for(request, status=422, moment_form=form)
    try:
        replay_prompt(prompt, said["at"], said["label"])
    except DomainError as error:
        form.add_error("at", error.message)
        return asked_for(request, status=422, moment_form=form)
    place = [request.workspace.slug, prompt.pk, said["label"], spelled(said["at"])]
    return redirect("time-machine:moment", *place)


def by_request(request: WorkspaceRequest) -> HttpResponse:
    form = RequestForm(request.GET)
    if not form.is_valid():
        return asked_for(request, status=422, request_form=form)
    said = form.cleaned_data["request"].strip()
    try:
        found = entries_of_request(request.workspace, said)
    except UnknownFetch as error:
        if said.isascii() and said.isdecimal() and len(said) < 16:
            return redirect("time-machine:fetch", request.workspace.slug, int(said))
        form.add_error("request", error.message)
        return asked_for(request, status=422, request_form=form)
    if len(found) == 1:
        return redirect("time-machine:fetch", request.workspace.slug, found[0].pk)
    return asked_for(request, request_form=form, found=found)


# --- one replay ----------------------------------------------------------------------------------------


def fetch(request: WorkspaceRequest, entry: int) -> HttpResponse:
    try:
        replay = replayed_entry(request, entry)
    except RolledOff as error:
        return asked_for(request, status=410, gone=error.message)
    return shown(request, replay, "time-machine:fetch", [entry])


def moment(request: WorkspaceRequest, prompt: int, label: str, at: str) -> HttpResponse:
    try:
        replay = replayed_moment(request, prompt, label, at)
    except DomainError as error:
        return asked_for(request, status=422, gone=error.message)
    return shown(request, replay, "time-machine:moment", [prompt, label, at])


def shown(request: WorkspaceRequest, replay: Replay, route: str, place: list[Any]) -> HttpResponse:
    around = surroundings_of(replay)
    where = [request.workspace.slug, *place]
    wants_checks = request.GET.get("check") == "all"
    context = {
        "replay": replay,
        "reading": ReplayReading(request.workspace, replay),
        "agent": replay.prompt.agent,
        "prompt": replay.prompt,
        "version": replay.version,
        "now": around.now,
        "changes": steps(request.workspace, replay, around),
        "here": reverse(route, args=where),
        "around": fetches_around(replay.prompt, replay.at, but=replay.entry.pk if replay.entry else None),
        "checks": checked(replay) if wants_checks else None,
        "check_url": f"{reverse(route, args=where)}?{urlencode({'check': 'all'})}",
        "evidence_url": reverse(f"{route}-evidence", args=where),
        "text_url": reverse(f"{route}-text", args=where),
    }
    if around.now not in (None, replay.version.number) and request.GET.get("compare") == "now":
        now = found_version(replay.prompt, around.now)
        context |= against_now(replay, now, is_whole=request.GET.get("show") == EVERYTHING)
    return render(request, "prompts/time_machine/replay.html", context)


def checked(replay: Replay) -> list[Check]:
    """What somebody with the evidence would find; whose key it is they must learn by another way."""
    return [check for check in checks_of(evidence_of(replay), None) if check.name != KEY_EXPECTED]


def replayed_entry(request: WorkspaceRequest, entry: int) -> Replay:
    try:
        return replay_entry(request.workspace, entry)
    except UnknownFetch as error:
        raise Http404(error.message) from None


def replayed_moment(request: WorkspaceRequest, prompt: int, label: str, at: str) -> Replay:
    row = prompt_by_id(request, prompt)
    try:
        then = datetime.fromisoformat(at)
    except ValueError:
        raise Http404("No such moment.") from None
    return replay_prompt(row, then if then.tzinfo else then.replace(tzinfo=UTC), label)


# --- to take away --------------------------------------------------------------------------------------


def fetch_evidence(request: WorkspaceRequest, entry: int) -> HttpResponse:
    return evidence(request, lambda: replayed_entry(request, entry))


def fetch_text(request: WorkspaceRequest, entry: int) -> HttpResponse:
    return text(request, lambda: replayed_entry(request, entry))


def moment_evidence(request: WorkspaceRequest, prompt: int, label: str, at: str) -> HttpResponse:
    return evidence(request, lambda: replayed_moment(request, prompt, label, at))


def moment_text(request: WorkspaceRequest, prompt: int, label: str, at: str) -> HttpResponse:
    return text(request, lambda: replayed_moment(request, prompt, label, at))


def evidence(request: WorkspaceRequest, replayed: Any) -> HttpResponse:
    try:
        replay = replayed()
    except DomainError as error:
        return asked_for(request, status=410, gone=error.message)
    data = json.dumps(evidence_of(replay), indent=2, ensure_ascii=False)
    return taken(replay, f"{data}\n".encode(), "application/json", "evidence.json")


def text(request: WorkspaceRequest, replayed: Any) -> HttpResponse:
    """The very bytes, or none."""
    try:
        replay = replayed()
        replay.refuse_other()
    except DomainError as error:
        return asked_for(request, status=410, gone=error.message)
    return taken(replay, replay.text.encode(), "text/markdown; charset=utf-8", "md")


def taken(replay: Replay, data: bytes, kind: str, ending: str) -> HttpResponse:
    answer = HttpResponse(data, content_type=kind)
    prompt = replay.prompt
    when = f"ledger-{replay.entry.pk}" if replay.entry else f"{replay.at.astimezone(UTC):%Y%m%dT%H%M%SZ}"
    name = f"{prompt.agent.slug}-{prompt.channel.slug}-{when}.{ending}"
    answer["Content-Disposition"] = f'attachment; filename="{name}"'
    return answer


AT = "prompts/<int:prompt>/<slug:label>/<str:at>/"
urlpatterns: list[URLPattern] = [
    path("", find, name="find"),
    path("fetches/<int:entry>/", fetch, name="fetch"),
    path("fetches/<int:entry>/evidence/", fetch_evidence, name="fetch-evidence"),
    path("fetches/<int:entry>/text/", fetch_text, name="fetch-text"),
    path(AT, moment, name="moment"),
    path(f"{AT}evidence/", moment_evidence, name="moment-evidence"),
    path(f"{AT}text/", moment_text, name="moment-text"),
]
urls = (urlpatterns, "time-machine")
