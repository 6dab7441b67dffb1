"""Restore a backup into an empty database and verify it."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from project.backup.create import DEFAULT_SAMPLE_SIZE
from project.backup.errors import BackupError
from project.backup.manifest import read_manifest
from project.backup.restore import restore_backup


class Command(BaseCommand):
    help = (
        "Loads a backup into an empty database, then holds it against the manifest and recomputes the record."
    )
    # No system checks: until the restore is complete, the models may be newer than the tables.
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("folder", type=Path, help="what `manage.py backup` has made")
        parser.add_argument(
            "--sample", type=int, default=DEFAULT_SAMPLE_SIZE, help="prompts to be compared to the byte"
        )
        parser.add_argument("--only-check", action="store_true", help="look at the files and load nothing")

    def handle(self, *args: Any, **options: Any) -> None:
        source: Path = options["folder"].absolute()
        try:
            if options["only_check"]:
                manifest = read_manifest(source)
                self.stdout.write(f"{len(manifest.files)} files are what was written at {manifest.made_at}.")
                return
            restore_backup(source, sample=options["sample"], report=self.stdout.write)
        except BackupError as error:
            raise CommandError(str(error)) from None
        self.stdout.write("Restored.")
