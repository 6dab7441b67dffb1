import os
from collections.abc import Collection
from datetime import datetime, timedelta
from functools import partial
from threading import Thread
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.db import DatabaseError, connection, transaction
from django.db.models import Exists, OuterRef, Prefetch, Q, QuerySet
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from core.db.fast.compiled_query import CompiledQueries, CompiledQuery, NotCompilable, fetch_together
from core.db.fast.pipeline import Statement, execute_together
from core.db.workspace_scope import workspace_scope
from personas.models import Agent, AgentChannel, Memory, Soul, Workspace
from prompts.publishing.inputs.load import INPUT_QUERIES, build_input_queries
from skills.agent_context.effective import CANDIDATE_QUERIES, build_candidate_queries
from skills.agent_context.preload import SKILL_QUERIES, build_skill_queries
from tests.factories import make_agent, make_channel, make_memory, make_soul
from tests.project.database.restricted_role import as_app_role

pytestmark = pytest.mark.django_db
on_postgres = pytest.mark.skipif(os.environ.get("TEST_DATABASE") == "sqlite", reason="needs PostgreSQL")


def list_agents_of_souls(workspace: Workspace | int, souls: Collection[int], slug: str) -> QuerySet[Agent]:
    links = AgentChannel.objects.in_workspace(workspace).filter(agent=OuterRef("pk"))
    rows = Agent.objects.in_workspace(workspace).annotate(has_channel=Exists(links))
    rows = rows.filter(Q(soul__in=souls) | Q(slug=slug), archived_at=None)
    return rows.select_related("soul", "workspace").defer("description").order_by("slug")


@pytest.fixture
def crew(workspace) -> list[Agent]:
    soul = make_soul(workspace, name="Calm", text="Be calm.")
    deck = make_channel(workspace, "deck")
    return [
        make_agent(workspace, "pilot", soul=soul, channels=[deck]),
        make_agent(workspace, "cook", soul=make_soul(workspace, name="Loud", text="Be loud.")),
        make_agent(workspace, "guard"),
    ]


def test_the_rows_are_those_of_the_queryset(workspace, crew, django_assert_num_queries):
    query = CompiledQuery(list_agents_of_souls)
    for souls in ([crew[0].soul_id], [crew[0].soul_id, crew[1].soul_id], [], {crew[1].soul_id}):
        expected = list(list_agents_of_souls(workspace, souls, "guard"))
        with django_assert_num_queries(1):
            rows = query(workspace, souls, "guard")
            assert rows == expected
            assert [row.soul and row.soul.text for row in rows] == [
                row.soul and row.soul.text for row in expected
            ]
            assert [vars(row)["has_channel"] for row in rows] == [
                vars(row)["has_channel"] for row in expected
            ]
            assert [row.get_deferred_fields() for row in rows] == [{"description"}] * len(rows)
            assert {row.workspace.name for row in rows} == {"Harbour"}
            assert not any(row._state.adding for row in rows)


def test_the_sql_is_that_of_the_queryset(workspace, crew):
    query = CompiledQuery(list_agents_of_souls)
    query(workspace, [1, 2], "cook")
    args = (workspace, [crew[0].soul_id, 900_007], "guard")
    statements: list[tuple[str, list[Any]]] = []

    def note(execute, sql, params, many, context):
        statements.append((sql, list(params)))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(note):
        compiled, plain = query(*args), list(list_agents_of_souls(*args))
    assert compiled == plain
    assert len(statements) == 2
    assert statements[0] == statements[1]


def test_the_sql_of_the_builds_is_that_of_their_querysets(workspace, crew):
    ids = [agent.pk for agent in crew]
    families = [
        (INPUT_QUERIES.bind(workspace.pk, ids), build_input_queries(workspace.pk, ids)),
        (SKILL_QUERIES.bind(workspace.pk, ids), build_skill_queries(workspace.pk, ids)),
        (
            CANDIDATE_QUERIES.bind(workspace.pk, ids[0], [3]),
            build_candidate_queries(workspace.pk, ids[0], [3], has_contents=True),
        ),
    ]
    for bound, querysets in families:
        statements = [query.form.bind(query.values) for query in bound]
        plain = [queryset.query.get_compiler(connection=connection).as_sql() for queryset in querysets]
        assert [(sql, tuple(params)) for sql, params in statements] == [
            (sql, tuple(params)) for sql, params in plain
        ]
        assert all(workspace.pk in params for _, params in statements)


