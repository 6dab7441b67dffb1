"""What the pages of one file show."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.core.paginator import Paginator
from django.utils import timezone
from django.utils.translation import gettext as _

from core.text.diff import DiffLine, diff_lines
from personas.tenancy.middleware import WorkspaceRequest
from skills.files.evaluate import build_skill_reading
from skills.files.forms import ReachForm, WaiverForm
from skills.files.reasons import describe_usage, list_state_reasons
from skills.files.selectors import (
    get_compared_revisions,
    get_last_scanned_at,
    get_revision_text,
    get_seen_digest,
    list_agents_by_id,
    list_revisions,
    list_waivers,
)
from skills.files.state_changes import list_reader_ids
from skills.library.duplicates import find_effective_skills, find_name_conflicts
from skills.models import ContextFile, FileAgent, FileRevision, FileState
from skills.skill_format.tolerance import HARNESS_TOLERANCES, evaluate_for_harness


@dataclass(frozen=True)
class HarnessVerdict:
    """Kept, kept with a warning, or dropped; and why."""

    harness: str
    word: str
    tone: str
    reasons: tuple[str, ...] = ()


def list_harness_verdicts(revision: FileRevision, harnesses: Iterable[str]) -> list[HarnessVerdict]:
    """By the rule sets that look through the skill's source."""
    reading = build_skill_reading(revision.head, revision.problems)
    found = []
    for name in harnesses:
        if name in HARNESS_TOLERANCES:
            verdict = evaluate_for_harness(reading, name)
            said = verdict.warnings if verdict.kept else verdict.reasons
            word, tone = describe_verdict(verdict.kept, bool(verdict.warnings))
            found.append(HarnessVerdict(name, word, tone, tuple(problem.message for problem in said)))
    return found


def describe_verdict(is_kept: bool, is_warned: bool) -> tuple[str, str]:
    if not is_kept:
        return _("Dropped"), "error"
    return (_("Kept with a warning"), "warning") if is_warned else (_("Kept"), "success")


PAGE_SIZE = 25
MAX_DIFF_LINES, PREVIEW_LINES = 20_000, 12
APPROVABLE_STATES = {FileState.NEW, FileState.CHANGED, FileState.MISSING}


def build_file_page(
    request: WorkspaceRequest,
    file: ContextFile,
    *,
    waiver_form: WaiverForm | None = None,
    reach_form: ReachForm | None = None,
) -> dict[str, Any]:
    digest = get_seen_digest(file)
    history = Paginator(list_revisions(file).defer("findings", "problems", "head"), PAGE_SIZE)
    agents = list_agents_by_id(request.workspace, list_reader_ids(file.source, [file]))
    pair = get_compared_revisions(file)
    page = {
        "file": file,
        "reasons": list_state_reasons(file),
        "standing": describe_usage(file),
        "digest": digest,
        "can_adopt": file.state in APPROVABLE_STATES and not file.is_settled,
        "waiver_form": waiver_form or WaiverForm(initial={"digest": digest}),
        "waivers": list_waivers(file),
        "today": timezone.now().date(),
        "page": history.get_page(request.GET.get("page")),
        "looked_at": get_last_scanned_at(file),
        "agents": agents,
        "pair": pair,
        "lines": diff_revisions(*pair) if pair else None,
        "in_force_words": get_revision_text(file.in_force) if file.in_force else None,
        "newest_words": get_revision_text(file.newest) if file.newest and not file.in_force else None,
        "flagged": get_flagged_lines(file.newest) if file.newest else set(),
    }
    return page | (
        build_skill_section(request, file, agents, reach_form) if file.file_kind == "skill" else {}
    )


def build_skill_section(
    request: WorkspaceRequest, file: ContextFile, agents: list[Any], form: ReachForm | None
) -> dict[str, Any]:
    links = FileAgent.objects.in_workspace(request.workspace).filter(file=file)
    chosen = list(links.values_list("agent_id", flat=True))
    initial = {"reach": file.reach, "agents": chosen}
    revision, rivals = file.newest or file.in_force, find_name_conflicts(file)
    return {
        "trust": describe_trust(file),
        "head": revision.head if revision else {},
        "verdicts": list_harness_verdicts(revision, file.source.harnesses) if revision else [],
        "rivals": rivals,
        "winners": find_effective_skills(file.name, agents) if rivals else [],
        "reach_form": form or ReachForm(workspace=request.workspace, initial=initial),
    }


def describe_trust(file: ContextFile) -> tuple[str, str]:
    """Whether someone stands for the skill as it is now, with a tone."""
    newest = file.newest
    if newest is not None and newest.digest == file.trusted_digest:
        return _("Trusted as it is now"), "success"
    if not file.source.workspace.skills_need_trust:
        return _("Not asked for in this workspace"), "neutral"
    if file.trusted_digest:
        return _("Lost: it has changed since someone trusted it"), "warning"
    return _("Not yet: no agent gets it before someone trusts it"), "warning"


def build_revision_page(file: ContextFile, revision: FileRevision) -> dict[str, Any]:
    earlier = list_revisions(file).filter(number__lt=revision.number).select_related("content").first()
    return {
        "file": file,
        "revision": revision,
        "earlier": earlier,
        "lines": diff_revisions(earlier, revision) if earlier else None,
        "words": get_revision_text(revision),
        "flagged": get_flagged_lines(revision),
        "looked_at": get_last_scanned_at(file),
    }


def build_diff_preview(file: ContextFile) -> dict[str, Any]:
    """The first changed lines, and how many more there are."""
    pair = get_compared_revisions(file)
    lines = [line for line in (diff_revisions(*pair) if pair else None) or () if line.kind != "same"]
    return {"pair": pair, "lines": lines[:PREVIEW_LINES], "more": max(0, len(lines) - PREVIEW_LINES)}


def diff_revisions(before: FileRevision, after: FileRevision) -> list[DiffLine] | None:
    """None when there are more lines than anyone could read beside each other."""
    old, new = get_revision_text(before).text, get_revision_text(after).text
    is_long = max(old.count("\n"), new.count("\n")) > MAX_DIFF_LINES
    return None if is_long else diff_lines(old, new)


def get_flagged_lines(revision: FileRevision) -> set[int]:
    return {one["line"] for one in (*revision.findings, *revision.problems) if one["line"]}
