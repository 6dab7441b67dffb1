"""URLs of the REST API, collected from its resource modules; project/urls.py adds the documentation pages."""

from importlib import import_module

from django.urls import URLPattern

import personas.api.url_converters  # noqa: F401  # registers the path converters

RESOURCE_MODULES = (
    "personas.agents.api",
    "personas.identities.api",
    "personas.souls.api",
    "personas.user_profiles.api",
    "personas.channels.api",
    "personas.tools.api",
    "personas.memories.api",
    "personas.work.api",
    "personas.api_keys.api",
    "personas.api_keys.me_api",
    "personas.members.api",
    "personas.workspaces.api",
    "personas.audit.api",
    "personas.events.api",
    "personas.webhooks.api",
    "skills.library.api",
    "skills.library.agent_api",
    "skills.library.found_api",
    "skills.sources.api",
    "skills.rule_sets.api",
    "skills.files.api",
    "skills.files.action_api",
    "skills.agent_context.api",
    "prompts.serving.fetch_api",
    "prompts.serving.render_api",
    "prompts.serving.batch_api",
    "prompts.serving.skill_files.api",
    "prompts.publishing.versions.prompts_api",
    "prompts.publishing.versions.api",
    "prompts.publishing.provenance.api",
    "prompts.publishing.provenance.usage_api",
    "prompts.publishing.versions.diff_api",
    "prompts.publishing.sizes.api",
    "prompts.evidence.integrity.api",
    "prompts.evidence.integrity.checkpoints_api",
    "prompts.publishing.builds.api",
    "prompts.evidence.ledger.api",
    "prompts.evidence.replay.api",
    "prompts.evidence.drift.api",
    "prompts.evidence.drift.reports_api",
    "prompts.publishing.labels.api",
    "prompts.publishing.releases.api",
    "prompts.publishing.releases.comments_api",
    "prompts.publishing.comments.api",
    "prompts.evidence.erasure.api",
    "prompts.publishing.preview.api",
    "prompts.publishing.preview.impact_api",
    "prompts.publishing.settings.api",
    "prompts.publishing.settings.layouts_api",
    "prompts.studio.search.api",
    "project.api.exports",
)

urlpatterns: list[URLPattern] = [
    pattern for name in RESOURCE_MODULES for pattern in import_module(name).urlpatterns
]
