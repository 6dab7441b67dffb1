"""Store the prompt digests that bots report as loaded, and compare them with the released version."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from typing import NamedTuple

from django.db import transaction
from django.db.models import Exists, OuterRef
from django.utils.translation import gettext as _

from core.db.batch_delete import delete_in_batches
from core.salted_digests import salt_digest
from personas.actors import Actor
from personas.errors import InvalidInput
from personas.events.services import record_event
from personas.models import ApiKey
from prompts.evidence.drift.details import (
    LineChanges,
    LoadedSkill,
    ReportDetails,
    find_line_changes,
    report_details_json,
)
from prompts.evidence.drift.selectors import (
    choose_label,
    compare_loaded_text_and_skills,
    get_label_version,
    get_last_report,
)
from prompts.evidence.ledger.served_salts import find_served_entry
from prompts.evidence.replay.services import build_replay
from prompts.models import AgentPrompt, BotStatus, DigestReport, LedgerEntry, PromptVersion
from prompts.proof.text_salts import combine_text_salts
from prompts.publishing.versions.segments import list_content_digests
from prompts.publishing.versions.selectors import (
    HEAVY_COLUMNS,
    get_content_salts,
    get_prompt_labels,
    get_version_text,
)
from prompts.publishing.versions.timeline import group_labels_by_version

# How many ledger rows and versions, newest first, a reported digest is compared with.
MAX_COMPARED_ROWS, MAX_COMPARED_VERSIONS = 200, 50


class LastServedPrompt(NamedTuple):
    """The last fetch of a prompt by a key: ledger id, version number and digest of the version."""

    ledger_id: int
    version: int
    digest: str


class ReportMatch(NamedTuple):
    """The versions that a reported digest belongs to, newest first, and the digest to store for it."""

    versions: list[PromptVersion]
    digest: str


class LoadedFile(NamedTuple):
    """What a bot says about the text it has loaded. All of it is optional.

    The text is compared line by line if its digest is unknown. It is not stored.
    """

    path: str = ""
    reason: str = ""
    session: str = ""
    text: str | None = None
    # The SHA-256 of each loaded SKILL.md by the name of the skill; None if the bot does not report them.
    skills: Mapping[str, str] | None = None


@dataclass(frozen=True)
class DigestReportResult:
    """A stored report, the numbers of the versions that match its digest, and the versions' labels."""

    report: DigestReport
    details: ReportDetails
    versions: list[int] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    last_served: LastServedPrompt | None = None


@transaction.atomic
def report_digest(
    prompt: AgentPrompt,
    digest: str,
    *,
    key: ApiKey,
    by: Actor,
    ledger_id: int | None = None,
    request_id: str = "",
    loaded: LoadedFile = LoadedFile(),  # noqa: B008  # immutable
) -> DigestReportResult:
    """Store a bot's report of the digest it has loaded, and return the matching versions.

    `digest` may be that of a version, or the SHA-256 of the text of a version or of a served text, of which
    the salted digest is stored. Unknown digests are stored as they are. If the status of the bot is another
    than in its last report, an event is recorded.
    """
    check_text_digest(digest, loaded.text)
    entry = get_reported_entry(prompt, key, ledger_id)
    # The reports of a key are stored one after the other, so that each change of status is one event.
    ApiKey.objects.in_workspace(prompt.workspace_id).select_for_update(no_key=True).get(pk=key.pk)
    last_served = get_last_served(prompt, key)
    match = find_reported_versions(prompt, key, digest, entry)
    versions = match.versions
    label = choose_label(prompt, key)
    released = get_label_version(prompt, label)
    skills = None if loaded.skills is None else find_loaded_skills(prompt, loaded.skills)
    status = compare_loaded_text_and_skills(released, versions[0] if versions else None, skills)
    changes = None if versions else find_changed_lines(prompt, released, last_served, loaded.text)
    details = ReportDetails(loaded.path, loaded.reason, loaded.session, status, changes, skills)
    previous = get_last_report(prompt, key)
    report = DigestReport(
        workspace_id=prompt.workspace_id,
        prompt=prompt,
        key=key,
        client_label=by.label[:254],
        digest=match.digest,
        version=versions[0] if versions else None,
        ledger_id=entry.pk if entry else None,
        request_id=request_id,
        is_last_served=last_served is not None and last_served.version in [row.number for row in versions],
        details=report_details_json(details),
    )
    report.save()
    record_status_change(report, status, previous, label=label, released=released)
    labels_by_version = group_labels_by_version(prompt, list(get_prompt_labels(prompt)))
    labels = [label for version in versions for label in labels_by_version.get(version.pk, [])]
    return DigestReportResult(report, details, [version.number for version in versions], labels, last_served)


def find_loaded_skills(prompt: AgentPrompt, digests: Mapping[str, str]) -> list[LoadedSkill]:
    """Find for each reported file whether one of the newest versions offers it under the same name."""
    rows = PromptVersion.objects.in_workspace(prompt.workspace_id).filter(prompt=prompt).order_by("-number")
    offered: dict[str, set[str]] = defaultdict(set)
    for files in rows.values_list("skill_files", flat=True)[:MAX_COMPARED_VERSIONS]:
        for row in files:
            offered[row["name"]].add(row["content"])
    contents = set().union(*[offered[name] for name in digests])
    salts = get_content_salts(prompt.workspace_id, contents)
    skills = []
    for name, digest in digests.items():
        salted = (content for content in offered[name] if content in salts)
        known = next((one for one in salted if salt_digest(digest, salts[one]) == one), None)
        skills.append(LoadedSkill(name, known or digest, known is not None))
    return skills


