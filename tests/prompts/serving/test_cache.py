"""The serving cache: a cached version never returns the text of another call."""

from datetime import UTC, datetime
from sys import getsizeof

import pytest

from personas.actors import Actor
from personas.api_keys.format import ADMIN
from personas.api_keys.services import create_key
from personas.models import Channel, Membership, User
from prompts.assembly.slots import Slots
from prompts.publishing.builds.services import rebuild_agents
from prompts.serving.cache import CachedVersion, ServingCache, get_version_size
from prompts.serving.errors import InvalidKey
from prompts.serving.slot_values import build_clock_slots, fill_clock, normalize_slots
from tests.factories import make_agent
from tests.prompts.served_digests import is_recorded
from tests.prompts.serving.serving_stage import Stage, fetch, make_stage

SUMMER, WINTER = datetime(2026, 7, 1, 9, 5, tzinfo=UTC), datetime(2026, 1, 1, 9, 5, 5, 250, tzinfo=UTC)


@pytest.fixture
def stage(workspace) -> Stage:
    return make_stage(workspace)


def make_talker(workspace, slug: str, instructions: str) -> None:
    channels = list(Channel.objects.in_workspace(workspace).filter(slug="deck"))
    agent = make_agent(workspace, slug, instructions=instructions, channels=channels)
    rebuild_agents(workspace, [agent.pk])


@pytest.mark.parametrize(
    "zone", ["", "UTC", "Europe/Lisbon", "Asia/Kathmandu", "America/Sao_Paulo", "No/Where"]
)
def test_clock_slots_equal_normalized_slots(zone):
    for now in (SUMMER, WINTER):
        assert build_clock_slots(now, zone) == normalize_slots(fill_clock(Slots(), now, zone))


@pytest.mark.django_db
def test_calls_with_equal_slots_share_a_rendering_and_others_do_not(stage):
    version = stage.fetch().version
    calls = [Slots(now=SUMMER), Slots(now=SUMMER), Slots(now=WINTER), Slots(now=SUMMER, append="Be brief.")]
    rendered = [version.render(slots) for slots in calls]
    assert rendered[0] is rendered[1]
    assert len({prompt.text for prompt in rendered}) == 3
    assert len(version.last_rendered) == 1


@pytest.mark.django_db
def test_the_cache_of_versions_is_limited_by_their_size(workspace, monkeypatch):
    monkeypatch.setattr("prompts.serving.cache.MAX_VERSION_BYTES", 1_000_000)
    stage = make_stage(workspace)
    cache = ServingCache()
    names = [f"pilot-{number}" for number in range(12)]
    for name in names:
        make_talker(workspace, name, f"I am {name}. " + "x" * 30_000)
    sizes = []
    for name in names:
        served = fetch(stage.secret, agent=name, cache=cache)
        assert f"I am {name}." in served.text
        sizes.append(get_version_size(served.version))
    assert min(sizes) > 4 * 30_000
    assert sum(sizes) > 1_000_000
    assert cache.versions.currsize <= 1_000_000
    assert 1 < len(cache.versions) < len(names)


@pytest.mark.django_db
def test_a_version_that_is_larger_than_the_cache_is_served(workspace, monkeypatch):
    monkeypatch.setattr("prompts.serving.cache.MAX_VERSION_BYTES", 10_000)
    stage = make_stage(workspace)
    cache = ServingCache()
    make_talker(workspace, "talker", "y" * 30_000)
    for _ in range(2):
        assert "y" * 30_000 in fetch(stage.secret, agent="talker", cache=cache).text
    assert not cache.versions


@pytest.mark.django_db
def test_the_size_of_a_version_covers_what_it_keeps(stage):
    """The text, the last rendering and the inputs together need no more than the estimate."""
    version = stage.fetch(slots=Slots(append="Be brief.")).version
    rendered = version.last_rendered[0]
    kept = [rendered.text, rendered.json_start, version.tools, version.json_start]
    kept += [part.span.text for part in version.parts]
    assert sum(map(getsizeof, kept)) < get_version_size(version)


@pytest.mark.django_db
def test_each_call_gets_its_own_text(stage):
    for word in ("one", "two", "one"):
        served = stage.fetch(slots=Slots(append=f"Say {word}."))
        assert f"Say {word}." in served.text
        assert is_recorded(stage.rows[-1], served.rendered.digest)


@pytest.mark.planted
@pytest.mark.django_db
def test_a_rendering_reused_for_other_slots_is_found(stage, monkeypatch):
    real = CachedVersion.render
    monkeypatch.setattr(
        CachedVersion,
        "render",
        lambda self, slots: self.last_rendered[0] if self.last_rendered else real(self, slots),
    )
    with pytest.raises(AssertionError):
        test_each_call_gets_its_own_text(stage)


@pytest.mark.django_db
@pytest.mark.parametrize("end", ["removed", "inactive"])
def test_a_key_that_acts_for_a_user_ends_with_the_membership(stage, alice, end):
    _, secret = create_key(stage.workspace, "Script", {}, kind=ADMIN, by=Actor.person(alice))
    processes = [ServingCache(), ServingCache()]
    for process in processes:
        assert fetch(secret, cache=process).status == 200
    if end == "removed":
        Membership.objects.in_workspace(stage.workspace).filter(user=alice).delete()
    else:
        User.objects.filter(pk=alice.pk).update(is_active=False)
    for process in processes:
        with pytest.raises(InvalidKey):
            fetch(secret, cache=process)
