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
    "prompts.skill_files.api",
    "prompts.versions.prompts_api",
    "prompts.versions.api",
    "prompts.provenance.api",
    "prompts.provenance.usage_api",
    "prompts.versions.diff_api",
    "prompts.versions.sizes_api",
    "prompts.integrity.api",
    "prompts.integrity.checkpoints_api",
    "prompts.builds.api",
    "prompts.ledger.api",
    "prompts.replay.api",
    "prompts.drift.api",
    "prompts.drift.reports_api",
    "prompts.labels.api",
    "prompts.releases.api",
    "prompts.releases.comments_api",
    "prompts.comments.api",
    "prompts.erasure.api",
    "prompts.preview.api",
    "prompts.preview.impact_api",
    "prompts.settings.api",
    "prompts.settings.layouts_api",
    "prompts.search.api",
    "project.api.exports",
)

urlpatterns: list[URLPattern] = [
    pattern for name in RESOURCE_MODULES for pattern in import_module(name).urlpatterns
]
