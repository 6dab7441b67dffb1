"""Prepare the database for `manage.py up`: migrations, cache table and demo data."""

from importlib import import_module
from importlib.util import find_spec

from django.apps import apps
from django.conf import settings
from django.core.management import call_command
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor


class DatabaseNotReady(Exception):
    """The database cannot be used; the message is shown to the user."""


def prepare_database(*, empty: bool) -> str:
    """Migrate the database. Fill an empty one with the demo, and return the secret of a bot key for it.

    Without a new demo the secret is empty: a stored key cannot be shown again.
    """
    try:
        settings.VAR.mkdir(mode=0o700, parents=True, exist_ok=True)
        migrate_database()
        needs_demo = not empty and not has_workspaces()
    except (DatabaseError, OSError) as error:
        reason = " ".join(str(error).split())
        raise DatabaseNotReady(f"The database {get_database_name()} cannot be used: {reason}") from error
    secret = ""
    if needs_demo:
        call_command("load_demo")
        secret = import_module("prompts.studio.demo.load").create_demo_key()
    # Child processes open their own connections. An open one here would only hold a lock or a pool slot.
    connection.close()
    return secret


def migrate_database() -> None:
    """Apply migrations if any are pending.

    That is checked first, because the migrate command takes a second even if there is nothing to do.
    """
    executor = MigrationExecutor(connection)
    if executor.migration_plan(executor.loader.graph.leaf_nodes()):
        disable_statement_timeout()
        call_command("migrate", verbosity=0, interactive=False, skip_checks=True)
    # This command does nothing if the table exists.
    call_command("createcachetable", verbosity=0)


def disable_statement_timeout() -> None:
    """Disable the statement timeout of this connection, for migrations."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SET statement_timeout = 0")


def get_database_name() -> str:
    """Return the name of the database, without the password."""
    return str(connection.settings_dict["NAME"])


def has_workspaces() -> bool:
    return apps.get_model("personas", "Workspace")._base_manager.exists()


def has_users() -> bool:
    return apps.get_model("personas", "User")._base_manager.exists()


def get_demo_login() -> tuple[str, str] | None:
    """Return email and password of the demo user, if it exists and still has the default password."""
    if find_spec("prompts.studio.demo") is None:
        return None
    demo = import_module("prompts.studio.demo")
    email, password = getattr(demo, "DEMO_EMAIL", ""), getattr(demo, "DEMO_PASSWORD", "")
    user = apps.get_model("personas", "User")._base_manager.filter(email=email).first() if email else None
    return (email, password) if user is not None and user.check_password(password) else None
