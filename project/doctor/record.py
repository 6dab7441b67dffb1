"""Checks of `manage.py doctor` for the record: hash chains, checkpoints, sealing, signing and ledger times.

By default only the newest versions in the hash chains are checked; `doctor --whole` verifies all rows.
"""

import time
from collections.abc import Iterator
from datetime import timedelta

from personas.models import Workspace
from project.doctor.results import DoctorFinding, report_failure, report_ok, report_warning
from project.journal.services import find_journal_problem
from prompts.evidence.integrity.lag import MAX_UNSEALED_TIME, MAX_UNSIGNED_TIME, list_workspace_lags
from prompts.evidence.integrity.trusted_keys import find_trust_fault, get_trusted_keys
from prompts.evidence.integrity.verify import verify_workspace
from prompts.evidence.integrity.verify.version import list_version_faults
from prompts.models import AgentPrompt, Checkpoint, LedgerBlock, SigningKey
from prompts.proof.checkpoints import SignedCheckpoint, verify_signature
from prompts.proof.ledger_blocks import LedgerTimes
from prompts.proof.signing_keys import UnusableKey, load_public_key
from prompts.proof_rows import build_block_row

RECORD_CHECK = "record"
# Number of versions checked in each workspace, newest first, and the time limit for all workspaces.
HEADS_PER_WORKSPACE, TIME_LIMIT_SECONDS = 5, 20.0
RECORD_ADVICE = "Do not change the database. Run manage.py verify_chain, and compare with a backup."


def check_record(*, full: bool = False) -> Iterator[DoctorFinding]:
    deadline, checked = time.monotonic() + TIME_LIMIT_SECONDS, 0
    workspaces = list(Workspace.objects.filter(removed_at=None).order_by("pk"))
    for workspace in workspaces:
        if not full and time.monotonic() > deadline:
            yield report_warning(
                RECORD_CHECK,
                f"Timed out after {checked} of {len(workspaces)} workspaces.",
                "Run manage.py doctor --whole during a quiet period.",
            )
            return
        if fault := find_record_fault(workspace, full=full):
            yield report_failure(RECORD_CHECK, f"{workspace.slug}: {fault}", RECORD_ADVICE)
        checked += 1
    yield report_ok(
        RECORD_CHECK, f"{'All' if full else 'The newest'} rows are valid. Workspaces checked: {checked}."
    )


def find_record_fault(workspace: Workspace, *, full: bool) -> str:
    if full:
        first = verify_workspace(workspace).first
        return str(first) if first else ""
    return find_head_fault(workspace) or find_checkpoint_fault(workspace)


def find_head_fault(workspace: Workspace) -> str:
    """Check the newest version of the prompts that were built last. Return the first fault, or "" if none."""
    rows = AgentPrompt.objects.in_workspace(workspace).exclude(latest=None).order_by("-latest_id")
    for prompt in rows.select_related("latest", "agent", "channel")[:HEADS_PER_WORKSPACE]:
        version = prompt.latest
        if version is None:
            continue
        version.prompt, version.workspace = prompt, workspace
        if prompt.last_hash != version.hash or prompt.last_number != version.number:
            return f"The chain of {prompt} does not end with its newest version."
        if faults := list_version_faults(version):
            return f"{version}: {faults[0]}"
    return ""


def find_checkpoint_fault(workspace: Workspace) -> str:
    """Check that a trusted key signed the newest checkpoint and that its hash column is what was signed.

    Return the fault, or "" if there is none.
    """
    last = Checkpoint.objects.in_workspace(workspace).order_by("-sequence").first()
    if last is None:
        return ""
    signed = SignedCheckpoint(last.body, last.signature, last.key_id, last.heads)
    row = SigningKey.objects.in_workspace(workspace).filter(key_id=last.key_id).first()
    try:
        key = load_public_key(row.public_key) if row else None
    except UnusableKey as error:
        return f"The key of {last} cannot be read: {error}"
    if key is None or not verify_signature(signed, key):
        return f"{last} is signed with an unknown key."
    if reason := find_trust_fault(get_trusted_keys(), last.key_id, key):
        return f"{last} is signed with {last.key_id}: {reason}."
    return "" if signed.hash == last.hash else f"The columns of {last} do not match the signed content."


