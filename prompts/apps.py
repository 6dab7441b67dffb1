"""Configuration of the prompts app: connects signal receivers and creates ledger partitions."""

from django.apps import AppConfig
from django.db.models.signals import post_migrate


class PromptsConfig(AppConfig):
    name = "prompts"
    verbose_name = "Prompts"

    def ready(self) -> None:
        from personas.api.key_limits import DEFAULT_RECORD_SOURCES, USED_RECORD_SOURCES
        from personas.api_keys.scopes import LABEL_SOURCES
        from personas.notifications.rules import DETAIL_SOURCES, EXCLUDED_SOURCES, RECIPIENT_SOURCES
        from personas.records.models import AGENT_ID_SOURCES
        from prompts import receivers  # noqa: F401  # connects the receivers
        from prompts.evidence.ledger.partitions import create_partitions
        from prompts.publishing.comments.selectors import COMMENT_RECIPIENTS, list_comment_details
        from prompts.publishing.labels.selectors import list_label_names
        from prompts.publishing.provenance.usage import get_usage_fingerprint, list_file_revisions_in_use
        from prompts.publishing.releases.recipients import (
            RELEASE_RECIPIENTS,
            list_release_details,
            list_requested_reviewers,
        )
        from prompts.publishing.settings.selectors import (
            AGENTS_BY_SETTINGS,
            list_default_record_ids,
            query_records_in_settings,
        )
        from skills.files.prompt_usage import PROMPT_USAGE_SOURCES, PromptUsageSource

        LABEL_SOURCES.append(list_label_names)
        RECIPIENT_SOURCES.update(RELEASE_RECIPIENTS | COMMENT_RECIPIENTS)
        EXCLUDED_SOURCES["release.requested"] = list_requested_reviewers
        DETAIL_SOURCES["release"] = list_release_details
        DETAIL_SOURCES["memory"] = DETAIL_SOURCES["version"] = list_comment_details
        AGENT_ID_SOURCES.append(AGENTS_BY_SETTINGS)
        USED_RECORD_SOURCES.append(query_records_in_settings)
        DEFAULT_RECORD_SOURCES.append(list_default_record_ids)
        PROMPT_USAGE_SOURCES.append(PromptUsageSource(list_file_revisions_in_use, get_usage_fingerprint))
        # The scheduler also creates partitions, but it may not run yet when the first prompts are served.
        post_migrate.connect(
            lambda **_: create_partitions(), sender=self, weak=False, dispatch_uid="ledger-months"
        )