def test_tuples_prefetched_rows_and_locks(workspace, crew):
    names = CompiledQuery(
        lambda workspace, slug: (
            Agent.objects.in_workspace(workspace).filter(slug=slug).values_list("slug", "soul__text")
        )
    )
    assert names(workspace, "pilot") == [("pilot", "Be calm.")]
    prefetched = CompiledQuery(
        lambda workspace: Soul.objects.in_workspace(workspace).prefetch_related("agents").order_by("slug")
    )
    souls = prefetched(workspace)
    with CaptureQueriesContext(connection) as queries:
        assert [[agent.slug for agent in soul.agents.all()] for soul in souls] == [["pilot"], ["cook"]]
    assert len(queries) == 0
    locked = CompiledQuery(
        lambda workspace, pk: Soul.objects.in_workspace(workspace).filter(pk=pk).select_for_update()
    )
    assert locked(workspace, souls[0].pk) == [souls[0]]


def test_another_workspace_has_its_own_rows(workspace, elsewhere, crew):
    query = CompiledQuery(
        lambda workspace, slugs: Agent.objects.in_workspace(workspace).filter(slug__in=slugs)
    )
    make_agent(elsewhere, "pilot")
    assert query(workspace, ["pilot"]) == [crew[0]]
    assert [agent.workspace for agent in query(elsewhere, ["pilot"])] == [elsewhere]


def test_a_query_that_ignores_the_workspace_is_refused(workspace):
    query = CompiledQuery(lambda workspace, slug: Agent.unscoped.filter(slug=slug))
    with pytest.raises(NotCompilable, match="first argument"):
        query(workspace, "pilot")


def test_arguments_that_are_changed_or_of_other_types_are_refused(workspace):
    changed = CompiledQuery(
        lambda workspace, text: Agent.objects.in_workspace(workspace).filter(slug=f"{text}-2")
    )
    with pytest.raises(NotCompilable, match="as it is"):
        changed(workspace, "pilot")
    values: list[Any] = [None, True, 1.5, object()]
    for value in values:
        with pytest.raises(NotCompilable, match="not supported"):
            CompiledQuery(Agent.objects.in_workspace)(value)


@pytest.mark.parametrize("lookup", ["contains", "icontains", "startswith", "istartswith", "endswith"])
@pytest.mark.parametrize("text", ["pilot", "PIL", "%", "_", "\\", "100%", "a_b", "o", "%s", ""])
def test_a_pattern_matches_what_the_queryset_matches(workspace, lookup, text):
    for one in ("100% calm", "a_b", "back\\slash", "o%s", "Pilot", "pilot"):
        make_memory(workspace, one)
    build = partial(filter_memories, lookup)
    query = CompiledQuery(build)
    query(workspace, "another")
    assert sorted(query(workspace, text), key=id_of) == sorted(build(workspace, text), key=id_of)


def test_a_time_is_compared_as_by_the_queryset(workspace, crew):
    def build(workspace: Workspace | int, since: datetime, until: datetime) -> QuerySet[Agent]:
        rows = Agent.objects.in_workspace(workspace)
        return rows.filter(created_at__gte=since, created_at__lt=until).order_by("pk")

    query, now = CompiledQuery(build), timezone.now()
    east = now.astimezone(ZoneInfo("Asia/Tokyo"))
    hour = timedelta(hours=1)
    for since, until in ((now - hour, now + hour), (now + hour, now + 2 * hour), (east - hour, east + hour)):
        assert query(workspace, since, until) == list(build(workspace, since, until))
    assert query(workspace, now - hour, now + hour) == crew
    assert query(workspace, crew[1].created_at, crew[2].created_at) == [crew[1]]


