"""Store the prompt digests that bots report as used, and compare them with the served prompts."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from django.db import transaction
from django.db.models import Exists, OuterRef
from django.utils.translation import gettext as _

from core.db.batch_delete import delete_in_batches
from personas.actors import Actor
from personas.errors import InvalidInput
from personas.models import ApiKey
from prompts.ledger.served_salts import find_served_entry
from prompts.models import AgentPrompt, DigestReport, LedgerEntry, PromptVersion
from prompts.versions.selectors import HEAVY_COLUMNS, get_prompt_labels
from prompts.versions.timeline import group_labels_by_version

# Rows of the ledger that a reported digest is compared with, newest first.
MAX_COMPARED_ROWS = 200


class LastServedPrompt(NamedTuple):
    """The last fetch of a prompt by a key: ledger id, version number and digest of the version."""

    ledger_id: int
    version: int
    digest: str


class ReportMatch(NamedTuple):
    """The versions that a reported digest belongs to, newest first, and the fetch that served it."""

    versions: list[PromptVersion]
    entry: LedgerEntry | None = None


@dataclass(frozen=True)
class DigestReportResult:
    """A stored report, the numbers of the versions that match its digest, and the versions' labels."""

    report: DigestReport
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
) -> DigestReportResult:
    """Store a bot's report of the digest it used, and return the matching versions.

    `digest` may be that of a version or the SHA-256 of a served text, of which the salted digest is stored.
    Unknown digests are stored as they are.
    """
    entry = get_reported_entry(prompt, key, ledger_id)
    last_served = get_last_served(prompt, key)
    match = find_reported_versions(prompt, key, digest, entry)
    versions = match.versions
    report = DigestReport(
        workspace_id=prompt.workspace_id,
        prompt=prompt,
        key=key,
        reporter_label=by.label[:254],
        digest=match.entry.served_digest if match.entry else digest,
        version=versions[0] if versions else None,
        ledger_id=entry.pk if entry else None,
        request_id=request_id,
        is_last_handed=last_served is not None and last_served.version in [row.number for row in versions],
    )
    report.save()
    labels_by_version = group_labels_by_version(prompt, list(get_prompt_labels(prompt)))
    labels = [label for version in versions for label in labels_by_version.get(version.pk, [])]
    return DigestReportResult(report, [version.number for version in versions], labels, last_served)


def get_reported_entry(prompt: AgentPrompt, key: ApiKey, ledger_id: int | None) -> LedgerEntry | None:
    if ledger_id is None:
        return None
    rows = LedgerEntry.objects.in_workspace(prompt.workspace_id).filter(pk=ledger_id, prompt=prompt, key=key)
    entry = rows.first()
    if entry is None:
        raise InvalidInput.on("ledger_id", _("This key was not served this prompt with that ledger number."))
    return entry


def get_last_served(prompt: AgentPrompt, key: ApiKey) -> LastServedPrompt | None:
    rows = LedgerEntry.objects.in_workspace(prompt.workspace_id).filter(key=key, prompt=prompt)
    columns = ("pk", "version__number", "version__digest")
    last = rows.order_by("-at", "-pk").values_list(*columns).first()
    return LastServedPrompt(*last) if last else None


def find_reported_versions(
    prompt: AgentPrompt, key: ApiKey, digest: str, reported: LedgerEntry | None
) -> ReportMatch:
    """Find the versions with this digest, or the version of a text with this digest that the key was served.

    Only the last fetches of the key are compared, besides the fetch that the report names.
    """
    rows = PromptVersion.objects.in_workspace(prompt.workspace_id).filter(prompt=prompt)
    versions = list(rows.filter(digest=digest).defer(*HEAVY_COLUMNS).order_by("-number"))
    if versions:
        return ReportMatch(versions)
    served = LedgerEntry.objects.in_workspace(prompt.workspace_id).filter(key=key, prompt=prompt)
    entries = list(served.select_related("version").order_by("-at", "-pk")[:MAX_COMPARED_ROWS])
    entry = find_served_entry([reported, *entries] if reported else entries, digest)
    return ReportMatch([entry.version], entry) if entry else ReportMatch([])


def delete_reports_before(cutoff: datetime) -> int:
    """Delete reports from before the cutoff, except the last one of each key for a prompt."""
    later = DigestReport.unscoped.filter(
        workspace=OuterRef("workspace"),
        prompt=OuterRef("prompt"),
        key=OuterRef("key"),
        pk__gt=OuterRef("pk"),
    )
    return delete_in_batches(DigestReport.unscoped.filter(Exists(later), at__lt=cutoff))
