"""Events that a job finds every hour: bots that are outdated, and keys that expire soon."""

from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.utils import timezone

from personas.api_keys.services import create_key, revoke_key
from personas.events.selectors import list_events_after
from personas.models import Workspace
from prompts.tasks import record_hourly_events_job
from tests.factories import BY
from tests.prompts.serving.serving_stage import make_stage

pytestmark = pytest.mark.django_db


def list_data(workspace: Workspace, name: str) -> list[dict[str, Any]]:
    return [event.data for event in list_events_after(workspace, 0) if event.type == name]


def test_a_bot_that_does_not_fetch_the_new_version_is_reported_once(workspace):
    stage, now = make_stage(workspace), timezone.now()
    stage.fetch()
    stage.edit("Be careful.")
    record_hourly_events_job()
    assert list_data(workspace, "bot.outdated") == []
    with time_machine.travel(now + timedelta(hours=2)):
        record_hourly_events_job()
        record_hourly_events_job()
        [data] = list_data(workspace, "bot.outdated")
        [row] = stage.rows
        assert data == {
            "agent": "pilot",
            "channel": "deck",
            "label": "production",
            "key_id": stage.key.pk,
            "number": 1,
            "current_number": 2,
            "ledger_id": row.pk,
        }
        stage.fetch()
    with time_machine.travel(now + timedelta(hours=4)):
        record_hourly_events_job()
        assert len(list_data(workspace, "bot.outdated")) == 1


def test_a_key_that_expires_soon_is_reported_once(workspace):
    now = timezone.now()
    key, _ = create_key(workspace, "Desk", {}, now + timedelta(days=30), by=BY)
    ended, _ = create_key(workspace, "Old", {}, now + timedelta(days=30), by=BY)
    revoke_key(ended, by=BY)
    create_key(workspace, "Short", {}, now + timedelta(days=2), by=BY)
    record_hourly_events_job()
    assert list_data(workspace, "key.expiring") == []
    with time_machine.travel(now + timedelta(days=24)):
        record_hourly_events_job()
        record_hourly_events_job()
    assert [data["key_id"] for data in list_data(workspace, "key.expiring")] == [key.pk]
