"""Management command: print the OpenAPI document, or a part of it."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from project.api.docs_views import get_openapi_document
from project.api.subset import select_operations


class Command(BaseCommand):
    help = "Print the OpenAPI document of the REST API, the same as `/api/v1/openapi.json`."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--operation",
            action="append",
            metavar="ID",
            help="only this operation and the schemas it refers to, for small generated clients; repeatable",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        document = get_openapi_document()
        if options["operation"]:
            try:
                document = select_operations(document, options["operation"])
            except ValueError as error:
                raise CommandError(str(error)) from None
        self.stdout.write(json.dumps(document, ensure_ascii=False, indent=1))
