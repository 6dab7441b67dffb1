"""App configuration. Registers the function that counts pending files for the sidebar and notifications."""

from django.apps import AppConfig


class SkillsConfig(AppConfig):
    name = "skills"
    verbose_name = "Skills"

    def ready(self) -> None:
        from personas.notifications.rules import OPEN_COUNTERS
        from personas.ui.navigation import NAV_COUNTERS
        from skills.inbox.selectors import count_pending_files

        NAV_COUNTERS["inbox:list"] = count_pending_files
        OPEN_COUNTERS["file_waiting"] = count_pending_files
