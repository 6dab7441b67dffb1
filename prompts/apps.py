"""Registers the prompts app."""

from django.apps import AppConfig


class PromptsConfig(AppConfig):
    name = "prompts"
    verbose_name = "Prompts"

    def ready(self) -> None:
        from personas.key_labels import SOURCES
        from prompts import receivers  # noqa: F401  # hears the bell from here on
        from prompts.label_names import label_names

        SOURCES.append(label_names)
