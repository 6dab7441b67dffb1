"""Put the workspace into every key and, with Citus, spread the tables over nodes by workspace."""

import os
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, connection

from project.distribution.catalog import Catalog
from project.distribution.plan import Step
from project.distribution.preconditions import list_obstacles
from project.distribution.services import distribute, list_node_contents, plan_distribution


class Command(BaseCommand):
    help = (
        "Puts the workspace into the keys of all tables of workspaces. With the extension Citus it also "
        "spreads them over its nodes. Repeat it after every migration that adds a table. The only way back "
        "is a restore."
    )

    # They would connect to the database before the name of the connection is set.
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--plan", action="store_true", help="print what would be done, and do nothing")
        parser.add_argument("--sql", action="store_true", help="with --plan: print the statements too")
        parser.add_argument("--backup", type=Path, help="the folder of a backup of the last hour")
        parser.add_argument("--without-backup", action="store_true", help="there is nothing to lose")

    def handle(self, *args: Any, **options: Any) -> None:
        if connection.vendor != "postgresql":
            raise CommandError("This needs PostgreSQL: SQLite is one file on one machine.")
        # libpq takes the name of its connections from there.
        os.environ["PGAPPNAME"] = f"dramatis distribute {os.getpid()}"
        catalog, steps = plan_distribution()
        self.stdout.write(describe_database(catalog))
        if not steps:
            self.stdout.write("There is nothing to do.")
            self.report_nodes(catalog)
            return
        obstacles = list_obstacles(
            catalog, backup=options["backup"], without_backup=options["without_backup"]
        )
        if options["plan"]:
            self.print_plan(steps, obstacles, with_sql=options["sql"])
            return
        if obstacles:
            raise CommandError(" ".join(obstacles))
        try:
            distribute(steps, catalog, self.stdout.write)
        except DatabaseError as error:
            raise CommandError(f"Nothing was changed: {' '.join(str(error).split())}") from error
        self.stdout.write("Done.")
        self.report_nodes(plan_distribution()[0])

    def print_plan(self, steps: list[Step], obstacles: list[str], *, with_sql: bool) -> None:
        for step in steps:
            self.stdout.write(f"- {step.title}")
            for statement in step.statements if with_sql else ():
                self.stdout.write(f"    {statement};")
        for obstacle in obstacles:
            self.stdout.write(f"Not yet: {obstacle}")

    def report_nodes(self, catalog: Catalog) -> None:
        for node in list_node_contents(catalog) if catalog.has_citus else ():
            self.stdout.write(
                f"{node.node}: {node.tables} tables in {node.shards:,} shards, "
                f"{node.workspaces:,} workspaces, {node.rows:,} rows."
            )


def describe_database(catalog: Catalog) -> str:
    if not catalog.has_citus:
        return f"PostgreSQL without Citus; {len(catalog.tenant_tables)} tables of workspaces."
    return (
        f"Citus {catalog.citus_version}; {len(catalog.tenant_tables)} tables of workspaces, "
        f"{len(catalog.distributed_tables)} of them distributed."
    )
