"""Registers the prompts app."""

from django.apps import AppConfig


class PromptsConfig(AppConfig):
    name = "prompts"
    verbose_name = "Prompts"

    def ready(self) -> None:
        from prompts import receivers  # noqa: F401  # hears the bell from here on
