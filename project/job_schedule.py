"""Queues of the Celery jobs, and when beat starts the periodic ones."""

from typing import Any

# One queue per kind of job, so that no kind waits behind another if each has a worker. A worker without
# `--queues` takes jobs from all of them in turn.
# Jobs without a route use the first.
JOB_QUEUES = ("clock", "builds", "scans", "long")
JOB_ROUTES = {
    "prompts.tasks.rebuild_prompts_job": {"queue": "builds"},
    # Its prompts are not served until it ends, so it must not wait behind a verification.
    "prompts.tasks.finish_erasure_job": {"queue": "builds"},
    "skills.tasks.refresh_source_job": {"queue": "scans"},
    "prompts.tasks.verify_chain_job": {"queue": "long"},
    "prompts.tasks.maintain_partitions_job": {"queue": "long"},
    "project.tasks.purge_contents_job": {"queue": "long"},
}

JOB_SCHEDULE: dict[str, dict[str, Any]] = {
    # Builds prompts whose build job was lost, and prompts with memories that become valid or expire.
    "sweep-prompts": {
        "task": "prompts.tasks.sweep_prompts_job",
        "schedule": 30.0,
        "options": {"expires": 25},
    },
    "seal-ledger": {"task": "prompts.tasks.seal_ledger_job", "schedule": 60.0, "options": {"expires": 50}},
    "roll-off-ledger": {
        "task": "prompts.tasks.expire_ledger_job",
        "schedule": 3_600.0,
        "options": {"expires": 3_000},
    },
    "keep-ledger-months": {
        "task": "prompts.tasks.maintain_partitions_job",
        "schedule": 3_600.0,
        "options": {"expires": 3_000},
    },
    # Signs the workspaces that changed and whose last checkpoint is an hour old (prompts/integrity/lag.py).
    "sign-checkpoints": {
        "task": "prompts.tasks.sign_checkpoints_job",
        "schedule": 300.0,
        "options": {"expires": 280},
    },
    "forget-answers": {
        "task": "project.tasks.purge_idempotency_keys_job",
        "schedule": 3_600.0,
        "options": {"expires": 3_000},
    },
    "forget-runs": {
        "task": "project.tasks.purge_refresh_runs_job",
        "schedule": 3_600.0,
        "options": {"expires": 3_000},
    },
    "forget-drafts": {
        "task": "project.tasks.purge_drafts_job",
        "schedule": 3_600.0,
        "options": {"expires": 3_000},
    },
    "forget-security-events": {
        "task": "project.tasks.purge_security_events_job",
        "schedule": 3_600.0,
        "options": {"expires": 3_000},
    },
    "forget-reports": {
        "task": "project.tasks.purge_reports_job",
        "schedule": 3_600.0,
        "options": {"expires": 3_000},
    },
    "forget-contents": {
        "task": "project.tasks.purge_contents_job",
        "schedule": 86_400.0,
        "options": {"expires": 80_000},
    },
    "forget-sessions": {
        "task": "project.tasks.purge_sessions_job",
        "schedule": 3_600.0,
        "options": {"expires": 3_000},
    },
    "measure": {"task": "project.tasks.measure_metrics_job", "schedule": 60.0, "options": {"expires": 50}},
    "heartbeat": {"task": "project.tasks.record_heartbeat_job", "schedule": 30.0, "options": {"expires": 25}},
    # Starts refresh runs that are due, lost or stuck. It runs often, so that a killed worker delays a run by
    # less than a minute.
    "sweep-sources": {"task": "skills.tasks.sweep_sources_job", "schedule": 10.0, "options": {"expires": 9}},
}
