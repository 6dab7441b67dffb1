"""Serve the SKILL.md of a skill as of a version: write the ledger row, and then return the file."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from hashlib import sha256
from typing import Any

import structlog
from django.conf import settings
from django.db import Error as DatabaseFailure
from django.utils.translation import gettext as _

from core.db.database_clock import PROCESS_CLOCK
from core.db.workspace_scope import all_workspaces, workspace_scope
from personas.errors import InvalidInput
from personas.models import AgentChannel
from prompts.models import PRODUCTION, PromptVersion
from prompts.proof.canonical import bytes_digest
from prompts.proof.hashed_rows import SLOTS_DOMAIN, LedgerRow
from prompts.publishing.versions.selectors import get_contents
from prompts.serving.cache import PROCESS_CACHE, get_cached_version
from prompts.serving.errors import PromptNotFound, ServingUnavailable, VersionErased
from prompts.serving.ledger_insert import LedgerValues, insert_ledger_row
from prompts.serving.request import (
    CallContext,
    Client,
    PromptRequest,
    RateLimitCheck,
    RateLimitOnce,
    Resolution,
)
from prompts.serving.resolve import authenticate_client, check_key_format
from prompts.serving.services import MAX_ATTEMPTS, check_and_resolve, clean_request_id

log = structlog.get_logger(__name__)
# A skill has no slots: the file is served as it is.
NO_SLOTS = b"{}"
MAX_NAMES_SHOWN = 20


@dataclass(frozen=True)
class ServedSkill:
    """A skill file that was served, with its ledger row and the version that offers it."""

    ledger_id: int
    row: LedgerRow
    version: PromptVersion
    # The row of the file in `PromptVersion.skill_files`.
    file: dict[str, Any]
    data: bytes
    key_id: int | None

    @property
    def etag(self) -> str:
        """The salted digest of the file as a weak ETag: two responses differ in their ledger ids."""
        return f'W/"{self.file["content"]}"'

    @property
    def served_digest(self) -> str:
        return sha256(self.data).hexdigest()


def serve_skill_file(
    client: Client,
    prompt_request: PromptRequest,
    name: str,
    call: CallContext,
    check_rate_limit: RateLimitCheck,
) -> ServedSkill:
    """Write the ledger row and return the file that the version offers under this name.

    As for prompts: no row, no file. The INSERT checks key, scopes and label again, so a resolution that is
    outdated by then is resolved again.
    """
    rate_limit = RateLimitOnce(check_rate_limit)
    try:
        for _attempt in range(MAX_ATTEMPTS):
            served = try_serve_skill_file(client, prompt_request, name, call, rate_limit)
            if served is not None:
                return served
            PROCESS_CLOCK.correct(timedelta(seconds=settings.DRAMATIS_MAX_CLOCK_SKEW))
    except DatabaseFailure as error:
        log.error("ledger_write_failed", reason=str(error).partition("\n")[0])  # noqa: TRY400  # may quote the row
        raise ServingUnavailable from error
    log.error("ledger_write_failed", reason="the version, key or clock changed at each attempt")
    raise ServingUnavailable


def try_serve_skill_file(
    client: Client, prompt_request: PromptRequest, name: str, call: CallContext, rate_limit: RateLimitOnce
) -> ServedSkill | None:
    resolution = check_and_resolve(client, prompt_request, rate_limit.charge)
    version = load_offering_version(resolution)
    file = find_skill_file(version, name)
    with workspace_scope(resolution.workspace_id):
        data = get_contents(resolution.workspace_id, [file["content"]]).get(file["content"])
    if data is None:
        raise VersionErased
    row = LedgerRow(
        workspace=resolution.workspace_id,
        id=0,
        key=resolution.reader,
        agent=resolution.agent_id,
        channel=resolution.channel_id,
        label=prompt_request.recorded_label,
        version=version.pk,
        number=version.number,
        slots=bytes_digest(SLOTS_DOMAIN, NO_SLOTS),
        # The content digest is the salted digest of the file.
        served=file["content"],
        size=len(data),
        status=304 if call.has_digest(file["content"]) else 200,
        request_id=clean_request_id(call.request_id),
        at=PROCESS_CLOCK.now(),
        skill=name,
    )
    values = LedgerValues(row, NO_SLOTS.decode(), call.traceparent)
    ledger_id = insert_ledger_row(client, prompt_request, resolution, values)
    if ledger_id is None:
        return None
    return ServedSkill(ledger_id, row, version, file, data, resolution.key_id)


def list_offered_files(
    client: Client, prompt_request: PromptRequest, check_rate_limit: RateLimitCheck
) -> PromptVersion:
    """Return the version that the request resolves to, with the list of its skill files.

    The list has names and digests and no text, so there is no ledger row.
    """
    return load_offering_version(check_and_resolve(client, prompt_request, check_rate_limit))


def load_offering_version(resolution: Resolution) -> PromptVersion:
    """Load the version with its skill files. Raise VersionErased if the version is no longer served."""
    get_cached_version(PROCESS_CACHE, resolution.workspace_id, resolution.version_id, resolution.erasures)
    with workspace_scope(resolution.workspace_id):
        rows = PromptVersion.objects.in_workspace(resolution.workspace_id)
        columns = ("number", "digest", "skill_files", "created_at", "workspace_id", "prompt_id")
        return rows.only(*columns).get(pk=resolution.version_id)


def find_skill_file(version: PromptVersion, name: str) -> dict[str, Any]:
    """Find the file with this name. Raise PromptNotFound, which lists the names that the version offers."""
    for file in version.skill_files:
        if file["name"] == name:
            found: dict[str, Any] = file
            return found
    names = [file["name"] for file in version.skill_files]
    raise PromptNotFound(
        f"Version {version.number} of this prompt offers no skill “{name[:64]}”. {describe_names(names)}"
    )


def describe_names(names: Sequence[str]) -> str:
    if not names:
        return "It offers none."
    more = f" and {len(names) - MAX_NAMES_SHOWN} more" if len(names) > MAX_NAMES_SHOWN else ""
    return f"It offers: {', '.join(names[:MAX_NAMES_SHOWN])}{more}."


def choose_label_and_channel(
    client: Client, agent: str, channel: str, label: str, check_rate_limit: RateLimitCheck
) -> tuple[str, str]:
    """Return label and channel of a read whose URL does not name them.

    The label is production or, for a key that is limited to one other label, that label. The channel is the
    only one of the agent that the key may use; if there are several, the request must name one.
    """
    check_key_format(client)
    with all_workspaces():
        client_fields = authenticate_client(client)
    # Requests that are refused below are charged too.
    check_rate_limit(client_fields.get("key_id"), client_fields["workspace_id"])
    scopes = client_fields.get("scopes", {})
    labels = scopes.get("labels")
    if not label:
        label = labels[0] if labels is not None and len(labels) == 1 else PRODUCTION
    if not channel:
        with workspace_scope(client_fields["workspace_id"]):
            channel = get_only_channel(client_fields["workspace_id"], agent, scopes)
    return label, channel


def get_only_channel(workspace_id: int, agent: str, scopes: dict[str, Any]) -> str:
    if "agents" in scopes and agent not in scopes["agents"]:
        raise PromptNotFound(f"No agent “{agent[:64]}”.")
    rows = AgentChannel.objects.in_workspace(workspace_id).filter(
        agent__slug=agent, agent__archived_at=None, channel__archived_at=None
    )
    slugs = list(rows.order_by("position", "pk").values_list("channel__slug", flat=True))
    slugs = [slug for slug in slugs if "channels" not in scopes or slug in scopes["channels"]]
    if not slugs:
        raise PromptNotFound(f"No agent “{agent[:64]}” with a channel that this key may use.")
    if len(slugs) > 1:
        message = _("channel is required. This agent has: %(channels)s.")
        raise InvalidInput.on("channel", message % {"channels": ", ".join(slugs)})
    return slugs[0]
