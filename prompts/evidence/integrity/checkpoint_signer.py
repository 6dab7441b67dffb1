"""Sign checkpoints of a workspace's hash chains; store them in the database and in a file."""

import contextlib
import os
from datetime import datetime
from pathlib import Path

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from personas.errors import DomainError
from personas.events.services import record_event
from personas.tenancy.lost_nodes import lock_workspace
from prompts.evidence.integrity.checkpoint_files import append_checkpoints, write_public_key
from prompts.evidence.ledger.blocks import seal_ledger
from prompts.models import AgentPrompt, Checkpoint, LedgerBlock, LedgerExpiry, SigningKey
from prompts.proof import checkpoints as proof
from prompts.proof.chain_heads import ChainHead, ChainHeads, read_heads, sort_heads
from prompts.proof.signing_keys import (
    PrivateKey,
    UnusableKey,
    dump_private_key,
    dump_public_key,
    generate_signing_key,
    get_key_id,
    load_private_key,
)

PEM_PREFIX = "-----BEGIN"


class NoSigningKey(DomainError):
    """The configured signing key is missing or unusable."""

    code = "no_signing_key"


def load_signing_key() -> PrivateKey:
    """Load the private key from the settings; raise NoSigningKey with the reason on failure."""
    setting: str = settings.DRAMATIS_SIGNING_KEY
    if settings.PRODUCTION and not setting:
        raise NoSigningKey(_("This process has no signing key. Another process signs the checkpoints."))
    try:
        return load_private_key(read_pem(setting) if setting else ensure_development_pem(settings.VAR))
    except OSError as error:
        unreadable = _("The signing key cannot be read: %(reason)s.") % {"reason": error.strerror}
        raise NoSigningKey(unreadable) from error
    except UnusableKey as error:
        unusable = _("DRAMATIS_SIGNING_KEY cannot be used. %(reason)s") % {"reason": error}
        raise NoSigningKey(unusable) from error


def read_pem(setting: str) -> bytes:
    """Return the PEM given in the setting, or the contents of the file the setting names.

    Environment files cannot hold line breaks, so a literal \\n is accepted in their place.
    """
    if setting.startswith(PEM_PREFIX):
        return setting.replace("\\n", "\n").encode()
    return Path(setting).read_bytes()


def ensure_development_pem(var: Path) -> bytes:
    """Return the development key; generate it on first use with owner-only permissions.

    Production must configure its own key.
    """
    path = var / "signing_key.pem"
    if not path.exists():
        var.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = var / f"signing_key.{os.getpid()}"
        draft.touch(mode=0o600)
        draft.write_bytes(dump_private_key(generate_signing_key()))
        # Creating a hard link is atomic. It fails if another process was first; both then read the same file.
        with contextlib.suppress(FileExistsError):
            os.link(draft, path)
        draft.unlink()
    return path.read_bytes()


def get_public_key() -> tuple[str, str]:
    """Return the id and the PEM of the public key that belongs to the configured signing key."""
    public = load_signing_key().public_key()
    return get_key_id(public), dump_public_key(public)


log = structlog.get_logger(__name__)

# One checkpoint in this many stores all chain heads, the others only the changed heads. This limits how many
# checkpoints must be read to reconstruct the complete list.
FULL_HEADS_INTERVAL = 100


def sign_checkpoint(workspace_id: int) -> Checkpoint | None:
    """Sign the current end of every hash chain; return None if nothing changed since the last checkpoint.

    The ledger is sealed first: a checkpoint covers every fetch that is older than SETTLE_DELAY, even if the
    job that seals the ledger has not run since. A younger fetch is covered by a later checkpoint.
    """
    seal_ledger(workspace_id)
    checkpoint = create_checkpoint(workspace_id, load_signing_key())
    write_checkpoint_copies(workspace_id)
    return checkpoint


@transaction.atomic
def create_checkpoint(workspace_id: int, key: PrivateKey) -> Checkpoint | None:
    # Only one checkpoint of a workspace is created at a time.
    lock_workspace(workspace_id)
    rows = Checkpoint.objects.in_workspace(workspace_id)
    previous = rows.order_by("-sequence").first()
    heads = get_current_heads(workspace_id)
    statement = build_statement(workspace_id, heads, previous.hash if previous else "", timezone.now())
    if not has_new_state(statement, previous):
        return None
    signed = proof.sign_statement(statement, key, select_heads(heads, previous))
    row = Checkpoint(
        workspace_id=workspace_id,
        sequence=previous.sequence + 1 if previous else 1,
        body=signed.body,
        heads=signed.heads,
        at=statement.at,
        previous_hash=statement.previous,
        hash=signed.hash,
        key_id=signed.key,
        signature=signed.signature,
    )
    save_signing_key(workspace_id, key, statement.at)
    row.save(force_insert=True)
    record_event(workspace_id, "checkpoint.signed", {"sequence": row.sequence, "digest": row.hash})
    return row


