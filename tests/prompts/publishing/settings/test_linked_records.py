"""Identities, souls and profiles that prompt settings choose: edits rebuild, and archiving is refused."""

from typing import Any

import pytest

from personas.errors import RecordInUse
from personas.records.services import archive_record, edit_record
from prompts.models import PromptVersion
from prompts.publishing.preview.drafts import list_current_agents
from prompts.publishing.settings.services import put_settings
from prompts.publishing.versions.selectors import get_version_text
from tests.factories import BY, make_agent, make_channel, make_soul

pytestmark = pytest.mark.django_db


def latest_text(workspace) -> str:
    return get_version_text(PromptVersion.objects.in_workspace(workspace).latest("pk"))


@pytest.mark.parametrize("level", ["workspace", "channel", "prompt"])
def test_an_edit_of_a_record_that_only_settings_choose_rebuilds_the_prompts(
    workspace, level, django_capture_on_commit_callbacks
):
    channel = make_channel(workspace, "deck")
    agent = make_agent(workspace, "pilot", channels=[channel])
    soul = make_soul(workspace, text="Be brave.")
    place: dict[str, Any] = {
        "workspace": {},
        "channel": {"channel": channel},
        "prompt": {"agent": agent, "channel": channel},
    }
    with django_capture_on_commit_callbacks(execute=True):
        put_settings(workspace, {"soul": soul}, expected=0, by=BY, **place[level])
    assert "Be brave." in latest_text(workspace)
    with django_capture_on_commit_callbacks(execute=True):
        edit_record(soul, {"text": "Be wise."}, expected=soul.revision, by=BY)
    assert "Be wise." in latest_text(workspace)
    assert agent.pk in list_current_agents(soul)
    with pytest.raises(RecordInUse):
        archive_record(soul, by=BY)
