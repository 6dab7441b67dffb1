"""Restore a backup into an empty database and verify it."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from project.backup.create import DEFAULT_SAMPLE_SIZE
from project.backup.endings import RestoreOptions
from project.backup.errors import BackupError
from project.backup.restore import check_backup, restore_backup


class Command(BaseCommand):
    help = (
        "Load a backup into an empty database, compare it with the manifest, and recompute the hash chains."
    )
    # No system checks: until the restore is complete, the models may be newer than the tables.
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("folder", type=Path, help="folder written by `manage.py backup`")
        parser.add_argument(
            "--sample",
            type=int,
            default=DEFAULT_SAMPLE_SIZE,
            help=("number of prompts to compare byte by byte"),
        )
        parser.add_argument("--only-check", action="store_true", help="check the files without loading them")
        parser.add_argument(
            "--allow-unsigned", action="store_true", help="restore a backup whose manifest is not signed"
        )
        parser.add_argument(
            "--keep-keys",
            action="store_true",
            help="keep keys and invitations if the journal does not say which of them have ended",
        )
        parser.add_argument(
            "--without-journal", action="store_true", help="do not read the journal, because it is damaged"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        source: Path = options["folder"].absolute()
        restore_options = RestoreOptions(
            **{name: options[name] for name in ("allow_unsigned", "keep_keys", "without_journal")}
        )
        try:
            if options["only_check"]:
                check_backup(source, restore_options, self.stdout.write)
                return
            restore_backup(
                source, sample=options["sample"], options=restore_options, report=self.stdout.write
            )
        except BackupError as error:
            raise CommandError(str(error)) from None
        self.stdout.write("Restored.")
