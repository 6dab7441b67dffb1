"""Registers the skills app."""

from django.apps import AppConfig


class SkillsConfig(AppConfig):
    name = "skills"
    verbose_name = "Skills"

    def ready(self) -> None:
        from personas.ui.navigation import COUNTERS
        from skills.inbox.selectors import inbox_count

        COUNTERS["inbox:list"] = inbox_count
