"""Signs how far a workspace's record has come, and writes it down twice."""

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
from personas.models import Workspace
from prompts.integrity.checkpoint_files import append_checkpoints, write_public_key
from prompts.models import AgentPrompt, Checkpoint, LedgerBlock, LedgerRollOff, SigningKey
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
    """The settings name a key that cannot be used."""

    code = "no_signing_key"


def load_signing_key() -> PrivateKey:
    """The private key; NoSigningKey with the reason where there is none to use."""
    said: str = settings.DRAMATIS_SIGNING_KEY
    try:
        return load_private_key(read_pem(said) if said else ensure_development_pem(settings.VAR))
    except OSError as error:
        said = _("The signing key cannot be read: %(reason)s.") % {"reason": error.strerror}
        raise NoSigningKey(said) from error
    except UnusableKey as error:
        unusable = _("DRAMATIS_SIGNING_KEY cannot be used. %(reason)s") % {"reason": error}
        raise NoSigningKey(unusable) from error


def read_pem(said: str) -> bytes:
    """The PEM itself, its lines perhaps told apart by \\n as in files of variables; or that of a file."""
    if said.startswith(PEM_PREFIX):
        return said.replace("\\n", "\n").encode()
    return Path(said).read_bytes()


def ensure_development_pem(var: Path) -> bytes:
    """Production names its key; only where it need not is one made, once, for us alone."""
    path = var / "signing_key.pem"
    if not path.exists():
        var.mkdir(parents=True, exist_ok=True)
        draft = var / f"signing_key.{os.getpid()}"
        draft.touch(mode=0o600)
        draft.write_bytes(dump_private_key(generate_signing_key()))
        # Linking fails when another process was first; both then read the same whole file.
        with contextlib.suppress(FileExistsError):
            os.link(draft, path)
        draft.unlink()
    return path.read_bytes()


def get_public_key() -> tuple[str, str]:
    """The id and the PEM of the public key, for everyone to keep."""
    public = load_signing_key().public_key()
    return get_key_id(public), dump_public_key(public)


log = structlog.get_logger(__name__)

# Every so many checkpoints bring all heads: whoever needs them reads this far back and no further.
FULL_HEADS_INTERVAL = 100


def sign_checkpoint(workspace_id: int) -> Checkpoint | None:
    """State where every chain ends now; None when nothing has moved since the last time."""
    made = create_checkpoint(workspace_id, load_signing_key())
    write_checkpoint_copies(workspace_id)
    return made


@transaction.atomic
def create_checkpoint(workspace_id: int, key: PrivateKey) -> Checkpoint | None:
    # One at a time per workspace; not the whole lock, which would hold up everything that points there.
    Workspace.objects.select_for_update(no_key=True).get(pk=workspace_id)
    rows = Checkpoint.objects.in_workspace(workspace_id)
    before = rows.order_by("-sequence").first()
    heads = get_current_heads(workspace_id)
    stated = build_statement(workspace_id, heads, before.hash if before else "", timezone.now())
    if not has_new_state(stated, before):
        return None
    signed = proof.sign_statement(stated, key, select_heads(heads, before))
    row = Checkpoint(
        workspace_id=workspace_id,
        sequence=before.sequence + 1 if before else 1,
        body=signed.body,
        heads=signed.heads,
        at=stated.at,
        previous_hash=stated.previous,
        hash=signed.hash,
        key_id=signed.key,
        signature=signed.signature,
    )
    save_signing_key(workspace_id, key, stated.at)
    row.save(force_insert=True)
    return row


def get_current_heads(workspace_id: int) -> ChainHeads:
    """The newest version and the newest label move of every prompt."""
    rows = AgentPrompt.objects.in_workspace(workspace_id).filter(last_number__gt=0)
    found = list(
        rows.values_list("agent_id", "channel_id", "last_number", "last_hash", "last_move", "last_move_hash")
    )
    versions = (ChainHead(agent, channel, number, hashed) for agent, channel, number, hashed, _, _ in found)
    moves = (ChainHead(agent, channel, move, hashed) for agent, channel, _, _, move, hashed in found if move)
    return ChainHeads(sort_heads(versions), sort_heads(moves))


