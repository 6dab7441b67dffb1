"""Pages of bots: what is released, served and loaded, and the differences of a report."""

from typing import Any

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import URLPattern, path
from django.utils.http import urlencode

from core.db.replica import has_recent_write, read_from_replica
from personas.models import Workspace
from personas.tenancy.middleware import WorkspaceRequest
from prompts.errors import FetchNotFound, LedgerRowExpired
from prompts.evidence.drift.details import LineChanges, parse_report_details
from prompts.evidence.drift.loaded_diff import build_loaded_diff
from prompts.evidence.drift.selectors import (
    choose_label,
    compare_loaded_skills,
    compare_loaded_text_and_skills,
    get_label_version,
    list_bots,
)
from prompts.evidence.replay.services import replay_entry
from prompts.models import BotStatus, DigestReport, PromptVersion
from prompts.page_lookup import check_url_number
from prompts.publishing.builds.tokens import count_tokens_cached
from prompts.publishing.versions.diff import compare_segments
from prompts.publishing.versions.selectors import (
    get_definition_pair,
    get_segment_pair,
    get_skill_file_pair,
    get_version_text,
)

MAX_SHOWN = 200
STATUS_TONES = {
    BotStatus.NEVER_RELEASED: "error",
    BotStatus.OUTDATED: "warning",
    BotStatus.UNKNOWN: "neutral",
    BotStatus.SAME: "success",
}


def index(request: WorkspaceRequest) -> HttpResponse:
    return render(request, "prompts/drift/list.html", get_bots_context(request))


def live_bots(request: WorkspaceRequest) -> HttpResponse:
    """Return the table if there are new reports, and 204 otherwise, so that the page is not replaced."""
    if request.GET.get("seen") == str(get_newest_report_id(request.workspace)):
        return HttpResponse(status=204)
    return render(request, "prompts/drift/_live.html", get_bots_context(request))


def get_bots_context(request: WorkspaceRequest) -> dict[str, Any]:
    # Read before the list, so that a report that arrives in between is shown by the next request.
    newest = get_newest_report_id(request.workspace)
    bots = read_from_replica(
        lambda alias: list_bots(request.workspace, using=alias), fresh=has_recent_write(request)
    )
    status = request.GET.get("status", "")
    status = status if status in BotStatus.values else ""
    chosen = [bot for bot in bots if not status or bot.status == status]
    counts = [(one, sum(bot.status == one for bot in bots)) for one in BotStatus]
    return {
        "bots": [(bot, STATUS_TONES[bot.status]) for bot in chosen[:MAX_SHOWN]],
        "more": max(0, len(chosen) - MAX_SHOWN),
        "counts": [(one.value, one.label, count) for one, count in counts],
        "status": status,
        "poll": urlencode(({"status": status} if status else {}) | {"seen": str(newest)}),
    }


def get_newest_report_id(workspace: Workspace) -> int:
    rows = DigestReport.objects.in_workspace(workspace).order_by("-pk")
    return rows.values_list("pk", flat=True).first() or 0


def detail(request: WorkspaceRequest, report: int) -> HttpResponse:
    """Show a report, compared with the version that the label points to now."""
    rows = DigestReport.objects.in_workspace(request.workspace)
    rows = rows.select_related("key", "version", "prompt__agent", "prompt__channel", "prompt__latest")
    row = get_object_or_404(rows, pk=check_url_number(report))
    label = choose_label(row.prompt, row.key)
    released = get_label_version(row.prompt, label)
    details = parse_report_details(row.details)
    status = compare_loaded_text_and_skills(released, row.version, details.skills)
    context = {
        "report": row,
        "prompt": row.prompt,
        "details": details,
        "label": label,
        "released": released,
        "status": status,
        "tone": STATUS_TONES[status],
        "is_split": True,
        "sections": list_changed_version_sections(row.version, released),
        "lines": get_diff_lines(request.workspace, row, details.changes),
        "skills": [
            (one, STATUS_TONES[one.status]) for one in compare_loaded_skills(released, details.skills)
        ],
    }
    return render(request, "prompts/drift/report.html", context)


def list_changed_version_sections(loaded: PromptVersion | None, released: PromptVersion | None) -> list[Any]:
    """Return the changed sections from the loaded to the released version, if these are two versions."""
    if loaded is None or released is None or loaded.digest == released.digest:
        return []
    segments, tools = get_segment_pair(loaded, released), get_definition_pair(loaded, released)
    files = get_skill_file_pair(loaded, released)
    return compare_segments(*segments, count_tokens_cached, tools=tools, skill_files=files).all_changed


def get_diff_lines(workspace: Workspace, report: DigestReport, changes: LineChanges | None) -> list[Any]:
    """Return the diff of the served and the loaded text; empty if the served text is no longer available."""
    if changes is None:
        return []
    if changes.ledger_id is None:
        rows = PromptVersion.objects.in_workspace(workspace).filter(prompt=report.prompt_id)
        version = rows.filter(number=changes.number).first()
        return build_loaded_diff(get_version_text(version), changes) if version else []
    try:
        replay = replay_entry(workspace, changes.ledger_id)
    except (FetchNotFound, LedgerRowExpired):
        return []
    return build_loaded_diff(replay.text, changes) if replay.is_exact else []


urlpatterns: list[URLPattern] = [
    path("", index, name="list"),
    path("live/", live_bots, name="live"),
    path("reports/<int:report>/", detail, name="report"),
]
urls = (urlpatterns, "bots")
