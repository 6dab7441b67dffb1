"""List the layouts with their parts in order."""

from typing import Any

from django.core.management.base import BaseCommand

from prompts.assembly.layouts import LAYOUTS


class Command(BaseCommand):
    help = "List the layouts with their parts in order."
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        for layout in LAYOUTS.values():
            self.stdout.write(f"{layout.name}: {layout.summary}")
            for number, part in enumerate(layout.parts, start=1):
                filled = ", filled per call" if part.slot else ""
                self.stdout.write(f"  {number:2}. {part.name} ({part.volatility}{filled})")
