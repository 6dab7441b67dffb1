"""An upgrade end to end: the sweep and the workers, on committed rows."""

import pytest

from prompts.publishing.versions.selectors import get_version_text
from prompts.tasks import sweep_prompts_job
from tests.prompts.publishing.builds.upgrade_stage import latest, make_upgraded
from tests.workers import wait_for


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_workers_carry_an_upgrade_out_by_themselves(workspace, monkeypatch, celery_worker):
    upgraded = make_upgraded(workspace, monkeypatch)
    sweep_prompts_job()
    assert wait_for(lambda: "Be brave." in get_version_text(latest(upgraded)))
