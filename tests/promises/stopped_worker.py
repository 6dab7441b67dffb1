"""The product's Celery worker, which stops in the middle of a job, and on request has planted faults.

`celery -A tests.promises.stopped_worker worker`
"""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from celery.signals import worker_process_init
from django.db import connection

from project.celery import app
from tests.promises import FAULT

__all__ = ["COPY", "GATE", "POINT", "app"]

# Environment variables: where jobs stop, and the file that stops them while it exists.
POINT, GATE = "TEST_POINT", "TEST_GATE"
# A point is the table into which a row was inserted and not committed, or this: a checkpoint was committed
# and not copied to its file.
COPY = "copy"


@worker_process_init.connect
def prepare_process(**_: Any) -> None:
    if point := os.environ.get(POINT):
        stop_at(point, Path(os.environ[GATE]))
    for fault in filter(None, os.environ.get(FAULT, "").split(",")):
        FAULTS[fault]()


def stop_at(point: str, gate: Path) -> None:
    def wait() -> None:
        if gate.exists():
            gate.with_suffix(".reached").touch()
        while gate.exists():
            time.sleep(0.02)

    def execute_and_wait(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        result = execute(sql, *rest)
        if sql.startswith(f'INSERT INTO "{point}"'):
            wait()
        return result

    if point == COPY:
        from prompts.evidence.integrity import checkpoint_signer

        append = vars(checkpoint_signer)["append_checkpoints"]

        def wait_and_append(*given: Any) -> Any:
            wait()
            return append(*given)

        vars(checkpoint_signer)["append_checkpoints"] = wait_and_append
    else:
        connection.execute_wrappers.append(execute_and_wait)


# --- planted faults --------------------------------------------------------------------------------------


def progress_before_commit() -> None:
    """R4: the last row of a block is noted as sealed before the block is committed."""
    from prompts.evidence.ledger import blocks

    list_rows, note = blocks.list_rows_to_seal, Path(os.environ[GATE]).with_suffix(".progress")

    def list_rows_after_note(workspace_id: int, last_id: int, settled_before: Any) -> Any:
        place = note.with_suffix(f".{workspace_id}")
        noted = int(place.read_text()) if place.exists() else 0
        rows = list_rows(workspace_id, max(last_id, noted), settled_before)
        if rows:
            place.write_text(str(rows[-1][0]))
        return rows

    vars(blocks)["list_rows_to_seal"] = list_rows_after_note


def copies_of_new_checkpoints() -> None:
    """R4: a checkpoint is copied by the job that signs it, and by no later one."""
    from prompts import tasks
    from prompts.evidence.integrity import checkpoint_signer
    from prompts.evidence.ledger.blocks import seal_ledger

    def sign_and_copy(workspace_id: int) -> None:
        seal_ledger(workspace_id)
        if checkpoint_signer.create_checkpoint(workspace_id, checkpoint_signer.load_signing_key()):
            checkpoint_signer.write_checkpoint_copies(workspace_id)

    vars(tasks)["sign_checkpoint"] = sign_and_copy


def kept_connections() -> None:
    """R7: a job uses the connection of the job before it without a check."""
    from celery.fixups import django

    fixup: Any = vars(django)["DjangoWorkerFixup"]
    fixup._close_database = fixup.close_database = lambda *_, **__: None
    connection.settings_dict["CONN_HEALTH_CHECKS"] = False
    vars(connection)["close_if_unusable_or_obsolete"] = lambda: None


FAULTS: dict[str, Callable[[], None]] = {
    plant.__name__: plant for plant in (progress_before_commit, copies_of_new_checkpoints, kept_connections)
}
