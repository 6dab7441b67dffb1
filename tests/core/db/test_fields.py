"""The lookups by values that are joined in one parameter."""

import pytest

from personas.contents.services import store_contents
from personas.models import Agent, Content, Memory
from tests.factories import make_agent, make_memory

pytestmark = pytest.mark.django_db


def test_joined_texts_find_the_same_rows_as_a_list(workspace, elsewhere):
    for one in (workspace, elsewhere):
        store_contents(one, {f"{number:064x}": str(number).encode() for number in range(1, 6)})
    rows = Content.objects.in_workspace(workspace)
    stored = sorted(rows.values_list("digest", flat=True))
    for wanted in (stored, stored[:1], stored[1:3], ["f" * 64], [stored[0], "f" * 64]):
        found = rows.filter(digest__in_joined=",".join(wanted)).values_list("digest", flat=True)
        assert sorted(found) == sorted(set(wanted) & set(stored))


def test_joined_integers_find_the_same_rows_as_a_list(workspace, elsewhere):
    agents = [make_agent(workspace, f"agent-{number}") for number in range(3)]
    other = make_agent(elsewhere, "other")
    for agent in agents:
        make_memory(workspace, f"Fact of {agent.slug}", agent=agent)
    ids = [agent.pk for agent in agents]
    for wanted in (ids, ids[:1], [ids[0], 10**12], [other.pk], [10**12]):
        joined = ",".join(map(str, wanted))
        rows = Agent.objects.in_workspace(workspace).filter(pk__in_joined=joined)
        assert {row.pk for row in rows} == set(wanted) & set(ids)
        memories = Memory.objects.in_workspace(workspace).filter(agent__in_joined=joined)
        assert {row.agent_id for row in memories} == set(wanted) & set(ids)
