"""App configuration of personas."""

from django.apps import AppConfig


class PersonasConfig(AppConfig):
    name = "personas"
    verbose_name = "Personas"

    def ready(self) -> None:
        from personas import receivers  # noqa: F401  # connects the receivers
