"""R9 at full size: a ledger of 100,000 rows is verified within 30 seconds."""

import pytest

from benches.history import extend_history
from prompts.evidence.integrity.checkpoint_signer import sign_checkpoint
from prompts.evidence.integrity.verify import verify_workspace
from prompts.models import AgentPrompt
from prompts.publishing.builds.services import rebuild_agents
from tests.factories import make_agent, make_channel
from tests.prompts.serving.serving_stage import make_stage

ROWS, VERSIONS, SECONDS = 100_000, 500, 30.0


@pytest.mark.hard
@pytest.mark.promise("R9")
@pytest.mark.django_db
def test_a_hundred_thousand_rows_are_verified_in_half_a_minute(
    workspace, settings, tmp_path, record_property
):
    settings.DRAMATIS_CHECKPOINT_DIR = tmp_path
    stage = make_stage(workspace)
    mate = make_agent(workspace, "mate", channels=[make_channel(workspace, "bridge")])
    rebuild_agents(workspace, [mate.pk])
    spared = AgentPrompt.objects.in_workspace(workspace).get(agent=stage.agent)
    extend_history(workspace, spared, ROWS, VERSIONS)
    sign_checkpoint(workspace.pk)
    result = verify_workspace(workspace)
    record_property("measured", f"{result.checked:,} rows verified in {result.seconds:.1f} s")
    assert result.first is None
    assert result.checked >= ROWS
    assert result.seconds <= SECONDS
