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
from project.doctor.results import DoctorFinding, FindingState, report_failure

DoctorCheck = Callable[[], Iterator[DoctorFinding]]


def run_checks(*, full: bool = False) -> list[DoctorFinding]:
    checks: dict[str, tuple[DoctorCheck, str]] = {
        "settings": (check_settings, "Compare your variables with .env.example."),
        "database": (
            check_database,
            ("Start the database, or fix DATABASE_URL. Until then, no prompt is served."),
        ),
        "pooler": (check_pooler, "This check needs the database. Fix that first."),
        "nodes": (check_nodes, "This check needs the database. Fix that first."),
        "replica": (check_replica, "This check needs the database. Fix that first."),
        "row-level security": (check_row_level_security, "This check needs the database. Fix that first."),
        "second factors": (check_second_factors, "This check needs the database. Fix that first."),
        "webhook secrets": (check_webhook_secrets, "This check needs the database. Fix that first."),
        "redis": (
            check_redis,
            ("Start Redis, or fix REDIS_URL. Bots are still served; changes to many prompts wait."),
        ),
        "worker": (check_workers, "This check needs the database. Fix that first."),
        "queues": (check_queue_workers, "This check needs Redis. Fix that first."),
        "record": (lambda: check_record(full=full), "This check needs the database. Fix that first."),
        "sealing and signing": (check_lag, "This check needs the database. Fix that first."),
        "journal": (check_journal, "This check needs Redis. Fix that first."),
        "ledger times": (check_ledger_times, "This check needs the database. Fix that first."),
        "disk": (check_disks, "Check that the folder is mounted and readable."),
        "files": (check_file_modes, "Check that the folder is mounted and readable."),
        "call data": (check_call_quota, "This check needs the database. Fix that first."),
    }
    return [
        finding
        for name, (check, advice) in checks.items()
        for finding in run_guarded_check(name, check, advice)
    ]


def run_guarded_check(name: str, check: DoctorCheck, advice: str) -> Iterator[DoctorFinding]:
    try:
        yield from check()
    # Any error becomes a finding, so that the other checks still run. Only the type of the error is reported,
    # because its message may contain host names.
    except Exception as error:  # noqa: BLE001
        yield report_failure(name, f"The check failed ({type(error).__name__}).", advice)


def has_passed(findings: list[DoctorFinding]) -> bool:
    return all(finding.state != FindingState.FAIL for finding in findings)
