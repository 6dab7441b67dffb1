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
        "Add the workspace to the keys of all workspace tables. With the Citus extension, also "
        "distribute them over its nodes. Run it again after every migration that adds a table. This "
        "can only be undone by restoring a backup."
    )

    # System checks would connect to the database before the name of the connection is set.
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--plan", action="store_true", help="print the plan without running it")
        parser.add_argument("--sql", action="store_true", help="with --plan: also print the statements")
        parser.add_argument("--backup", type=Path, help="folder of a backup from the last hour")
        parser.add_argument("--without-backup", action="store_true", help="continue without a backup")

    def handle(self, *args: Any, **options: Any) -> None:
        if connection.vendor != "postgresql":
            raise CommandError("This requires PostgreSQL. SQLite cannot be distributed.")
        # libpq takes the name of its connections from this variable.
        os.environ["PGAPPNAME"] = f"dramatis distribute {os.getpid()}"
        catalog, steps = plan_distribution()
        self.stdout.write(describe_database(catalog))
        if not steps:
            self.stdout.write("Nothing to do.")
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
            self.stdout.write(f"Not possible yet: {obstacle}")

    def report_nodes(self, catalog: Catalog) -> None:
        for node in list_node_contents(catalog) if catalog.has_citus else ():
            self.stdout.write(
                f"{node.node}: {node.tables} tables in {node.shards:,} shards, "
                f"{node.workspaces:,} workspaces, {node.rows:,} rows."
            )


def describe_database(catalog: Catalog) -> str:
    if not catalog.has_citus:
        return f"PostgreSQL without Citus; {len(catalog.tenant_tables)} workspace tables."
    return (
        f"Citus {catalog.citus_version}; {len(catalog.tenant_tables)} workspace tables, "
        f"{len(catalog.distributed_tables)} of them distributed."
    )
