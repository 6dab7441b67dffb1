"""Template context for the pages of one context file."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.core.paginator import Paginator
from django.utils import timezone
from django.utils.translation import gettext as _

from core.text.diff import DiffLine, diff_lines
from personas.tenancy.middleware import WorkspaceRequest
from personas.ui.responses import hash_page_state
from skills.agent_context.skill_validity import get_skill_validity
from skills.files.evaluate import build_skill_reading
from skills.files.forms import AssignmentForm, WaiverForm
from skills.files.prompt_usage import describe_usages, get_prompt_usage_fingerprint
from skills.files.reasons import list_status_reasons
from skills.files.selectors import (
    get_compared_revisions,
    get_last_scanned_at,
    get_revision_text,
    get_seen_digest,
    list_agents_by_id,
    list_revisions,
    list_waivers,
)
from skills.files.status_changes import list_reader_ids
from skills.library.duplicates import find_effective_skills, find_name_conflicts
from skills.models import ContextFile, FileAgent, FileRevision, FileStatus
from skills.scanning import mask_secrets
from skills.skill_format.tolerance import HARNESS_TOLERANCES, evaluate_for_harness


@dataclass(frozen=True)
class HarnessVerdict:
    """Whether a harness keeps a skill, keeps it with a warning, or drops it, with the reasons."""

    harness: str
    label: str
    tone: str
    reasons: tuple[str, ...] = ()


def list_harness_verdicts(revision: FileRevision, harnesses: Iterable[str]) -> list[HarnessVerdict]:
    """Evaluate the revision for each harness of the skill's source."""
    reading = build_skill_reading(revision.head, revision.problems)
    verdicts = []
    for name in harnesses:
        if name in HARNESS_TOLERANCES:
            verdict = evaluate_for_harness(reading, name)
            problems = verdict.warnings if verdict.kept else verdict.reasons
            label, tone = describe_verdict(verdict.kept, bool(verdict.warnings))
            verdicts.append(HarnessVerdict(name, label, tone, tuple(problem.message for problem in problems)))
    return verdicts


def describe_verdict(is_kept: bool, is_warned: bool) -> tuple[str, str]:
    if not is_kept:
        return _("Excluded"), "error"
    return (_("Allowed with a warning"), "warning") if is_warned else (_("Allowed"), "success")


PAGE_SIZE = 25
MAX_DIFF_LINES, PREVIEW_LINES = 20_000, 12
APPROVABLE_STATUSES = {FileStatus.NEW, FileStatus.CHANGED, FileStatus.MISSING}


def build_file_page(
    request: WorkspaceRequest,
    file: ContextFile,
    *,
    waiver_form: WaiverForm | None = None,
    assignment_form: AssignmentForm | None = None,
) -> dict[str, Any]:
    digest = get_seen_digest(file)
    history = Paginator(list_revisions(file).defer("findings", "problems", "head"), PAGE_SIZE)
    agents = list_agents_by_id(request.workspace, list_reader_ids(file.source, [file]))
    pair = get_compared_revisions(file)
    lines = diff_revisions(*pair) if pair else None
    page = {
        "file": file,
        "mark": get_file_mark(file),
        "reasons": list_status_reasons(file),
        "usage": describe_usages([file])[file.pk],
        "digest": digest,
        "can_approve": file.status in APPROVABLE_STATUSES and not file.is_resolved,
        "waiver_form": waiver_form or WaiverForm(initial={"digest": digest}),
        "waivers": list_waivers(file),
        "today": timezone.now().date(),
        "page": history.get_page(request.GET.get("page")),
        "scanned_at": get_last_scanned_at(file),
        "agents": agents,
        "pair": pair,
        "lines": lines,
        "is_masked_change": is_masked_change(lines),
        "active_text": get_revision_text(file.active) if file.active else None,
        "latest_text": get_revision_text(file.latest) if file.latest and not file.active else None,
        "flagged": get_flagged_lines(file.latest) if file.latest else set(),
    }
    return page | (
        build_skill_section(request, file, agents, assignment_form) if file.file_kind == "skill" else {}
    )


