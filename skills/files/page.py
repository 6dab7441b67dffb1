"""What the pages of one file show."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.core.paginator import Paginator
from django.utils import timezone
from django.utils.translation import gettext as _

from core.text.diff import Line, diff_lines
from personas.tenancy.middleware import WorkspaceRequest
from skills.files.evaluate import reading_of
from skills.files.forms import ReachForm, WaiverForm
from skills.files.reasons import reasons_of, standing_of
from skills.files.selectors import (
    agents_by_id,
    compared,
    last_looked_at,
    revisions_of,
    seen_digest,
    waivers_of,
    words_of,
)
from skills.files.state_changes import readers_of
from skills.library.duplicates import rivals_of, winners_of
from skills.models import ContextFile, FileAgent, FileRevision, FileState
from skills.skill_format.tolerance import LENIENCY, judge


@dataclass(frozen=True)
class HarnessVerdict:
    """Kept, kept with a warning, or dropped; and why."""

    harness: str
    word: str
    tone: str
    reasons: tuple[str, ...] = ()


def verdicts_on(revision: FileRevision, harnesses: Iterable[str]) -> list[HarnessVerdict]:
    """By the rule sets that look through the skill's source."""
    reading = reading_of(revision.head, revision.problems)
    found = []
    for name in harnesses:
        if name in LENIENCY:
            verdict = judge(reading, name)
            said = verdict.warnings if verdict.kept else verdict.reasons
            word, tone = words(verdict.kept, bool(verdict.warnings))
            found.append(HarnessVerdict(name, word, tone, tuple(problem.message for problem in said)))
    return found


def words(is_kept: bool, is_warned: bool) -> tuple[str, str]:
    if not is_kept:
        return _("Dropped"), "error"
    return (_("Kept with a warning"), "warning") if is_warned else (_("Kept"), "success")


PAGE_SIZE = 25
MOST_COMPARED, PEEK_LINES = 20_000, 12
ADOPTABLE = {FileState.NEW, FileState.CHANGED, FileState.MISSING}


def file_page(
    request: WorkspaceRequest,
    file: ContextFile,
    *,
    waiver_form: WaiverForm | None = None,
    reach_form: ReachForm | None = None,
) -> dict[str, Any]:
    digest = seen_digest(file)
    history = Paginator(revisions_of(file).defer("findings", "problems", "head"), PAGE_SIZE)
    agents = agents_by_id(request.workspace, readers_of(file.source, [file]))
    pair = compared(file)
    page = {
        "file": file,
        "reasons": reasons_of(file),
        "standing": standing_of(file),
        "digest": digest,
        "can_adopt": file.state in ADOPTABLE and not file.is_settled,
        "waiver_form": waiver_form or WaiverForm(initial={"digest": digest}),
        "waivers": waivers_of(file),
        "today": timezone.now().date(),
        "page": history.get_page(request.GET.get("page")),
        "looked_at": last_looked_at(file),
        "agents": agents,
        "pair": pair,
        "lines": difference(*pair) if pair else None,
        "in_force_words": words_of(file.in_force) if file.in_force else None,
        "newest_words": words_of(file.newest) if file.newest and not file.in_force else None,
        "flagged": flagged_lines(file.newest) if file.newest else set(),
    }
    return page | (skill_parts(request, file, agents, reach_form) if file.file_kind == "skill" else {})


def skill_parts(
    request: WorkspaceRequest, file: ContextFile, agents: list[Any], form: ReachForm | None
) -> dict[str, Any]:
    links = FileAgent.objects.in_workspace(request.workspace).filter(file=file)
    chosen = list(links.values_list("agent_id", flat=True))
    initial = {"reach": file.reach, "agents": chosen}
    revision, rivals = file.newest or file.in_force, rivals_of(file)
    return {
        "trust": trust_words(file),
        "head": revision.head if revision else {},
        "verdicts": verdicts_on(revision, file.source.harnesses) if revision else [],
        "rivals": rivals,
        "winners": winners_of(file.name, agents) if rivals else [],
        "reach_form": form or ReachForm(workspace=request.workspace, initial=initial),
    }


def trust_words(file: ContextFile) -> tuple[str, str]:
    """Whether someone stands for the skill as it is now, with a tone."""
    newest = file.newest
    if newest is not None and newest.digest == file.trusted_digest:
        return _("Trusted as it is now"), "success"
    if not file.source.workspace.skills_need_trust:
        return _("Not asked for in this workspace"), "neutral"
    if file.trusted_digest:
        return _("Lost: it has changed since someone trusted it"), "warning"
    return _("Not yet: no agent gets it before someone trusts it"), "warning"


def revision_page(file: ContextFile, revision: FileRevision) -> dict[str, Any]:
    earlier = revisions_of(file).filter(number__lt=revision.number).select_related("content").first()
    return {
        "file": file,
        "revision": revision,
        "earlier": earlier,
        "lines": difference(earlier, revision) if earlier else None,
        "words": words_of(revision),
        "flagged": flagged_lines(revision),
        "looked_at": last_looked_at(file),
    }


def glance_at(file: ContextFile) -> dict[str, Any]:
    """The first changed lines, and how many more there are."""
    pair = compared(file)
    lines = [line for line in (difference(*pair) if pair else None) or () if line.kind != "same"]
    return {"pair": pair, "lines": lines[:PEEK_LINES], "more": max(0, len(lines) - PEEK_LINES)}


def difference(before: FileRevision, after: FileRevision) -> list[Line] | None:
    """None when there are more lines than anyone could read beside each other."""
    old, new = words_of(before).text, words_of(after).text
    is_long = max(old.count("\n"), new.count("\n")) > MOST_COMPARED
    return None if is_long else diff_lines(old, new)


def flagged_lines(revision: FileRevision) -> set[int]:
    return {one["line"] for one in (*revision.findings, *revision.problems) if one["line"]}
