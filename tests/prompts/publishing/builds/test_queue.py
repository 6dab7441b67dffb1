"""Pending builds are sent to the workers a few batches of each workspace at a time."""

from datetime import timedelta

import pytest
import time_machine
from django.utils import timezone

from core.task_queue import breaker
from prompts import tasks
from prompts.models import BuildCause
from prompts.publishing.builds.causes import request_rebuild
from prompts.publishing.builds.queue import SEND_TIMEOUT, list_batches_to_send, send_pending_builds
from prompts.publishing.builds.sweep import GRACE_PERIOD
from tests.factories import BY, make_agent, make_channel, make_workspace

pytestmark = pytest.mark.django_db
JOBS, BATCH = 2, 3


class BuildQueue:
    """The messages in the order in which the broker would deliver them."""

    def __init__(self) -> None:
        self.messages: list[tuple[int, list[int]]] = []

    def send(self, workspace_id, agent_ids) -> bool:
        self.messages.append((workspace_id, agent_ids))
        return True

    def run_next(self) -> int:
        """Run the oldest message as the worker does; return its workspace."""
        workspace_id, agent_ids = self.messages.pop(0)
        tasks.rebuild_prompts_job(workspace_id, agent_ids)
        return workspace_id


@pytest.fixture
def queue(settings, monkeypatch) -> BuildQueue:
    settings.DRAMATIS_WORKSPACE_JOBS, settings.DRAMATIS_BUILD_BATCH = JOBS, BATCH
    settings.DRAMATIS_WORKSPACES_PER_PERSON = 0
    queue = BuildQueue()
    monkeypatch.setattr(tasks, "enqueue_job", lambda job, *arguments: queue.send(*arguments))
    return queue


def request_builds(workspace, count) -> list[int]:
    channel = make_channel(workspace, "deck")
    ids = [make_agent(workspace, f"mate-{number}", channels=[channel]).pk for number in range(count)]
    BuildCause.objects.in_workspace(workspace).delete()
    request_rebuild(workspace, ids, by=BY)
    return ids


@pytest.mark.slow
def test_a_workspace_has_a_few_batches_in_the_queue_however_often_it_asks(workspace, queue):
    ids = request_builds(workspace, 10)
    for _ in range(5):
        tasks.enqueue_rebuilds(workspace.pk)
    assert queue.messages == [(workspace.pk, ids[0:3]), (workspace.pk, ids[3:6])]


@pytest.mark.slow
def test_each_finished_batch_sends_the_next_until_all_are_built(workspace, queue):
    request_builds(workspace, 10)
    tasks.enqueue_rebuilds(workspace.pk)
    while queue.messages:
        queue.run_next()
        assert len(queue.messages) <= JOBS
    assert not BuildCause.unscoped.exists()


@pytest.mark.slow
def test_a_small_change_of_another_workspace_is_built_before_the_flood_ends(workspace, elsewhere, queue):
    request_builds(workspace, 12)
    tasks.enqueue_rebuilds(workspace.pk)
    request_builds(elsewhere, 1)
    tasks.enqueue_rebuilds(elsewhere.pk)
    order = []
    while queue.messages:
        order.append(queue.run_next())
    assert order == [workspace.pk] * JOBS + [elsewhere.pk] + [workspace.pk] * 2


@pytest.mark.slow
@pytest.mark.planted
def test_without_the_limit_the_other_workspace_waits_for_all(workspace, elsewhere, queue, settings):
    settings.DRAMATIS_WORKSPACE_JOBS = 1_000
    test = test_a_small_change_of_another_workspace_is_built_before_the_flood_ends
    with pytest.raises(AssertionError):
        test(workspace, elsewhere, queue)


def test_many_workspaces_of_one_person_get_the_share_of_one(workspace, elsewhere, alice, queue):
    own = [workspace, *(make_workspace(f"Quay {number}", owner=alice) for number in range(7))]
    for one in own:
        request_builds(one, 4)
        tasks.enqueue_rebuilds(one.pk)
    assert len(queue.messages) == JOBS
    request_builds(elsewhere, 1)
    tasks.enqueue_rebuilds(elsewhere.pk)
    order = []
    while queue.messages:
        assert len(queue.messages) <= JOBS + 1
        order.append(queue.run_next())
    assert order.index(elsewhere.pk) == JOBS
    assert not BuildCause.unscoped.exists()


def test_a_large_change_does_not_delay_a_small_one_of_the_same_person(workspace, alice, queue):
    other = make_workspace("Quay", owner=alice)
    request_builds(workspace, 18)
    tasks.enqueue_rebuilds(workspace.pk)
    request_builds(other, 1)
    tasks.enqueue_rebuilds(other.pk)
    assert len(queue.messages) == JOBS
    order = []
    while queue.messages:
        order.append(queue.run_next())
    assert order.index(other.pk) == JOBS
    assert not BuildCause.unscoped.exists()


@pytest.mark.planted
def test_a_share_per_workspace_is_found(workspace, elsewhere, alice, queue, monkeypatch):
    monkeypatch.setattr(
        "prompts.publishing.builds.queue.list_workspaces_of_person", lambda workspace_id: [workspace_id]
    )
    test = test_many_workspaces_of_one_person_get_the_share_of_one
    with pytest.raises(AssertionError):
        test(workspace, elsewhere, alice, queue)


def test_a_lost_message_is_sent_again_by_the_sweep(workspace, queue):
    ids = request_builds(workspace, 2)
    tasks.enqueue_rebuilds(workspace.pk)
    queue.messages.clear()
    with time_machine.travel(timezone.now() + SEND_TIMEOUT - timedelta(seconds=1)):
        tasks.sweep_prompts_job()
        assert queue.messages == []
    with time_machine.travel(timezone.now() + SEND_TIMEOUT + GRACE_PERIOD):
        tasks.sweep_prompts_job()
    assert queue.messages == [(workspace.pk, ids)]


def test_what_the_broker_does_not_accept_stays_unsent(workspace, settings):
    ids = request_builds(workspace, 2)
    send_pending_builds(workspace.pk, lambda *_: False)
    assert list_batches_to_send(workspace.pk, timezone.now()) == [(workspace.pk, ids)]


def test_an_agent_changed_while_its_build_runs_is_sent_again(workspace, queue):
    [agent] = request_builds(workspace, 1)
    tasks.enqueue_rebuilds(workspace.pk)
    request_rebuild(workspace, [agent], by=BY)
    tasks.enqueue_rebuilds(workspace.pk)
    assert queue.messages == [(workspace.pk, [agent])] * 2


def test_a_failed_build_is_not_retried_at_once(workspace, queue, monkeypatch):
    request_builds(workspace, 1)
    tasks.enqueue_rebuilds(workspace.pk)
    monkeypatch.setattr(tasks, "rebuild_agents", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        queue.run_next()
    assert queue.messages == []
    assert breaker.failures == 0
