"""Queues of the Celery jobs, and when beat starts the periodic ones."""

from typing import Any

# One queue per kind of job, so that no kind waits behind another if each has a worker. A worker without
# `--queues` takes jobs from all queues in turn. Jobs without a route use the first queue.
JOB_QUEUES = ("clock", "builds", "scans", "webhooks", "long")
JOB_ROUTES = {
    "prompts.tasks.rebuild_prompts_job": {"queue": "builds"},
    # Until an erasure is finished, its prompts are not served, so it must not wait behind a verification.
    "prompts.tasks.finish_erasure_job": {"queue": "builds"},
    "skills.tasks.refresh_source_job": {"queue": "scans"},
    # These two wait for external servers: webhook receivers that tenants choose, and the mail server.
    "project.tasks.deliver_webhooks_job": {"queue": "webhooks"},
    "project.tasks.send_notification_emails_job": {"queue": "webhooks"},
    "prompts.tasks.verify_chain_job": {"queue": "long"},
    "prompts.tasks.maintain_partitions_job": {"queue": "long"},
    "project.tasks.purge_contents_job": {"queue": "long"},
    "project.tasks.remove_workspaces_job": {"queue": "long"},
}


def run_every(seconds: float, task: str, *, expires: float) -> dict[str, Any]:
    """Build the entry of a periodic job. A message that no worker has taken after `expires` is dropped."""
    return {"task": task, "schedule": seconds, "options": {"expires": expires}}


JOB_SCHEDULE = {
    # Builds prompts whose build job was lost, and prompts with memories that become valid or expire.
    "sweep-prompts": run_every(30, "prompts.tasks.sweep_prompts_job", expires=25),
    "seal-ledger": run_every(60, "prompts.tasks.seal_ledger_job", expires=50),
    "record-hourly-events": run_every(3_600, "prompts.tasks.record_hourly_events_job", expires=3_000),
    "delete-expired-ledger-blocks": run_every(3_600, "prompts.tasks.expire_ledger_job", expires=3_000),
    "maintain-ledger-partitions": run_every(3_600, "prompts.tasks.maintain_partitions_job", expires=3_000),
    # Signs workspaces that have changed, if their last checkpoint is at least an hour old:
    # prompts/evidence/integrity/lag.py.
    "sign-checkpoints": run_every(300, "prompts.tasks.sign_checkpoints_job", expires=280),
    # A restore applies what ended after the backup. What ended after the last run of this job may be missing.
    "record-endings": run_every(60, "project.tasks.record_endings_job", expires=50),
    "delete-expired-idempotency-keys": run_every(
        3_600, "project.tasks.purge_idempotency_keys_job", expires=3_000
    ),
    "delete-expired-refresh-runs": run_every(3_600, "project.tasks.purge_refresh_runs_job", expires=3_000),
    "delete-expired-drafts": run_every(3_600, "project.tasks.purge_drafts_job", expires=3_000),
    "delete-expired-security-events": run_every(
        3_600, "project.tasks.purge_security_events_job", expires=3_000
    ),
    "delete-expired-reports": run_every(3_600, "project.tasks.purge_reports_job", expires=3_000),
    "delete-expired-events": run_every(3_600, "project.tasks.purge_events_job", expires=3_000),
    "delete-unused-contents": run_every(86_400, "project.tasks.purge_contents_job", expires=80_000),
    "remove-deleted-workspaces": run_every(86_400, "project.tasks.remove_workspaces_job", expires=80_000),
    "delete-expired-sessions": run_every(3_600, "project.tasks.purge_sessions_job", expires=3_000),
    "measure-metrics": run_every(60, "project.tasks.measure_metrics_job", expires=50),
    "record-heartbeat": run_every(30, "project.tasks.record_heartbeat_job", expires=25),
    # Finds new events in the database, because code that writes events enqueues no job.
    "create-notifications": run_every(2, "project.tasks.create_notifications_job", expires=2),
    "send-notification-emails": run_every(60, "project.tasks.send_notification_emails_job", expires=50),
    # Finds new events and due deliveries in the database, because code that writes events enqueues no job.
    "deliver-webhooks": run_every(1, "project.tasks.deliver_webhooks_job", expires=2),
    # Starts refresh runs that are due, lost or stuck. It runs often, so that a killed worker delays a run by
    # less than a minute.
    "sweep-sources": run_every(10, "skills.tasks.sweep_sources_job", expires=9),
}
