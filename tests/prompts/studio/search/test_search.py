"""Palette search: records, versions, releases and members of one workspace, bounded and ranked."""

from datetime import timedelta

import pytest
from django.utils import timezone

from personas.models import Agent, ApiKey
from personas.records.services import archive_record
from personas.roles import Role
from prompts.models import AgentPrompt, PromptVersion
from prompts.studio.search.search import MAX_PER_KIND, MAX_RESULTS, search_versions
from tests.factories import (
    BY,
    join,
    make_agent,
    make_channel,
    make_memory,
    make_skill,
    make_soul,
    make_task,
    signed_in,
)
from tests.shared_cast import (  # noqa: F401  # fixtures
    SharedCast,
    shared_alice,
    shared_as_alice,
    shared_as_bob,
    shared_as_mallory,
    shared_bob,
    shared_cast,
    shared_elsewhere,
    shared_mallory,
    shared_stage,
    shared_workspace,
)

pytestmark = [pytest.mark.django_db, pytest.mark.slow]


def set_stage(shared: SharedCast) -> None:
    """One agent on one channel."""
    workspace = shared.workspace
    make_agent(workspace, "keeper", name="Lamp keeper", channels=[make_channel(workspace, "deck")])


def find(client, workspace, query):
    response = client.get(f"/w/{workspace.slug}/find/", {"q": query})
    assert response.status_code == 200
    return response.json()["results"]


def labels(results):
    return [result["label"] for result in results if result["group"] != "Actions"]


def test_records_of_many_kinds_are_found_by_every_word(as_bob, workspace):
    make_soul(workspace, "Lamp light")
    make_memory(workspace, "The lamp is lit at dusk.")
    make_memory(workspace, f"{'Far ' * 40}beyond the reef.")
    make_task(workspace, "Polish the lamp")
    make_skill(workspace, "lamp-oil")
    results = find(as_bob, workspace, "lamp")
    assert [result["group"] for result in results if result["group"] != "Actions"] == [
        "Agents",
        "Souls",
        "Memories",
        "Tasks",
        "Skills",
    ]
    assert labels(find(as_bob, workspace, "reef"))[0].endswith("…")
    assert labels(find(as_bob, workspace, "dusk LAMP")) == ["The lamp is lit at dusk."]
    for result in results:
        assert as_bob.head(result["url"]).status_code == 200, result


def test_prefix_matches_come_first_and_archived_records_last(as_bob, workspace):
    for name in ("Old pilot", "Pilot", "Pilot of old"):
        make_agent(workspace, name.lower().replace(" ", "-"), name=name)
    archived = make_agent(workspace, "pilotless", name="Pilotless")
    archive_record(archived, by=BY)
    results = find(as_bob, workspace, "pilot")
    assert labels(results) == ["Pilot", "Pilot of old", "Old pilot", "Pilotless"]
    assert next(result for result in results if result["label"] == "Pilotless")["hint"] == "Archived"


def test_members_and_task_numbers_are_found(as_bob, workspace, alice):
    assert labels(find(as_bob, workspace, "alice@")) == ["Alice"]
    number = make_task(workspace, "Sort").number
    assert labels(find(as_bob, workspace, str(number)))[0] == "Sort"


def test_special_characters_are_searched_literally(as_bob, workspace):
    for query in ("", " ", "%", "_", "\\", "'; drop", "\x00", "v", "ä" * 400):
        assert find(as_bob, workspace, query) == [], query


def test_keys_are_found_only_by_members_who_manage_them(as_alice, as_bob, workspace, alice):
    make_key(workspace, alice)
    assert labels(find(as_alice, workspace, "night")) == ["Night bot"]
    assert find(as_bob, workspace, "night") == []


def make_key(workspace, alice):
    later = timezone.now() + timedelta(days=1)
    ApiKey(
        workspace=workspace,
        name="Night bot",
        prefix="drm_bot_abc",
        digest="0" * 64,
        created_by=alice,
        created_label="Alice",
        expires_at=later,
    ).save()


def test_versions_are_found_by_number_and_by_digest(as_bob, workspace):
    prompt = AgentPrompt.objects.in_workspace(workspace).get()
    version = PromptVersion.objects.in_workspace(workspace).get(prompt=prompt)
    url = f"/w/{workspace.slug}/prompts/{prompt.pk}/versions/{version.number}/"
    [version_result] = [
        result for result in find(as_bob, workspace, "keeper v1") if result["group"] == "Versions"
    ]
    assert version_result["url"] == url
    for query in ("Keeper 1", "v1", "deck v1", version.digest[:7], version.digest):
        assert [result.url for result in search_versions(workspace, query)] == [url], query
    for query in ("keeper v2", "pilot v1", "1", "v999999999", "0" * 64):
        assert not list(search_versions(workspace, query)), query


def test_many_matches_are_bounded_in_rows_and_queries(as_alice, workspace, django_assert_max_num_queries):
    for number in range(MAX_PER_KIND + 3):
        make_agent(workspace, f"lamp-{number}", name=f"Lamp {number}")
        make_memory(workspace, f"Lamp {number} is green.")
    find(as_alice, workspace, "warm")
    # Session, user and membership, then all records and the versions.
    with django_assert_max_num_queries(5):
        results = find(as_alice, workspace, "lamp 1")
    with django_assert_max_num_queries(5):
        results = find(as_alice, workspace, "lamp")
    agents = [result["label"] for result in results if result["group"] == "Agents"]
    assert len(agents) == MAX_PER_KIND + 1
    assert agents[-1] == "All matches in Agents"
    assert len(results) <= MAX_RESULTS


def test_other_workspaces_are_not_searched(as_bob, as_mallory, workspace, elsewhere):
    make_agent(elsewhere, "lamp", name="Lamp of others")
    assert labels(find(as_bob, workspace, "lamp")) == ["Lamp keeper"]
    assert as_mallory.get(f"/w/{workspace.slug}/find/", {"q": "pilot"}).status_code == 404


def test_a_viewer_finds_what_a_viewer_may_read(workspace, mallory):
    join(workspace, mallory, Role.VIEWER)
    assert Agent.objects.in_workspace(workspace).count() == 1
    assert labels(find(signed_in(mallory), workspace, "keep")) == ["Lamp keeper"]