def get_file_mark(file: ContextFile) -> str:
    """Return a hash that changes with what the page of the file shows, except the time of the last scan."""
    revisions = file.latest_id, file.approved_id, file.active_id
    flags = file.status, file.problem, file.exists, file.is_ignored, file.is_resolved
    waivers = list(list_waivers(file).values_list("pk", "ended_at"))
    return hash_page_state(
        revisions,
        flags,
        file.trusted_digest,
        file.rejected_digest,
        waivers,
        get_prompt_usage_fingerprint(file.workspace_id),
    )


def build_skill_section(
    request: WorkspaceRequest, file: ContextFile, agents: list[Any], form: AssignmentForm | None
) -> dict[str, Any]:
    links = FileAgent.objects.in_workspace(request.workspace).filter(file=file)
    chosen = list(links.values_list("agent_id", flat=True))
    initial = {"assigned_to": file.assigned_to, "agents": chosen}
    revision, conflicts = file.latest or file.active, find_name_conflicts(file)
    return {
        "trust": describe_trust(file),
        "head": mask_head(revision.head) if revision else {},
        "verdicts": list_harness_verdicts(revision, file.source.harnesses) if revision else [],
        "validity": get_skill_validity(file, revision) if revision and revision.head else None,
        "conflicts": conflicts,
        "winners": find_effective_skills(file.name, agents) if conflicts else [],
        "assignment_form": form or AssignmentForm(workspace=request.workspace, initial=initial),
    }


def mask_head(head: dict[str, Any]) -> dict[str, Any]:
    """Return the front matter of a skill with the secrets in its texts masked."""
    return {key: mask_secrets(value) if isinstance(value, str) else value for key, value in head.items()}


def describe_trust(file: ContextFile) -> tuple[str, str]:
    """Return a label that says whether the skill's current content is trusted, and the badge's color name."""
    latest = file.latest
    if latest is not None and latest.digest == file.trusted_digest:
        return _("Trusted in its current form"), "success"
    if not file.source.workspace.skills_need_trust:
        return _("Not required in this workspace"), "neutral"
    if file.trusted_digest:
        return _("Not trusted: changed since last approval"), "warning"
    return _("Not trusted yet, so agents cannot use it"), "warning"


def build_revision_page(file: ContextFile, revision: FileRevision) -> dict[str, Any]:
    earlier = list_revisions(file).filter(number__lt=revision.number).select_related("content").first()
    lines = diff_revisions(earlier, revision) if earlier else None
    return {
        "file": file,
        "revision": revision,
        "earlier": earlier,
        "lines": lines,
        "is_masked_change": is_masked_change(lines),
        "revision_text": get_revision_text(revision),
        "flagged": get_flagged_lines(revision),
        "scanned_at": get_last_scanned_at(file),
    }


def build_diff_preview(file: ContextFile) -> dict[str, Any]:
    """Return the first PREVIEW_LINES changed lines of the diff, and how many changed lines are left out."""
    pair = get_compared_revisions(file)
    all_lines = diff_revisions(*pair) if pair else None
    lines = [line for line in all_lines or () if line.kind != "same"]
    return {
        "pair": pair,
        "lines": lines[:PREVIEW_LINES],
        "more": max(0, len(lines) - PREVIEW_LINES),
        "is_masked_change": is_masked_change(all_lines),
    }


def diff_revisions(before: FileRevision, after: FileRevision) -> list[DiffLine] | None:
    """Return the line diff of two revisions, or None if either text has more than MAX_DIFF_LINES lines.

    Secrets are masked in both texts.
    """
    old, new = get_revision_text(before).text, get_revision_text(after).text
    is_long = max(old.count("\n"), new.count("\n")) > MAX_DIFF_LINES
    return None if is_long else diff_lines(old, new)


def is_masked_change(lines: list[DiffLine] | None) -> bool:
    """Return whether the diff of two different revisions shows no change, because only secrets differ."""
    return lines is not None and all(line.kind == "same" for line in lines)


def get_flagged_lines(revision: FileRevision) -> set[int]:
    return {entry["line"] for entry in (*revision.findings, *revision.problems) if entry["line"]}
