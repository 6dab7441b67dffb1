"""Run all checks of `manage.py doctor` in order. A check that raises an error becomes a failed finding."""

from collections.abc import Callable, Iterator

from project.doctor.checks import (
    check_call_quota,
    check_disks,
    check_file_modes,
    check_nodes,
    check_queue_workers,
    check_replica,
    check_row_level_security,
    check_second_factors,
    check_settings,
    check_webhook_secrets,
    check_workers,
)
from project.doctor.datastores import check_database, check_redis
from project.doctor.pooler import check_pooler
from project.doctor.record import check_journal, check_lag, check_ledger_times, check_record
from project.doctor.results import Finding, FindingState, report_failure

DoctorCheck = Callable[[], Iterator[Finding]]


def run_checks(*, full: bool = False) -> list[Finding]:
    checks: dict[str, tuple[DoctorCheck, str]] = {
        "settings": (check_settings, "Compare your variables with .env.example."),
        "database": (check_database, "Start it, or mend DATABASE_URL; until then no prompt is served."),
        "pooler": (check_pooler, "It is compared with the database: fix that first."),
        "nodes": (check_nodes, "The database is asked: fix that first."),
        "replica": (check_replica, "It is compared with the database: mend that first."),
        "second wall": (check_row_level_security, "It is read from the database: mend that first."),
        "second factors": (check_second_factors, "They are read from the database: fix that first."),
        "webhook secrets": (check_webhook_secrets, "They are read from the database: fix that first."),
        "redis": (check_redis, "Start it, or mend REDIS_URL; bots are served meanwhile, wide edits wait."),
        "worker": (check_workers, "It is read from the database: mend that first."),
        "queues": (check_queue_workers, "The broker is asked: repair Redis first."),
        "record": (lambda: check_record(full=full), "It is read from the database: mend that first."),
        "sealing and signing": (check_lag, "It is read from the database: mend that first."),
        "journal": (check_journal, "The cache is asked: repair Redis first."),
        "ledger times": (check_ledger_times, "It is read from the database: mend that first."),
        "disk": (check_disks, "See whether the folder is mounted and ours to read."),
        "files": (check_file_modes, "See whether the folder is mounted and ours to read."),
        "call data": (check_call_quota, "It is read from the database: mend that first."),
    }
    return [
        finding
        for name, (check, advice) in checks.items()
        for finding in run_guarded_check(name, check, advice)
    ]


def run_guarded_check(name: str, check: DoctorCheck, advice: str) -> Iterator[Finding]:
    try:
        yield from check()
    # Any error becomes a finding, so that the other checks still run. Only the type of the error is reported,
    # because its message may contain host names.
    except Exception as error:  # noqa: BLE001
        yield report_failure(name, f"It cannot be looked at ({type(error).__name__}).", advice)


def has_passed(findings: list[Finding]) -> bool:
    return all(finding.state != FindingState.FAIL for finding in findings)
