"""Start the whole product: broker, database, web, worker and schedule as children of one process."""

import os
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from project.supervisor import children, prepare_database
from project.supervisor.supervisor import Supervisor
from project.supervisor.valkey import ValkeyUnavailable

DEMO_PROMPT_PATH = "api/v1/agents/bench-tests/channels/api/prompt"


class Command(BaseCommand):
    help = __doc__
    # System checks would delay every start by a second; `dev.py check` runs them.
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--port", type=int, default=8000)
        parser.add_argument("--host", default="127.0.0.1")
        parser.add_argument(
            "--empty", action="store_true", help="Do not load the demo into an empty database."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        host, port = options["host"], options["port"]
        # Only the owner can access the files that this process and its children create.
        os.umask(0o077)
        supervisor = Supervisor()
        try:
            children.require_free_port(host, port)
            with children.lock_var(settings.VAR, port):
                self.start_all(supervisor, host, port, empty=options["empty"])
                self.report_end(supervisor.watch())
        except (
            ValkeyUnavailable,
            prepare_database.DatabaseNotReady,
            children.AlreadyRunning,
            children.PortInUse,
        ) as error:
            raise CommandError(str(error)) from None
        finally:
            supervisor.stop()

    def start_all(self, supervisor: Supervisor, host: str, port: int, *, empty: bool) -> None:
        environment = children.build_child_environment(host, port)
        # This process builds the demo's prompts, which contain links with this URL.
        settings.PUBLIC_URL = environment["PUBLIC_URL"]
        children.start_broker(supervisor)
        demo_key = prepare_database.prepare_database(empty=empty)
        # The user waits for the web server. It starts faster if the workers are started only afterwards.
        if children.start_web(supervisor, environment, host, port):
            self.print_welcome(host, port, demo_key)
            children.start_workers(supervisor, environment)

    def print_welcome(self, host: str, port: int, demo_key: str) -> None:
        address = f"http://{'localhost' if host == '127.0.0.1' else host}:{port}/"
        self.stdout.write(self.style.SUCCESS(f"\n  Dramatis is running at {address}"))
        self.stdout.write("  Stop with Ctrl-C")
        if demo_key:
            self.stdout.write("  Fetch a prompt as a bot:")
            self.stdout.write(f'  curl -H "Authorization: Bearer {demo_key}" {address}{DEMO_PROMPT_PATH}')
        if login := prepare_database.get_demo_login():
            self.stdout.write(f"\n  Sign in as  {login[0]}\n  Password    {login[1]}\n")
        elif not prepare_database.has_users():
            self.stdout.write(f"\n  Create the first account at {address}accounts/signup/")
            if not settings.PRODUCTION:
                self.stdout.write(f"  Its confirmation email is at {address}dev/mail/\n")
        self.stdout.flush()

    def report_end(self, child: str | None) -> None:
        if child:
            raise CommandError(f"The {child} process exited unexpectedly. All processes were stopped.")
        self.stdout.write("Stopping.")