@pytest.mark.planted
def test_a_pattern_that_is_not_escaped_is_noticed(workspace, monkeypatch):
    make_memory(workspace, "Calm")
    query = CompiledQuery(partial(filter_memories, "icontains"))
    assert query(workspace, "%") == []
    monkeypatch.setattr(type(connection.ops), "prep_for_like_query", lambda self, value: value)
    assert query(workspace, "%") != []


def filter_memories(lookup: str, workspace: Workspace | int, text: str) -> QuerySet[Memory]:
    return Memory.objects.in_workspace(workspace).filter(**{f"text__{lookup}": text})


def id_of(row: Memory) -> int:
    return row.pk


def test_prefetched_querysets_with_arguments_are_refused(workspace):
    def build(workspace: int) -> QuerySet[Soul]:
        agents = Prefetch("agents", queryset=Agent.objects.in_workspace(workspace))
        return Soul.objects.in_workspace(workspace).prefetch_related(agents)

    with pytest.raises(NotCompilable, match="prefetched"):
        CompiledQuery(build)(workspace)


@pytest.mark.django_db(transaction=True)
def test_threads_share_the_compiled_query(workspace, crew):
    query, found = CompiledQuery(list_agents_of_souls), []
    query(workspace, [1], "x")

    def fetch() -> None:
        try:
            found.extend(query(workspace, [crew[0].soul_id], "guard"))
        finally:
            connection.close()

    threads = [Thread(target=fetch) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(agent.slug for agent in found) == ["guard"] * 4 + ["pilot"] * 4


# --- several queries in one round trip -----------------------------------------------------------------


def test_several_queries_return_their_own_rows(workspace, crew):
    memory = make_memory(workspace, "Tea at four.")
    queries = CompiledQueries(
        lambda workspace, ids: [
            Agent.objects.in_workspace(workspace).filter(pk__in=ids).order_by("pk"),
            Memory.objects.in_workspace(workspace),
            Soul.objects.in_workspace(workspace).filter(pk__in=[]),
        ]
    )
    with CaptureQueriesContext(connection) as log:
        agents, memories, souls = fetch_together(queries.bind(workspace, [crew[2].pk, crew[0].pk]))
    assert (agents, memories, souls) == ([crew[0], crew[2]], [memory], [])
    assert len(log) == 2


@on_postgres
def test_a_failing_statement_stops_those_after_it(workspace):
    rename = "UPDATE personas_workspace SET name = %s WHERE id = %s RETURNING id"
    with pytest.raises(DatabaseError), transaction.atomic():
        execute_together(
            [(rename, ["Changed", workspace.pk]), ("SELECT 1 / 0", []), (rename, ["Last", workspace.pk])]
        )
    workspace.refresh_from_db()
    assert workspace.name == "Harbour"


@on_postgres
def test_a_restricted_role_reads_one_workspace_in_a_pipeline(workspace, elsewhere, crew):
    make_agent(elsewhere, "spy")
    everything: list[Statement] = [("SELECT slug FROM personas_agent ORDER BY slug", [])] * 2
    with as_app_role(), workspace_scope(workspace.pk), transaction.atomic():
        own = execute_together(everything)
    with as_app_role(), workspace_scope(elsewhere.pk), transaction.atomic():
        other = execute_together(everything)
    assert own == [[("cook",), ("guard",), ("pilot",)]] * 2
    assert other == [[("spy",)]] * 2


@on_postgres
def test_execute_wrappers_see_statements_of_a_pipeline(workspace):
    seen: list[str] = []

    def note(execute, sql, params, many, context):
        seen.append(sql)
        return execute(sql, params, many, context)

    with connection.execute_wrapper(note):
        execute_together([("SELECT 1", []), ("SELECT 2", [])])
    assert seen == ["SELECT 1", "SELECT 2"]