def check_text_digest(digest: str, text: str | None) -> None:
    if text is not None and sha256(text.encode()).hexdigest() != digest:
        raise InvalidInput.on(
            "text", _("The digest does not match the text. Send the SHA-256 of the text in UTF-8.")
        )


def find_changed_lines(
    prompt: AgentPrompt,
    released: PromptVersion | None,
    last_served: LastServedPrompt | None,
    text: str | None,
) -> LineChanges | None:
    """Compare a loaded text with the last text that the key was served, otherwise with the released version.

    Return None if there is no such text, or some of it was erased.
    """
    if text is None:
        return None
    if last_served is not None:
        relations = ("prompt__agent", "prompt__channel", "version", "key")
        rows = LedgerEntry.objects.in_workspace(prompt.workspace_id).select_related(*relations)
        replay = build_replay(rows.get(pk=last_served.ledger_id))
        if replay.is_exact:
            return find_line_changes(
                replay.text, text, number=last_served.version, ledger_id=last_served.ledger_id
            )
    if released is None:
        return None
    return find_line_changes(get_version_text(released), text, number=released.number)


def record_status_change(
    report: DigestReport,
    status: BotStatus,
    previous: DigestReport | None,
    *,
    label: str,
    released: PromptVersion | None,
) -> None:
    """Record the event `bot.drifted` if the status is another than in the previous report.

    A bot whose first report is as released has not changed.
    """
    previous_status = get_stored_status(previous)
    if status == previous_status or (previous is None and status == BotStatus.SAME):
        return
    prompt = report.prompt
    record_event(
        prompt.workspace_id,
        "bot.drifted",
        {
            "agent": prompt.agent.slug,
            "channel": prompt.channel.slug,
            "label": label,
            "key_id": report.key_id,
            "report_id": report.pk,
            "status": status.value,
            "previous_status": previous_status.value,
            "number": report.version.number if report.version else None,
            "current_number": released.number if released else None,
        },
    )


def get_stored_status(report: DigestReport | None) -> BotStatus:
    """Return the status that a report had when it arrived."""
    return BotStatus(report.details["status"]) if report else BotStatus.UNKNOWN


def get_reported_entry(prompt: AgentPrompt, key: ApiKey, ledger_id: int | None) -> LedgerEntry | None:
    if ledger_id is None:
        return None
    rows = LedgerEntry.objects.in_workspace(prompt.workspace_id).filter(prompt=prompt, key=key, skill=None)
    entry = rows.filter(pk=ledger_id).first()
    if entry is None:
        raise InvalidInput.on("ledger_id", _("This ledger row is not a fetch of this prompt by this key."))
    return entry


def get_last_served(prompt: AgentPrompt, key: ApiKey) -> LastServedPrompt | None:
    rows = LedgerEntry.objects.in_workspace(prompt.workspace_id).filter(key=key, prompt=prompt, skill=None)
    columns = ("pk", "version__number", "version__digest")
    last = rows.order_by("-at", "-pk").values_list(*columns).first()
    return LastServedPrompt(*last) if last else None


def find_reported_versions(
    prompt: AgentPrompt, key: ApiKey, digest: str, reported: LedgerEntry | None
) -> ReportMatch:
    """Find the versions with this digest, the version of a served text with it, or one whose text has it.

    Only the last fetches of the key and of other keys are compared, besides the fetch that the report names,
    and only the newest versions.
    """
    rows = PromptVersion.objects.in_workspace(prompt.workspace_id).filter(prompt=prompt)
    versions = list(rows.filter(digest=digest).defer(*HEAVY_COLUMNS).order_by("-number"))
    if versions:
        return ReportMatch(versions, digest)
    served = LedgerEntry.objects.in_workspace(prompt.workspace_id).filter(prompt=prompt, skill=None)
    served = served.select_related("version").order_by("-at", "-pk")
    entries = list(served.filter(key=key)[:MAX_COMPARED_ROWS])
    entry = find_served_entry([reported, *entries] if reported else entries, digest)
    # The bot may have loaded a file that was fetched with another key.
    entry = entry or find_served_entry(list(served.exclude(key=key)[:MAX_COMPARED_ROWS]), digest)
    if entry:
        return ReportMatch([entry.version], entry.served_digest)
    version = find_version_of_text(prompt, digest)
    return ReportMatch([version], version.text_digest) if version else ReportMatch([], digest)


def find_version_of_text(prompt: AgentPrompt, digest: str) -> PromptVersion | None:
    """Return the newest version whose text has this plain SHA-256."""
    rows = PromptVersion.objects.in_workspace(prompt.workspace_id).filter(prompt=prompt)
    versions = list(rows.defer("sizes", "lockfile", "causes").order_by("-number")[:MAX_COMPARED_VERSIONS])
    contents = set().union(*[list_content_digests(version.segments) for version in versions])
    salts = get_content_salts(prompt.workspace_id, contents)
    for version in versions:
        if salt_digest(digest, combine_text_salts(version.segments, salts)) == version.text_digest:
            return version
    return None


def delete_reports_before(cutoff: datetime) -> int:
    """Delete reports from before the cutoff, except the last one of each key for a prompt."""
    later = DigestReport.unscoped.filter(
        workspace=OuterRef("workspace"),
        prompt=OuterRef("prompt"),
        key=OuterRef("key"),
        pk__gt=OuterRef("pk"),
    )
    return delete_in_batches(DigestReport.unscoped.filter(Exists(later), at__lt=cutoff))
