"""Management command: let a workspace read a folder."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from personas.actors import SYSTEM_ACTOR
from personas.errors import InvalidInput
from personas.models import Workspace
from skills.sources.allowed_folders import allow_folder


class Command(BaseCommand):
    help = "Allow a workspace to read a folder below one of DRAMATIS_SOURCE_ROOTS."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("workspace", help="workspace slug")
        parser.add_argument("path", help="absolute path of the folder")
        parser.add_argument("--note", default="", help="note shown next to the folder")

    def handle(self, *args: Any, **options: Any) -> None:
        workspace = Workspace.objects.filter(slug=options["workspace"]).first()
        if workspace is None:
            raise CommandError(f"Workspace “{options['workspace']}” not found.")
        try:
            allowed_folder = allow_folder(workspace, options["path"], note=options["note"], by=SYSTEM_ACTOR)
        except InvalidInput as error:
            raise CommandError(
                " ".join(message for messages in error.errors.values() for message in messages)
            ) from None
        self.stdout.write(f"{workspace.name} can read {allowed_folder.path} and everything below it.")
