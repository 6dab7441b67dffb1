"""Load the demo data into the demo workspace."""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from personas.models import Agent, Memory
from prompts.studio.demo import DEMO_EMAIL, DEMO_PASSWORD
from prompts.studio.demo.load import load_demo
from skills.models import ContextFile


class Command(BaseCommand):
    help = "Load the demo workspace. Running it again changes nothing."

    def handle(self, *args: Any, **options: Any) -> None:
        if settings.PRODUCTION:
            raise CommandError("The demo's password is public. Do not use it in production.")
        workspace = load_demo()
        agents = Agent.objects.in_workspace(workspace).count()
        memories = Memory.objects.in_workspace(workspace).count()
        files = ContextFile.objects.in_workspace(workspace).count()
        self.stdout.write(f"{workspace.name}: {agents} agents, {memories} memories, {files} files.")
        if not files:
            self.stdout.write(f"To read its files, add {settings.DEMO_SOURCES} to DRAMATIS_SOURCE_ROOTS.")
        self.stdout.write(f"Sign in as {DEMO_EMAIL} with {DEMO_PASSWORD}")
