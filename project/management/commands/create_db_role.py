"""Create the database role of the web, worker and beat processes; run this as the owner of the tables."""

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError

from project.database.config import STATEMENT_TIMEOUT
from project.database.roles import UnsuitableRole, prepare_role, set_role_limits


class Command(BaseCommand):
    help = (
        "Makes a role that is held by row security, or mends what it may; repeat it as often as you like. "
        "Its password is DATABASE_APP_PASSWORD, if that is set."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", help="what DATABASE_URL of web, worker and beat will name")
        parser.add_argument(
            "--statement-ms",
            type=int,
            default=STATEMENT_TIMEOUT,
            help="The role's statement_timeout in milliseconds, for connections through a pooler. "
            "Use the DATABASE_STATEMENT_MS of web and workers. Default: %(default)s.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        name: str = options["name"]
        try:
            is_new = prepare_role(name, settings.DATABASE_APP_PASSWORD)
            has_limits = set_role_limits(name, options["statement_ms"])
        except (UnsuitableRole, DatabaseError) as error:
            raise CommandError(" ".join(str(error).split())) from None
        self.stdout.write(
            f"{name} was {'made' if is_new else 'there'} and may use the tables, one workspace at a time."
        )
        if not has_limits:
            self.stderr.write(
                "Its time limits were not set: this role may not alter it. They are needed behind a pooler; "
                "let a superuser run this command, or ALTER ROLE as docs/deployment.md shows."
            )
