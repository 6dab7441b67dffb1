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
from prompts.integrity.checkpoint_files import continue_copy, keep_public_key
from prompts.models import AgentPrompt, Checkpoint, LedgerBlock, LedgerRollOff, SigningKey
from prompts.proof import checkpoints as proof
from prompts.proof.chain_heads import Head, Heads, ordered, read_heads
from prompts.proof.signing_keys import (
    PrivateKey,
    UnusableKey,
    dump_key,
    key_id,
    load_key,
    new_key,
    public_pem,
)

PEM = "-----BEGIN"


class NoSigningKey(DomainError):
    """The settings name a key that cannot be used."""

    code = "no_signing_key"


def signing_key() -> PrivateKey:
    """The private key; NoSigningKey with the reason where there is none to use."""
    said: str = settings.DRAMATIS_SIGNING_KEY
    try:
        return load_key(pem_in(said) if said else development_pem(settings.VAR))
    except OSError as error:
        said = _("The signing key cannot be read: %(reason)s.") % {"reason": error.strerror}
        raise NoSigningKey(said) from error
    except UnusableKey as error:
        unusable = _("DRAMATIS_SIGNING_KEY cannot be used. %(reason)s") % {"reason": error}
        raise NoSigningKey(unusable) from error


def pem_in(said: str) -> bytes:
    """The PEM itself, its lines perhaps told apart by \\n as in files of variables; or that of a file."""
    if said.startswith(PEM):
        return said.replace("\\n", "\n").encode()
    return Path(said).read_bytes()


def development_pem(var: Path) -> bytes:
    """Production names its key; only where it need not is one made, once, for us alone."""
    path = var / "signing_key.pem"
    if not path.exists():
        var.mkdir(parents=True, exist_ok=True)
        draft = var / f"signing_key.{os.getpid()}"
        draft.touch(mode=0o600)
        draft.write_bytes(dump_key(new_key()))
        # Linking fails when another process was first; both then read the same whole file.
        with contextlib.suppress(FileExistsError):
            os.link(draft, path)
        draft.unlink()
    return path.read_bytes()


def public_key_told() -> tuple[str, str]:
    """The id and the PEM of the public key, for everyone to keep."""
    public = signing_key().public_key()
    return key_id(public), public_pem(public)


log = structlog.get_logger(__name__)

# Every so many checkpoints bring all heads: whoever needs them reads this far back and no further.
WHOLE_EVERY = 100


def sign_checkpoint(workspace_id: int) -> Checkpoint | None:
    """State where every chain ends now; None when nothing has moved since the last time."""
    made = make_checkpoint(workspace_id, signing_key())
    write_copies(workspace_id)
    return made


@transaction.atomic
def make_checkpoint(workspace_id: int, key: PrivateKey) -> Checkpoint | None:
    # One at a time per workspace; not the whole lock, which would hold up everything that points there.
    Workspace.objects.select_for_update(no_key=True).get(pk=workspace_id)
    rows = Checkpoint.objects.in_workspace(workspace_id)
    before = rows.order_by("-sequence").first()
    heads = present_heads(workspace_id)
    stated = statement(workspace_id, heads, before.hash if before else "", timezone.now())
    if not has_moved(stated, before):
        return None
    signed = proof.sign(stated, key, brought(heads, before))
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
    keep_key(workspace_id, key, stated.at)
    row.save(force_insert=True)
    return row


def present_heads(workspace_id: int) -> Heads:
    """The newest version and the newest label move of every prompt."""
    rows = AgentPrompt.objects.in_workspace(workspace_id).filter(last_number__gt=0)
    found = list(
        rows.values_list("agent_id", "channel_id", "last_number", "last_hash", "last_move", "last_move_hash")
    )
    versions = (Head(agent, channel, number, hashed) for agent, channel, number, hashed, _, _ in found)
    moves = (Head(agent, channel, move, hashed) for agent, channel, _, _, move, hashed in found if move)
    return Heads(ordered(versions), ordered(moves))


