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
        "Create a role that is restricted by row-level security, or update its privileges. You can "
        "run it again at any time. Its password is DATABASE_APP_PASSWORD, if set."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", help="name of the role, for DATABASE_URL of web, worker and beat")
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
                "The time limits were not set, because the current role cannot alter it. They are "
                "required behind a pooler. Run this command as a superuser, or use ALTER ROLE as "
                "described in docs/deployment.md."
            )
