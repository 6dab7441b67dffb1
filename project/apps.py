"""App configurations of the project and of the operators' admin site."""

from django.apps import AppConfig
from django.contrib.admin.apps import AdminConfig

from core.garbage_collection import exclude_imported_objects


class ProjectConfig(AppConfig):
    name = "project"

    def ready(self) -> None:
        from project.database.private_file import connect_signal

        connect_signal()
        # All models are imported now.
        exclude_imported_objects()


class OperatorConfig(AdminConfig):
    default_site = "project.admin_site.OperatorSite"
