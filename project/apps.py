"""The project as an app, and the admin under its own roof."""

from django.apps import AppConfig
from django.contrib.admin.apps import AdminConfig


class ProjectConfig(AppConfig):
    name = "project"


class OperatorConfig(AdminConfig):
    default_site = "project.admin_site.OperatorSite"
