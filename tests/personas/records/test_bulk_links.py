"""Many rows written at once: none may point into another workspace, and few questions find that out."""

import pytest

from personas.tenancy.models import CrossWorkspaceLink
from prompts.models import BuildCause
from tests.factories import make_agent

pytestmark = pytest.mark.django_db


def test_rows_written_together_ask_once_where_their_links_lead(workspace, django_assert_num_queries):
    agents = [make_agent(workspace, f"hand-{number}") for number in range(6)]
    causes = [BuildCause(workspace=workspace, agent_id=agent.pk, cause={}) for agent in agents]
    with django_assert_num_queries(2):
        BuildCause.objects.in_workspace(workspace).bulk_create(causes)


@pytest.mark.planted
def test_one_foreign_link_among_rows_written_together_is_found(workspace, elsewhere):
    agents = [make_agent(workspace, "hand"), make_agent(elsewhere, "stranger")]
    causes = [BuildCause(workspace=workspace, agent_id=agent.pk, cause={}) for agent in agents]
    with pytest.raises(CrossWorkspaceLink):
        BuildCause.objects.in_workspace(workspace).bulk_create(causes)


def test_a_link_to_nothing_is_refused_among_rows_written_together(workspace):
    causes = [BuildCause(workspace=workspace, agent_id=number, cause={}) for number in (1, 2**40)]
    with pytest.raises(CrossWorkspaceLink):
        BuildCause.objects.in_workspace(workspace).bulk_create(causes)
