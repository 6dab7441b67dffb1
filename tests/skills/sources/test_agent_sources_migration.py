"""The migration that copies the one source of each agent to the table of its sources."""

from importlib import import_module

import pytest
from django.db import connection
from django.db.migrations.loader import MigrationLoader

from skills.models import AgentContext, AgentSource
from tests.factories import make_agent, make_source

pytestmark = pytest.mark.django_db
migration = import_module("skills.migrations.0007_copy_agent_sources")


def test_the_source_of_each_agent_is_copied_once(workspace, tmp_path, settings):
    settings.DRAMATIS_SOURCE_ROOTS = [tmp_path]
    source = make_source(workspace, tmp_path)
    old_apps = MigrationLoader(connection).project_state(("skills", "0006_agent_sources")).apps
    contexts = old_apps.get_model("skills", "AgentContext").unscoped
    for slug, source_id in (("pilot", source.pk), ("cook", source.pk), ("idle", None)):
        agent = make_agent(workspace, slug)
        contexts.create(workspace_id=workspace.pk, agent_id=agent.pk, source_id=source_id, harness="pi")
    while keys := migration.list_contexts_to_copy(old_apps, 1):
        migration.copy_sources(old_apps, keys)
    rows = AgentSource.objects.in_workspace(workspace)
    assert sorted(rows.values_list("context__agent__slug", "source_id", "scope")) == [
        ("cook", source.pk, "both"),
        ("pilot", source.pk, "both"),
    ]
    assert AgentContext.objects.in_workspace(workspace).count() == 3
