"""Create a backup in a new folder while the product is running."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from project.backup.create import DEFAULT_SAMPLE_SIZE, create_backup
from project.backup.errors import BackupError


class Command(BaseCommand):
    help = (
        "Write a consistent snapshot of the database and the checkpoint files to a new folder, "
        "with a manifest."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("folder", type=Path, help="a folder that does not exist yet")
        parser.add_argument(
            "--sample",
            type=int,
            default=DEFAULT_SAMPLE_SIZE,
            help=("number of prompts whose text is recorded for comparison"),
        )

    def handle(self, *args: Any, **options: Any) -> None:
        target: Path = options["folder"].absolute()
        try:
            manifest = create_backup(target, sample=options["sample"])
        except BackupError as error:
            raise CommandError(str(error)) from None
        self.stdout.write(
            f"{target}: {manifest.rows:,} rows of {len(manifest.tables)} tables, "
            f"{len(manifest.files)} files, {manifest.size:,} bytes ({manifest.database['form']})."
        )
        if manifest.signature:
            self.stdout.write(f"The manifest is signed with {manifest.signature.key}.")
        else:
            self.stdout.write(
                "The manifest is not signed, because this process has no signing key. To restore it, "
                "pass --allow-unsigned."
            )
        self.stdout.write(
            "The backup does not contain the signing key and the settings. Back them up separately."
        )
