"""All that the doctor looks at, in order; what cannot be looked at is a finding too."""

from collections.abc import Callable, Iterator

from project.doctor.checks import (
    look_at_disks,
    look_at_record,
    look_at_replica,
    look_at_settings,
    look_at_walls,
    look_at_work,
)
from project.doctor.datastores import look_at_database, look_at_redis
from project.doctor.results import Finding, State, fail

Look = Callable[[], Iterator[Finding]]


def examine(*, whole: bool = False) -> list[Finding]:
    looks: dict[str, tuple[Look, str]] = {
        "settings": (look_at_settings, "Compare your variables with .env.example."),
        "database": (look_at_database, "Start it, or mend DATABASE_URL; until then no prompt is served."),
        "replica": (look_at_replica, "It is compared with the database: mend that first."),
        "second wall": (look_at_walls, "It is read from the database: mend that first."),
        "redis": (look_at_redis, "Start it, or mend REDIS_URL; bots are served meanwhile, wide edits wait."),
        "worker": (look_at_work, "It is read from the database: mend that first."),
        "record": (lambda: look_at_record(whole=whole), "It is read from the database: mend that first."),
        "disk": (look_at_disks, "See whether the folder is mounted and ours to read."),
    }
    return [finding for name, (look, advice) in looks.items() for finding in seen(name, look, advice)]


def seen(name: str, look: Look, advice: str) -> Iterator[Finding]:
    try:
        yield from look()
    # Whatever it is, the others are still to be looked at; its words may name hosts, so its kind is told.
    except Exception as error:  # noqa: BLE001
        yield fail(name, f"It cannot be looked at ({type(error).__name__}).", advice)


def is_well(findings: list[Finding]) -> bool:
    return all(finding.state != State.FAIL for finding in findings)
