"""All resources of the API, one line each."""

from importlib import import_module

from django.urls import URLPattern, path

import personas.api.paths  # noqa: F401  # registers what its addresses are made of
from project import api_docs, api_pages

RESOURCES = (
    "personas.api.agents",
    "personas.api.memories",
    "personas.api.work",
    "personas.api.keys",
    "personas.api.people",
    "skills.api.skills",
    "skills.api.agent_skills",
    "skills.api.found_skills",
    "skills.api.sources",
    "skills.api.files",
    "skills.api.file_verbs",
    "skills.api.contexts",
    "prompts.api.fetching",
    "prompts.api.rendering",
    "prompts.api.batches",
    "prompts.api.prompts",
    "prompts.api.versions",
    "prompts.api.provenance",
    "prompts.api.diffs",
    "prompts.api.verifying",
    "prompts.api.ledger",
    "prompts.api.replays",
    "prompts.api.reports",
    "prompts.api.labels",
    "prompts.api.releases",
    "prompts.api.previews",
    "prompts.api.impact",
    "prompts.api.settings",
)

urlpatterns: list[URLPattern] = [pattern for name in RESOURCES for pattern in import_module(name).urlpatterns]
urlpatterns += [
    path("openapi.json", api_docs.schema, name="schema"),
    path("docs/", api_pages.docs, name="docs"),
    path("docs/errors", api_pages.errors, name="errors"),
]