def build_statement(
    workspace_id: int, heads: ChainHeads, previous: str, at: datetime
) -> proof.CheckpointStatement:
    versions, moves = heads.sums()
    blocks = LedgerBlock.objects.in_workspace(workspace_id).order_by("-sequence")
    gone = LedgerRollOff.objects.in_workspace(workspace_id).order_by("-block__sequence")
    block = blocks.values_list("sequence", "hash", "last_id").first()
    roll_off = gone.values_list("block__sequence", "hash").first()
    return proof.CheckpointStatement(
        workspace=workspace_id,
        at=at,
        versions=versions,
        label_moves=moves,
        ledger=proof.LedgerMark(*block) if block else proof.NO_BLOCK,
        roll_offs=proof.RollOffMark(*roll_off) if roll_off else proof.NO_ROLL_OFF,
        previous=previous,
    )


def has_new_state(stated: proof.CheckpointStatement, before: Checkpoint | None) -> bool:
    """Whether there is something to say that the last checkpoint does not say already."""
    if before is None:
        return stated.versions.count > 0
    told = stated.body()
    return any(before.body.get(name) != told[name] for name in told if name not in {"at", "previous"})


def select_heads(heads: ChainHeads, before: Checkpoint | None) -> ChainHeads:
    """All heads, or those that are new since the checkpoint before."""
    if before is None or before.sequence % FULL_HEADS_INTERVAL == 0:
        return heads
    return heads.since(get_heads_at(before))


def get_heads_at(checkpoint: Checkpoint) -> ChainHeads:
    """All heads as they were then, from the last whole list on."""
    start = (checkpoint.sequence - 1) // FULL_HEADS_INTERVAL * FULL_HEADS_INTERVAL + 1
    rows = Checkpoint.objects.in_workspace(checkpoint.workspace_id)
    rows = rows.filter(sequence__gte=start, sequence__lte=checkpoint.sequence).order_by("sequence")
    found = ChainHeads()
    for data in rows.values_list("heads", flat=True):
        found = read_heads(data).after(found)
    return found


def save_signing_key(workspace_id: int, key: PrivateKey, at: datetime) -> None:
    """Keys change, signatures stay: each is remembered from its first use on."""
    public = key.public_key()
    rows = SigningKey.objects.in_workspace(workspace_id)
    if not rows.filter(key_id=get_key_id(public)).exists():
        made = SigningKey(
            workspace_id=workspace_id,
            key_id=get_key_id(public),
            public_key=dump_public_key(public),
            first_used_at=at,
        )
        made.save(force_insert=True)


# --- the second copy -----------------------------------------------------------------------------------


def write_checkpoint_copies(workspace_id: int) -> int:
    """Bring the file up to the database, also after a crash in between; how many lines that took."""

    def following(last: proof.SignedCheckpoint | None) -> list[proof.SignedCheckpoint]:
        return [get_signed_checkpoint(row) for row in list_uncopied_checkpoints(workspace_id, last)]

    try:
        written = append_checkpoints(workspace_id, following)
        for row in SigningKey.objects.in_workspace(workspace_id):
            write_public_key(row.key_id, row.public_key)
    except OSError as error:
        # Signed and stored it is; verification tells that the copy is behind, and the next time tries again.
        log.error("checkpoint_copy_failed", workspace=workspace_id, error=str(error))  # noqa: TRY400
        return 0
    return written


def list_uncopied_checkpoints(workspace_id: int, last: proof.SignedCheckpoint | None) -> QuerySet[Checkpoint]:
    """The checkpoints behind the file's last line."""
    rows = Checkpoint.objects.in_workspace(workspace_id).order_by("sequence")
    if last is None:
        return rows
    known = rows.filter(hash=last.hash).values_list("sequence", flat=True).first()
    if known is None:
        # The file has seen a past that the database does not know: verification names it. The rest goes on.
        log.error("checkpoint_file_diverged", workspace=workspace_id)
        return rows.filter(at__gt=proof.read_checkpoint(last.body).at)
    return rows.filter(sequence__gt=known)


def get_signed_checkpoint(row: Checkpoint) -> proof.SignedCheckpoint:
    return proof.SignedCheckpoint(row.body, row.signature, row.key_id, row.heads)
