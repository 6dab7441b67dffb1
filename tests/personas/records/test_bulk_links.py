"""bulk_create checks that no foreign key points to another workspace, with few queries."""

import pytest

from personas.tenancy.models import CrossWorkspaceLink
from prompts.models import BuildCause
from tests.factories import make_agent

pytestmark = pytest.mark.django_db


def test_bulk_create_checks_all_links_with_one_query(workspace, django_assert_num_queries):
    agents = [make_agent(workspace, f"hand-{number}") for number in range(6)]
    causes = [BuildCause(workspace=workspace, agent_id=agent.pk, cause={}) for agent in agents]
    with django_assert_num_queries(2):
        BuildCause.objects.in_workspace(workspace).bulk_create(causes)


@pytest.mark.planted
def test_bulk_create_refuses_one_foreign_link(workspace, elsewhere):
    agents = [make_agent(workspace, "hand"), make_agent(elsewhere, "stranger")]
    causes = [BuildCause(workspace=workspace, agent_id=agent.pk, cause={}) for agent in agents]
    with pytest.raises(CrossWorkspaceLink):
        BuildCause.objects.in_workspace(workspace).bulk_create(causes)


def test_bulk_create_refuses_a_link_to_a_missing_row(workspace):
    causes = [BuildCause(workspace=workspace, agent_id=number, cause={}) for number in (1, 2**40)]
    with pytest.raises(CrossWorkspaceLink):
        BuildCause.objects.in_workspace(workspace).bulk_create(causes)
