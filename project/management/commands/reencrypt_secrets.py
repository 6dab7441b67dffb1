"""Encrypt the secrets in the database with the first key of DRAMATIS_SECRETS_KEYS, after a key rotation."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from personas.accounts.second_factors import reencrypt_factors
from personas.webhooks.stored_secrets import reencrypt_endpoints


class Command(BaseCommand):
    help = (
        "Encrypt all second factors and webhook secrets with the first key of DRAMATIS_SECRETS_KEYS "
        "(or SECRET_KEY). Run it after a rotation, before you remove the old key. The server can "
        "keep running."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        unreadable = 0
        for name, counts in (
            ("Second factors", reencrypt_factors()),
            ("Webhook endpoints", reencrypt_endpoints()),
        ):
            changed = counts.outdated + counts.in_clear
            self.stdout.write(
                f"{name} encrypted with the first key: {counts.current + changed} ({changed} changed)."
            )
            unreadable += counts.unreadable
        if unreadable:
            raise CommandError(
                f"{unreadable} secrets cannot be decrypted with any configured key. "
                "Add the old key to DRAMATIS_SECRETS_KEYS or SECRET_KEY_FALLBACKS, and run the command again."
            )
