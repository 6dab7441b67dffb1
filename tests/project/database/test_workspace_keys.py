"""Keys and indexes of tenant tables begin with the workspace, except those listed with a reason."""

from fnmatch import fnmatch

import pytest
from django.db import IntegrityError, connection, transaction
from django.test import Client

from personas.actors import Actor
from personas.models import AgentChannel
from project.distribution.catalog import REFERENCE_TABLES
from project.distribution.services import distribute, plan_distribution
from prompts.models import AgentPrompt, PromptLabel
from prompts.publishing.builds.services import rebuild_agents
from prompts.publishing.labels.services import move_label, roll_back
from tests.factories import make_agent, make_channel, make_user, make_workspace, signed_in
from tests.project.database.workspace_keys import EXCUSED, Index, indexes, links, not_led, tenant_models
from tests.prompts.serving.serving_stage import make_stage

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif(connection.vendor != "postgresql", reason="the catalogue asked is PostgreSQL's"),
]


def unexcused(candidates: list[Index]) -> list[str]:
    return [
        str(index) for index in not_led(candidates) if not any(fnmatch(index.name, name) for name in EXCUSED)
    ]


def test_every_index_of_a_tenant_table_is_led_by_its_workspace_or_excused():
    existing = indexes()
    assert not unexcused(existing), "Begin it with the workspace, or give the reason in workspace_keys.py."
    used = {name for name in EXCUSED for index in not_led(existing) if fnmatch(index.name, name)}
    assert used == set(EXCUSED), "Nothing needs these excuses any more."


def test_every_tenant_table_has_an_index_that_begins_with_its_workspace():
    led = {index.table for index in indexes() if index.columns[0] == "workspace_id"}
    assert {model._meta.db_table for model in tenant_models()} <= led


@pytest.mark.planted
@pytest.mark.parametrize(
    "planted",
    [
        "CREATE INDEX planted ON personas_soul (slug)",
        "CREATE UNIQUE INDEX planted ON personas_tool (name)",
        "CREATE INDEX planted ON prompts_promptversion (substr(digest, 1, 12))",
    ],
)
def test_an_index_without_its_workspace_is_found(planted):
    with connection.cursor() as cursor:
        cursor.execute(planted)
    [index] = unexcused(indexes())
    assert "planted" in index


# --- manage.py distribute ------------------------------------------------------------------------------


@pytest.fixture
def distributed(db):
    """Put the workspace into the keys, in the transaction of this test."""
    catalog, steps = plan_distribution()
    distribute(steps, catalog, lambda sentence: None)


def test_after_distribute_every_key_begins_with_its_workspace(distributed):
    rest = [
        str(index)
        for index in indexes()
        if index.is_unique and index.table not in REFERENCE_TABLES and index.columns[0] != "workspace_id"
    ]
    assert rest == []
    assert single_links() == []


def single_links() -> list[str]:
    """Return foreign keys between tenant tables that do not include the workspace."""
    tables = {model._meta.db_table for model in tenant_models()} - set(REFERENCE_TABLES)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT conname FROM pg_constraint WHERE contype = 'f' AND cardinality(conkey) = 1 "
            "AND conrelid::regclass::text = ANY (%s) AND confrelid::regclass::text = ANY (%s)",
            [list(tables), list(tables)],
        )
        return [name for (name,) in cursor.fetchall()]


def test_a_second_run_has_nothing_to_do(distributed):
    assert plan_distribution()[1] == []


@pytest.mark.slow
def test_the_product_builds_labels_serves_and_shows_on_such_tables(distributed):
    alice = make_user("Alice")
    workspace = make_workspace("Harbour", owner=alice)
    stage = make_stage(workspace)
    stage.edit("Be calm.")
    by = Actor.person(alice)
    newest = stage.prompt.latest
    assert newest is not None
    move_label(stage.prompt, "canary", newest, expected=None, by=by)
    roll_back([stage.prompt], by=by, note="Too calm.")
    assert stage.fetch().row.number == 1
    assert len(stage.rows) == 1
    client: Client = signed_in(alice)
    for path in ("", "agents/pilot/", "ledger/", "audit/", "verify/"):
        assert client.get(f"/w/harbour/{path}").status_code == 200, path


def test_on_such_tables_the_database_itself_refuses_a_link_into_another_workspace(distributed):
    one, other = (make_workspace(name, owner=make_user(name)) for name in ("One", "Other"))
    agent, channel = make_agent(one, "pilot"), make_channel(other, "deck")
    link = AgentChannel(workspace=one, agent=agent, channel=channel, position=0)
    # Bypasses the check of the model.
    link.save_base(raw=True)
    with pytest.raises(IntegrityError, match="channel"), transaction.atomic():
        connection.check_constraints()
    AgentChannel.objects.in_workspace(one).filter(pk=link.pk).delete()


def test_rows_written_in_bulk_are_told_by_a_key_with_their_workspace(workspace):
    """Bulk writes of builds and label moves need these keys, before and after `distribute`."""
    stage = make_stage(workspace)
    rebuild_agents(workspace, [stage.agent.pk])
    names = {index.name: index.columns for index in indexes() if index.is_unique}
    for model, name in ((AgentPrompt, "prompts_by_workspace"), (PromptLabel, "labels_by_workspace")):
        assert names[name] == ("workspace_id", "id"), model
    assert ("prompts_promptlabel", "workspace_id") in links()