LEDGER_TIMES_CHECK, SEALING_CHECK, SIGNING_CHECK = "ledger times", "sealing", "signing"
# Number of blocks checked in each workspace, newest first.
BLOCKS_PER_WORKSPACE = 100
MAX_NAMED_WORKSPACES = 5
LAG_ADVICE = "Check that worker and beat are running, and search the worker's log for workspace_job_failed."


def check_ledger_times() -> Iterator[DoctorFinding]:
    """Report workspaces whose newest blocks have rows with times from a clock that was wrong."""
    faults = {}
    for workspace in Workspace.objects.filter(removed_at=None).order_by("pk"):
        times = LedgerTimes()
        blocks = LedgerBlock.objects.in_workspace(workspace).order_by("-sequence")[:BLOCKS_PER_WORKSPACE]
        for block in reversed(blocks):
            times.add(build_block_row(block))
        if found := times.list_faults():
            faults[workspace.slug] = str(found[0])
    if faults:
        slug, fault = next(iter(faults.items()))
        yield report_warning(
            LEDGER_TIMES_CHECK,
            f"{format_workspaces(list(faults))}. In {slug}, {fault}.",
            "Synchronize the clocks of all machines with NTP. The rows are sealed and cannot be changed.",
        )
    else:
        yield report_ok(LEDGER_TIMES_CHECK, "The times in the newest blocks are in order.")


def check_lag() -> Iterator[DoctorFinding]:
    """Report workspaces with rows that are unsealed, or changes that are unsigned, for too long."""
    lags = list_workspace_lags()
    unsealed = {lag.slug: lag.unsealed for lag in lags if lag.is_unsealed_too_long}
    unsigned = {lag.slug: lag.unsigned for lag in lags if lag.is_unsigned_too_long}
    yield report_lag(SEALING_CHECK, "an unsealed ledger row", unsealed, MAX_UNSEALED_TIME)
    yield report_lag(SIGNING_CHECK, "an unsigned change", unsigned, MAX_UNSIGNED_TIME)


def report_lag(name: str, what: str, late: dict[str, timedelta], limit: timedelta) -> DoctorFinding:
    minutes = limit.total_seconds() / 60
    if not late:
        return report_ok(name, f"No workspace has {what} older than {minutes:.0f} minutes.")
    slugs = sorted(late, key=lambda slug: -late[slug])
    oldest = max(late.values()).total_seconds() / 60
    return report_failure(
        name,
        f"{format_workspaces(slugs)} with {what} older than {minutes:.0f} minutes, the oldest {oldest:.0f}.",
        LAG_ADVICE,
    )


def format_workspaces(slugs: list[str]) -> str:
    names = ", ".join(slugs[:MAX_NAMED_WORKSPACES])
    more = f" and {len(slugs) - MAX_NAMED_WORKSPACES} more" if len(slugs) > MAX_NAMED_WORKSPACES else ""
    return f"{len(slugs)} workspaces ({names}{more})" if len(slugs) > 1 else f"Workspace {names}"


JOURNAL_CHECK = "journal"
JOURNAL_ADVICE = (
    "Check that the worker `clock` is running and can write to the checkpoint folder. If the journal "
    "is damaged, move endings.journal and endings.head to another folder. A new journal is written "
    "within a minute."
)


def check_journal() -> Iterator[DoctorFinding]:
    """Check that the journal of endings is up to date, which a restore depends on."""
    if problem := find_journal_problem():
        yield report_failure(JOURNAL_CHECK, problem, JOURNAL_ADVICE)
    else:
        yield report_ok(JOURNAL_CHECK, "The journal outside the database is up to date.")
