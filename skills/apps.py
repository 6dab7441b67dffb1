"""App configuration. Registers the function that counts pending files for the sidebar and notifications."""

from django.apps import AppConfig


class SkillsConfig(AppConfig):
    name = "skills"
    verbose_name = "Skills"

    def ready(self) -> None:
        from personas.notifications.rules import OPEN_COUNTERS
        from personas.ui.navigation import NAV_COUNTERS
        from skills.inbox.selectors import count_pending_files, query_pending_count

        NAV_COUNTERS["inbox:list"] = count_pending_files
        OPEN_COUNTERS["file_waiting"] = lambda workspace_id: sum(query_pending_count(workspace_id))
