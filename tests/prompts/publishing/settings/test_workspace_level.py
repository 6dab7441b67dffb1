"""The settings of the workspace have no level to inherit from."""

import pytest

from tests.factories import make_agent

pytestmark = pytest.mark.django_db


def test_the_empty_choice_is_called_default(as_alice, workspace):
    make_agent(workspace, "pilot")
    page = as_alice.get(f"/w/{workspace.slug}/prompt-settings/workspace/").content.decode()
    main = page.partition("<main")[2].partition("</main>")[0]
    assert "Inherited" not in main
    assert "---------" not in main
    assert main.count('<option value="" selected>Default</option>') >= 5
    agent = as_alice.get(f"/w/{workspace.slug}/prompt-settings/agents/pilot/").content.decode()
    assert "Inherited" in agent
