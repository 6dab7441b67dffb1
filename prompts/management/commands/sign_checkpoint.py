"""Sign a checkpoint of the hash chains of one workspace or of all workspaces."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from personas.errors import DomainError
from personas.models import Workspace
from prompts.evidence.integrity.checkpoint_files import get_checkpoint_path
from prompts.evidence.integrity.checkpoint_signer import sign_checkpoint
from prompts.management.commands.verify_chain import list_named_workspaces


class Command(BaseCommand):
    help = "Sign a checkpoint of the hash chains and write it to the database and to a file."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("workspace", nargs="?", default="", help="workspace slug (default: all)")

    def handle(self, *args: Any, **options: Any) -> None:
        for workspace in list_named_workspaces(options):
            self.stdout.write(f"{workspace.slug}: {self.sign(workspace)}")

    def sign(self, workspace: Workspace) -> str:
        try:
            checkpoint = sign_checkpoint(workspace.pk)
        except DomainError as error:
            raise CommandError(error.message) from None
        if checkpoint is None:
            return "no changes since the last checkpoint"
        path = get_checkpoint_path(workspace.pk)
        return f"checkpoint {checkpoint.sequence}, signed with {checkpoint.key_id}, copied to {path}"
