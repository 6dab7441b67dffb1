"""The record: where every chain ends, as far as can be seen in a moment; all of it takes `--whole`."""

import time
from collections.abc import Iterator

from personas.models import Workspace
from project.doctor.results import Finding, fail, ok, warn
from prompts.integrity.verify import verify_workspace
from prompts.integrity.verify.version import faults_of
from prompts.models import AgentPrompt, Checkpoint, SigningKey
from prompts.proof.checkpoints import SignedCheckpoint, verify_signature
from prompts.proof.signing_keys import UnusableKey, load_public

NAME = "record"
# Newest versions looked at in each workspace, and seconds for all of them.
HEADS, LONGEST = 5, 20.0
WHAT_TO_DO = "Keep the database as it is, run manage.py verify_chain, and compare with a backup."


def look_at_record(*, whole: bool = False) -> Iterator[Finding]:
    deadline, looked = time.monotonic() + LONGEST, 0
    workspaces = list(Workspace.objects.order_by("pk"))
    for workspace in workspaces:
        if not whole and time.monotonic() > deadline:
            yield warn(
                NAME, f"Time was up after {looked} of {len(workspaces)} workspaces.", "Use --whole at night."
            )
            return
        if fault := fault_of(workspace, whole=whole):
            yield fail(NAME, f"{workspace.slug}: {fault}", WHAT_TO_DO)
        looked += 1
    yield ok(NAME, f"{'All' if whole else 'The newest'} rows hold; workspaces looked at: {looked}.")


def fault_of(workspace: Workspace, *, whole: bool) -> str:
    if whole:
        first = verify_workspace(workspace).first
        return str(first) if first else ""
    return head_fault(workspace) or checkpoint_fault(workspace)


def head_fault(workspace: Workspace) -> str:
    """The ends of the chains that were added to last."""
    rows = AgentPrompt.objects.in_workspace(workspace).exclude(latest=None).order_by("-latest_id")
    for prompt in rows.select_related("latest", "agent", "channel")[:HEADS]:
        version = prompt.latest
        if version is None:
            continue
        version.prompt, version.workspace = prompt, workspace
        if prompt.last_hash != version.hash or prompt.last_number != version.number:
            return f"{prompt} does not end with its newest version."
        if found := faults_of(version):
            return f"{version}: {found[0]}"
    return ""


def checkpoint_fault(workspace: Workspace) -> str:
    """The newest statement: signed by a key that is known, about a past that is still there."""
    last = Checkpoint.objects.in_workspace(workspace).order_by("-sequence").first()
    if last is None:
        return ""
    signed = SignedCheckpoint(last.body, last.signature, last.key_id, last.heads)
    key = SigningKey.objects.in_workspace(workspace).filter(key_id=last.key_id).first()
    try:
        if key is None or not verify_signature(signed, load_public(key.public_key)):
            return f"{last} is not signed by a key that is known."
    except UnusableKey as error:
        return f"The key of {last} cannot be read: {error}"
    return "" if signed.hash == last.hash else f"The columns of {last} are not what was signed."
