"""Management command: create an API key and print its secret once."""

from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from personas.actors import Actor
from personas.api_keys.format import ADMIN, BOT
from personas.api_keys.scopes import DEFAULT_VERBS, VERBS
from personas.api_keys.services import DEFAULT_LIFETIME, create_key
from personas.errors import InvalidInput
from personas.models import Membership, Workspace

OPERATOR = Actor(label="operator (manage.py create_key)")


class Command(BaseCommand):
    help = (
        "Create an API key. Only the key is written to standard output, so a shell can store it: "
        "export DRAMATIS_KEY=$(python manage.py create_key --workspace larkfell)"
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--workspace", required=True, help="workspace slug")
        parser.add_argument("--name", default="", help="name of the key, shown in lists")
        parser.add_argument(
            "--verb",
            action="append",
            choices=VERBS,
            help=f"what the key can do; repeatable (default: {' and '.join(DEFAULT_VERBS)})",
        )
        for name in ("agent", "channel", "label"):
            parser.add_argument(
                f"--{name}", action="append", help=f"limit the key to this {name}; repeatable"
            )
        parser.add_argument(
            "--days",
            type=int,
            default=DEFAULT_LIFETIME.days,
            help="number of days until it expires (default: %(default)s)",
        )
        parser.add_argument(
            "--admin",
            metavar="EMAIL",
            help=("create an admin key that acts for this member, instead of a bot key"),
        )

    def handle(self, *args: Any, **options: Any) -> None:
        workspace = Workspace.objects.filter(slug=options["workspace"]).first()
        if workspace is None:
            raise CommandError(f"Workspace “{options['workspace']}” not found.")
        by = get_member_actor(workspace, options["admin"]) if options["admin"] else OPERATOR
        scopes = {"verbs": options["verb"] or list(DEFAULT_VERBS)}
        scopes |= {f"{name}s": options[name] for name in ("agent", "channel", "label") if options[name]}
        now = timezone.now()
        try:
            key, secret = create_key(
                workspace,
                options["name"] or f"Command line {now:%Y-%m-%d %H:%M:%S}",
                scopes,
                now + timedelta(days=options["days"]),
                by=by,
                kind=ADMIN if options["admin"] else BOT,
            )
        except InvalidInput as error:
            raise CommandError(
                " ".join(message for messages in error.errors.values() for message in messages)
            ) from None
        self.stderr.write(
            f"{key.name} expires on {key.expires_at:%Y-%m-%d}. The key will not be shown again."
        )
        self.stdout.write(secret)


def get_member_actor(workspace: Workspace, email: str) -> Actor:
    member = (
        Membership.objects.in_workspace(workspace).filter(user__email=email, user__is_active=True).first()
    )
    if member is None:
        raise CommandError(f"{email} is not a member of {workspace.name}.")
    return Actor(label=f"{email} (manage.py create_key)", user=member.user)
