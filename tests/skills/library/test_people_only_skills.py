"""A skill that only people can start: both tabs of the agent say that prompts do not list it."""

import pytest

from tests.factories import make_agent, make_skill

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("layout", "reason"),
    [("dramatis", "Only people can start this skill"), ("opal", ""), ("nova", "Not used by the nova layout")],
)
def test_both_tabs_agree(as_alice, workspace, layout, reason):
    agent = make_agent(workspace, "pilot", layout=layout)
    make_skill(workspace, "recall", agents=[agent], disable_model_invocation=True)
    for tab in ("skills", "context"):
        page = as_alice.get(f"/w/{workspace.slug}/agents/pilot/{tab}/").content.decode()
        row = page.partition(">recall<")[2].partition("</tr>")[0]
        if reason:
            assert reason in row, tab
            assert ">Yes<" not in row, tab
        else:
            assert ">Yes<" in row, tab


def test_a_skill_that_models_choose_is_listed(as_alice, workspace):
    agent = make_agent(workspace, "pilot")
    make_skill(workspace, "knots", agents=[agent])
    page = as_alice.get(f"/w/{workspace.slug}/agents/pilot/context/").content.decode()
    assert ">Yes<" in page.partition(">knots<")[2].partition("</tr>")[0]
