"""The migrate command of Django, with an error for databases that it cannot migrate."""

from typing import Any

from django.core.management import CommandError
from django.core.management.commands import migrate
from django.db import connections
from django.db.migrations.loader import MigrationLoader

from project.database.replaced_migrations import IncompleteMigrations, require_complete_migrations


class Command(migrate.Command):
    def handle(self, *args: Any, **options: Any) -> None:
        loader = MigrationLoader(connections[options["database"]])
        try:
            require_complete_migrations(loader, loader.applied_migrations)
        except IncompleteMigrations as error:
            raise CommandError(str(error)) from error
        super().handle(*args, **options)
