"""How a context file, its revisions and its waivers are told."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from django.db.models import Q, QuerySet

from personas.api.authentication import Caller
from personas.api.operations import Call
from personas.api.responses import moment_told
from personas.api.schema import Shape, choice, flag, listed, moment, nullable, shape, whole
from skills.api_helpers import FINDINGS, PROBLEMS, TEXT, findings_told, problems_told, sources_read_by
from skills.discovery.harnesses import KINDS
from skills.files.reasons import reasons_of, standing_of
from skills.files.selectors import agents_by_id, seen_digest, waivers_of, words_of
from skills.files.state_changes import readers_of
from skills.models import ContextFile, FileAgent, FileRevision, FileState, Reach, Verdict, Waiver

MOST = 100_000
MARK = shape({"number": whole(1), "digest": TEXT, "size": whole(), "verdict": choice(Verdict.values)})
SEEN = TEXT | {"description": "What you agree to by adopting it now; empty when the file is gone."}
TOLD: dict[str, Shape] = {
    "id": whole(1),
    "source": TEXT,
    "path": TEXT,
    "kind": choice(KINDS),
    "name": TEXT | {"description": "Of a skill."},
    "state": choice(FileState.values),
    "reasons": listed(TEXT, most=MOST, description="Why it is in this state."),
    "standing": TEXT | {"description": "What prompts hold of it now."},
    "is_there": flag(),
    "is_ignored": flag(),
    "is_settled": flag(description="Someone has dealt with its state."),
    "newest": nullable(MARK),
    "agreed": nullable(MARK),
    "in_force": nullable(MARK),
    "seen_digest": SEEN,
    "first_seen_at": moment(),
    "changed_at": moment(),
}
WAIVER = shape(
    {
        "id": whole(1),
        "digest": TEXT,
        "reason": TEXT,
        "until": {"type": "string", "format": "date"},
        "by": TEXT,
        "created_at": moment(),
        "ended_at": nullable(moment()),
    }
)
FILE = shape(TOLD, required=())
FULL_FILE = shape(
    {
        **TOLD,
        "text": nullable(TEXT | {"description": "The words in force; null when no prompt holds any."}),
        "findings": FINDINGS,
        "problems": PROBLEMS,
        "agents": listed(TEXT, most=MOST, description="Agents that are given it, by slug."),
        "waivers": listed(WAIVER, most=MOST),
    }
)
ONE_REVISION: dict[str, Shape] = {
    "number": whole(1),
    "digest": TEXT,
    "size": whole(),
    "verdict": choice(Verdict.values),
    "findings": FINDINGS,
    "problems": PROBLEMS,
    "is_erased": flag(),
    "first_seen_at": moment(),
    "last_seen_at": nullable(moment()),
}
REVISION = shape(ONE_REVISION)
FULL_REVISION = shape({**ONE_REVISION, "text": nullable(TEXT)})


def file_told(file: ContextFile) -> dict[str, Any]:
    return {
        "id": file.pk,
        "source": file.source.slug,
        "path": file.path,
        "kind": file.file_kind,
        "name": file.name,
        "state": file.state,
        "reasons": reasons_of(file),
        "standing": standing_of(file),
        "is_there": file.is_there,
        "is_ignored": file.is_ignored,
        "is_settled": file.is_settled,
        "newest": mark_of(file.newest),
        "agreed": mark_of(file.agreed),
        "in_force": mark_of(file.in_force),
        "seen_digest": seen_digest(file),
        "first_seen_at": moment_told(file.first_seen_at),
        "changed_at": moment_told(file.changed_at),
    }


def full_file_told(call: Call, file: ContextFile) -> dict[str, Any]:
    """With what was found in its newest revision, and the words that prompts hold."""
    newest, words = file.newest, words_of(file.in_force) if file.in_force else None
    readers = agents_by_id(call.workspace, readers_of(file.source, [file]))
    return file_told(file) | {
        "text": words.text if words and not words.is_erased else None,
        "findings": findings_told(newest.findings) if newest else [],
        "problems": problems_told(newest.problems) if newest else [],
        "agents": [agent.slug for agent in readers if call.caller.may_touch(agent.slug)],
        "waivers": [waiver_told(waiver) for waiver in waivers_of(file)],
    }


def mark_of(revision: FileRevision | None) -> dict[str, Any] | None:
    if revision is None:
        return None
    return {name: getattr(revision, name) for name in MARK["properties"]}


def revision_told(row: FileRevision) -> dict[str, Any]:
    return {
        "number": row.number,
        "digest": row.digest,
        "size": row.size,
        "verdict": row.verdict,
        "findings": findings_told(row.findings),
        "problems": problems_told(row.problems),
        "is_erased": row.content.erased_at is not None,
        "first_seen_at": moment_told(row.first_seen_at),
        "last_seen_at": row.last_seen_at and moment_told(row.last_seen_at),
    }


def waiver_told(waiver: Waiver) -> dict[str, Any]:
    return {
        "id": waiver.pk,
        "digest": waiver.digest,
        "reason": waiver.reason,
        "until": waiver.until.isoformat(),
        "by": waiver.person_label,
        "created_at": moment_told(waiver.created_at),
        "ended_at": waiver.ended_at and moment_told(waiver.ended_at),
    }


def visible_to(caller: Caller, rows: QuerySet[ContextFile]) -> QuerySet[ContextFile]:
    """With a limited key: what lies where its agents read, and skills that were handed to them."""
    if caller.agents is None:
        return rows
    links = FileAgent.objects.in_workspace(caller.workspace).filter(agent__slug__in=caller.agents)
    near = Q(source__in=sources_read_by(caller.workspace, caller.agents)) & ~Q(reach=Reach.CHOSEN)
    handed = Q(file_kind="skill", reach=Reach.ALL) | Q(reach=Reach.CHOSEN, pk__in=links.values("file"))
    return rows.filter(near | handed)


def chosen_agents(caller: Caller, files: Iterable[ContextFile]) -> dict[int, list[str]]:
    """By file; one query for all of them."""
    links = FileAgent.objects.in_workspace(caller.workspace).filter(file__in=[file.pk for file in files])
    found: dict[int, list[str]] = defaultdict(list)
    for file_id, slug in links.order_by("agent__slug").values_list("file_id", "agent__slug"):
        if caller.may_touch(slug):
            found[file_id].append(slug)
    return found