def statement(workspace_id: int, heads: Heads, previous: str, at: datetime) -> proof.Checkpoint:
    versions, moves = heads.sums()
    blocks = LedgerBlock.objects.in_workspace(workspace_id).order_by("-sequence")
    gone = LedgerRollOff.objects.in_workspace(workspace_id).order_by("-block__sequence")
    block = blocks.values_list("sequence", "hash", "last_id").first()
    roll_off = gone.values_list("block__sequence", "hash").first()
    return proof.Checkpoint(
        workspace=workspace_id,
        at=at,
        versions=versions,
        label_moves=moves,
        ledger=proof.LedgerMark(*block) if block else proof.NO_BLOCK,
        roll_offs=proof.Mark(*roll_off) if roll_off else proof.NO_ROLL_OFF,
        previous=previous,
    )


def has_moved(stated: proof.Checkpoint, before: Checkpoint | None) -> bool:
    """Whether there is something to say that the last checkpoint does not say already."""
    if before is None:
        return stated.versions.count > 0
    told = stated.body()
    return any(before.body.get(name) != told[name] for name in told if name not in {"at", "previous"})


def brought(heads: Heads, before: Checkpoint | None) -> Heads:
    """All heads, or those that are new since the checkpoint before."""
    if before is None or before.sequence % WHOLE_EVERY == 0:
        return heads
    return heads.since(heads_at(before))


def heads_at(checkpoint: Checkpoint) -> Heads:
    """All heads as they were then, from the last whole list on."""
    start = (checkpoint.sequence - 1) // WHOLE_EVERY * WHOLE_EVERY + 1
    rows = Checkpoint.objects.in_workspace(checkpoint.workspace_id)
    rows = rows.filter(sequence__gte=start, sequence__lte=checkpoint.sequence).order_by("sequence")
    found = Heads()
    for data in rows.values_list("heads", flat=True):
        found = read_heads(data).after(found)
    return found


def keep_key(workspace_id: int, key: PrivateKey, at: datetime) -> None:
    """Keys change, signatures stay: each is remembered from its first use on."""
    public = key.public_key()
    rows = SigningKey.objects.in_workspace(workspace_id)
    if not rows.filter(key_id=key_id(public)).exists():
        made = SigningKey(
            workspace_id=workspace_id,
            key_id=key_id(public),
            public_key=public_pem(public),
            first_used_at=at,
        )
        made.save(force_insert=True)


# --- the second copy -----------------------------------------------------------------------------------


def write_copies(workspace_id: int) -> int:
    """Bring the file up to the database, also after a crash in between; how many lines that took."""

    def following(last: proof.SignedCheckpoint | None) -> list[proof.SignedCheckpoint]:
        return [signed_of(row) for row in uncopied(workspace_id, last)]

    try:
        written = continue_copy(workspace_id, following)
        for row in SigningKey.objects.in_workspace(workspace_id):
            keep_public_key(row.key_id, row.public_key)
    except OSError as error:
        # Signed and stored it is; verification tells that the copy is behind, and the next time tries again.
        log.error("checkpoint_not_copied", workspace=workspace_id, error=str(error))  # noqa: TRY400
        return 0
    return written


def uncopied(workspace_id: int, last: proof.SignedCheckpoint | None) -> QuerySet[Checkpoint]:
    """The checkpoints behind the file's last line."""
    rows = Checkpoint.objects.in_workspace(workspace_id).order_by("sequence")
    if last is None:
        return rows
    known = rows.filter(hash=last.hash).values_list("sequence", flat=True).first()
    if known is None:
        # The file has seen a past that the database does not know: verification names it. The rest goes on.
        log.error("checkpoint_file_disagrees", workspace=workspace_id)
        return rows.filter(at__gt=proof.read_checkpoint(last.body).at)
    return rows.filter(sequence__gt=known)


def signed_of(row: Checkpoint) -> proof.SignedCheckpoint:
    return proof.SignedCheckpoint(row.body, row.signature, row.key_id, row.heads)
