"""Outdated bots by day: from the last fetch of each bot and the moves of its label."""

from datetime import datetime, timedelta
from typing import Any

import pytest
import time_machine
from django.utils import timezone

from personas.api_keys.services import create_key
from personas.records.services import edit_record
from prompts.evidence.ledger.outdated_history import HISTORY_DAYS, count_outdated_by_day
from prompts.models import AgentPrompt, LedgerEntry
from tests.factories import BY, make_agent, make_channel, make_soul

pytestmark = pytest.mark.django_db(transaction=True)


def noon(days_ago: int) -> datetime:
    return timezone.now().replace(hour=12, minute=0, second=0) - timedelta(days=days_ago)


def fetch(prompt: AgentPrompt, key: Any, at: datetime) -> None:
    prompt.refresh_from_db()
    LedgerEntry(
        workspace_id=prompt.workspace_id,
        key=key,
        reader_label="bot",
        prompt=prompt,
        label="production",
        version=prompt.latest,
        slots={},
        served_digest="0" * 64,
        size=1,
        status=200,
        request_id="r",
        at=at,
        seal="0" * 64,
    ).save()


@pytest.fixture
def prompt(workspace) -> AgentPrompt:
    """A prompt with a second version since five days; a bot got the first, and two days later the second."""
    with time_machine.travel(noon(9), tick=True):
        soul = make_soul(workspace, text="Be brave.")
        agent = make_agent(workspace, "pilot", soul=soul, channels=[make_channel(workspace, "deck")])
        key = create_key(workspace, "Bot", {}, by=BY)[0]
    prompt = AgentPrompt.unscoped.get(agent=agent)
    fetch(prompt, key, noon(8))
    with time_machine.travel(noon(5), tick=True):
        edit_record(soul, {"text": "Be calm."}, expected=1, by=BY)
    fetch(prompt, key, noon(3))
    return prompt


def test_a_bot_is_outdated_from_the_move_to_its_next_fetch(workspace, prompt):
    history = count_outdated_by_day(workspace)
    assert len(history.days) == HISTORY_DAYS
    by_age = {HISTORY_DAYS - 1 - index: count for index, count in enumerate(history.counts)}
    assert [age for age, count in sorted(by_age.items()) if count] == [4, 5]
    assert history.highest == 1


def test_the_page_draws_the_days_and_has_a_table(as_alice, workspace, prompt):
    page = as_alice.get(f"/w/{workspace.slug}/ledger/outdated/")
    assert 'hx-get="?history=1"' in page.content.decode()
    for headers in ({}, {"HX-Request": "true"}):
        html = as_alice.get(
            f"/w/{workspace.slug}/ledger/outdated/?history=1", headers=headers
        ).content.decode()
        assert (
            'role="img" aria-label="Outdated bots by day: 0 today, a maximum of 1 in the last 14 days"'
            in html
        )
        assert html.count("<rect") == HISTORY_DAYS
        assert html.count('<th scope="row">') == HISTORY_DAYS
        assert "style=" not in html


def test_without_outdated_bots_the_page_says_so(as_alice, workspace):
    html = as_alice.get(f"/w/{workspace.slug}/ledger/outdated/?history=1").content.decode()
    assert "No bots were outdated at the end of any day in the last 14 days." in html


def test_the_number_of_queries_does_not_grow(workspace, prompt, django_assert_max_num_queries):
    for number in range(5):
        key = create_key(workspace, f"Bot {number}", {}, by=BY)[0]
        fetch(prompt, key, noon(1))
    with django_assert_max_num_queries(4):
        count_outdated_by_day(workspace)
