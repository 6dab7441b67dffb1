"""Print the id or the public key of the key that signs checkpoints, or generate a new private key."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from personas.errors import DomainError
from prompts.evidence.integrity.checkpoint_signer import get_public_key
from prompts.proof.signing_keys import dump_private_key, generate_signing_key


class Command(BaseCommand):
    help = (
        "Print the ID of the key that signs checkpoints or, with --public, the public key to share "
        "with others."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        group = parser.add_mutually_exclusive_group()
        group.add_argument("--public", action="store_true", help="print the public key as PEM")
        group.add_argument("--new", action="store_true", help="print a new private key without using it")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["new"]:
            self.stdout.write(dump_private_key(generate_signing_key()).decode(), ending="")
            return
        try:
            key_id, pem = get_public_key()
        except DomainError as error:
            raise CommandError(error.message) from None
        self.stdout.write(pem if options["public"] else f"{key_id}\n", ending="")