def get_current_heads(workspace_id: int) -> ChainHeads:
    """Return the heads of all chains: the newest version and the newest label move of every prompt."""
    rows = AgentPrompt.objects.in_workspace(workspace_id).filter(last_number__gt=0)
    prompts = list(
        rows.values_list("agent_id", "channel_id", "last_number", "last_hash", "last_move", "last_move_hash")
    )
    versions = (ChainHead(agent, channel, number, hashed) for agent, channel, number, hashed, _, _ in prompts)
    moves = (
        ChainHead(agent, channel, move, hashed) for agent, channel, _, _, move, hashed in prompts if move
    )
    return ChainHeads(sort_heads(versions), sort_heads(moves))


def build_statement(
    workspace_id: int, heads: ChainHeads, previous: str, at: datetime
) -> proof.CheckpointStatement:
    versions, moves = heads.summarize()
    blocks = LedgerBlock.objects.in_workspace(workspace_id).order_by("-sequence")
    expiries = LedgerExpiry.objects.in_workspace(workspace_id).order_by("-block__sequence")
    block = blocks.values_list("sequence", "hash", "last_id").first()
    expiry = expiries.values_list("block__sequence", "hash").first()
    return proof.CheckpointStatement(
        workspace=workspace_id,
        at=at,
        versions=versions,
        label_moves=moves,
        ledger=proof.LedgerMark(*block) if block else proof.NO_BLOCK,
        expiries=proof.ExpiryMark(*expiry) if expiry else proof.NO_EXPIRY,
        previous=previous,
    )


def has_new_state(statement: proof.CheckpointStatement, previous: Checkpoint | None) -> bool:
    """Whether the statement differs from the previous checkpoint in more than its time and previous hash."""
    if previous is None:
        return statement.versions.count > 0
    body, signed_body = statement.body(), previous.body if isinstance(previous.body, dict) else {}
    return any(signed_body.get(name) != body[name] for name in body if name not in {"at", "previous"})


def select_heads(heads: ChainHeads, previous: Checkpoint | None) -> ChainHeads:
    """Return all heads for a full checkpoint, otherwise the heads changed since the previous checkpoint."""
    if previous is None or previous.sequence % FULL_HEADS_INTERVAL == 0:
        return heads
    try:
        return heads.select_new(get_heads_at(previous))
    except ValueError as error:
        # Verification reports the damaged checkpoint. All heads are stored again, so that signing goes on.
        log.error(  # noqa: TRY400
            "checkpoint_heads_unreadable", workspace=previous.workspace_id, error=str(error)
        )
        return heads


def get_heads_at(checkpoint: Checkpoint) -> ChainHeads:
    """Return all heads as of a checkpoint: the last full list with later changes applied."""
    start = (checkpoint.sequence - 1) // FULL_HEADS_INTERVAL * FULL_HEADS_INTERVAL + 1
    rows = Checkpoint.objects.in_workspace(checkpoint.workspace_id)
    rows = rows.filter(sequence__gte=start, sequence__lte=checkpoint.sequence).order_by("sequence")
    heads = ChainHeads()
    for stored_heads in rows.values_list("heads", flat=True):
        heads = read_heads(stored_heads).complete_from(heads)
    return heads


def save_signing_key(workspace_id: int, key: PrivateKey, at: datetime) -> None:
    """Store the public key on its first use, so that signatures stay verifiable after key rotation."""
    public = key.public_key()
    rows = SigningKey.objects.in_workspace(workspace_id)
    if not rows.filter(key_id=get_key_id(public)).exists():
        row = SigningKey(
            workspace_id=workspace_id,
            key_id=get_key_id(public),
            public_key=dump_public_key(public),
            first_used_at=at,
        )
        row.save(force_insert=True)


# --- file copy -----------------------------------------------------------------------------------------


def write_checkpoint_copies(workspace_id: int) -> int:
    """Append the checkpoints that the file lacks, also after a crash or failed write; return their number."""

    def list_following(last: proof.SignedCheckpoint | None) -> list[proof.SignedCheckpoint]:
        return [get_signed_checkpoint(row) for row in list_uncopied_checkpoints(workspace_id, last)]

    try:
        written = append_checkpoints(workspace_id, list_following)
        for row in SigningKey.objects.in_workspace(workspace_id):
            write_public_key(row.key_id, row.public_key)
    except OSError as error:
        # The checkpoint itself is stored. Verification reports the gap, and the next run retries.
        log.error("checkpoint_copy_failed", workspace=workspace_id, error=str(error))  # noqa: TRY400
        return 0
    return written


def list_uncopied_checkpoints(workspace_id: int, last: proof.SignedCheckpoint | None) -> QuerySet[Checkpoint]:
    """List the stored checkpoints that come after the last one in the file."""
    rows = Checkpoint.objects.in_workspace(workspace_id).order_by("sequence")
    if last is None:
        return rows
    last_sequence = rows.filter(hash=last.hash).values_list("sequence", flat=True).first()
    if last_sequence is None:
        # The last checkpoint in the file is not in the database, which verification reports. Newer
        # checkpoints are still appended.
        log.error("checkpoint_file_diverged", workspace=workspace_id)
        return rows.filter(at__gt=proof.read_checkpoint(last.body).at)
    return rows.filter(sequence__gt=last_sequence)


def get_signed_checkpoint(row: Checkpoint) -> proof.SignedCheckpoint:
    return proof.SignedCheckpoint(row.body, row.signature, row.key_id, row.heads)
