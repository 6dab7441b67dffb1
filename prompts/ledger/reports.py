"""Store the prompt digests that bots report as used, and compare them with the served prompts."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from django.db import transaction
from django.db.models import Exists, OuterRef, Q
from django.utils.translation import gettext as _

from core.db.batch_delete import delete_in_batches
from personas.actors import Actor
from personas.errors import InvalidInput
from personas.models import ApiKey
from prompts.models import AgentPrompt, DigestReport, LedgerEntry, PromptVersion
from prompts.versions.selectors import HEAVY_COLUMNS, get_prompt_labels
from prompts.versions.timeline import group_labels_by_version


class LastServedPrompt(NamedTuple):
    """The last fetch of a prompt by a key: ledger id, version number, and digests of version and text."""

    ledger_id: int
    number: int
    digest: str
    served_digest: str


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

    `digest` may be that of a version, of its text, or of a served text. Unknown digests are stored as well.
    """
    entry = get_reported_entry(prompt, key, ledger_id)
    last_served = get_last_served(prompt, key)
    versions = find_reported_versions(prompt, key, digest)
    report = DigestReport(
        workspace_id=prompt.workspace_id,
        prompt=prompt,
        key=key,
        reporter_label=by.label[:254],
        digest=digest,
        version=versions[0] if versions else None,
        ledger_id=entry.pk if entry else None,
        request_id=request_id,
        is_last_handed=last_served is not None and is_last_served(last_served, digest, versions),
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
        raise InvalidInput.on(
            "ledger_id", _("Nothing of this prompt was handed to this key under that number.")
        )
    return entry


def get_last_served(prompt: AgentPrompt, key: ApiKey) -> LastServedPrompt | None:
    rows = LedgerEntry.objects.in_workspace(prompt.workspace_id).filter(key=key, prompt=prompt)
    columns = ("pk", "version__number", "version__digest", "served_digest")
    last = rows.order_by("-at", "-pk").values_list(*columns).first()
    return LastServedPrompt(*last) if last else None


def find_reported_versions(prompt: AgentPrompt, key: ApiKey, digest: str) -> list[PromptVersion]:
    """List the versions whose digest or text digest equals `digest`, newest first.

    If there are none, return the version of the last text with this digest that was served to the key.
    """
    served = LedgerEntry.objects.in_workspace(prompt.workspace_id).filter(
        key=key, prompt=prompt, served_digest=digest
    )
    rows = PromptVersion.objects.in_workspace(prompt.workspace_id).filter(prompt=prompt)
    matches = rows.filter(Q(digest=digest) | Q(text_digest=digest)).defer(*HEAVY_COLUMNS)
    versions = list(matches.order_by("-number"))
    if versions:
        return versions
    last = served.order_by("-at").values_list("version_id", flat=True).first()
    return list(rows.filter(pk=last).defer(*HEAVY_COLUMNS)) if last else []


def is_last_served(last_served: LastServedPrompt, digest: str, versions: list[PromptVersion]) -> bool:
    """Whether the digest matches the last served prompt, by served text or by version.

    The version is compared as well, because served texts of one version differ in their slots.
    """
    return digest == last_served.served_digest or last_served.number in [
        version.number for version in versions
    ]


def delete_reports_before(cutoff: datetime) -> int:
    """Delete reports from before the cutoff, except the last one of each key for a prompt."""
    later = DigestReport.unscoped.filter(
        prompt=OuterRef("prompt"), key=OuterRef("key"), pk__gt=OuterRef("pk")
    )
    return delete_in_batches(DigestReport.unscoped.filter(Exists(later), at__lt=cutoff))
