"""A version with an erased record is refused by its tombstone, whatever else contains the same text."""

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest
from django.utils import timezone

from personas.models import Agent
from personas.records.services import archive_record, edit_record
from prompts.assembly.layouts import LAYOUTS
from prompts.evidence.erasure import services
from prompts.evidence.replay.evidence import build_evidence, run_evidence_checks
from prompts.evidence.replay.services import replay_entry
from prompts.models import AgentPrompt, PromptLabel, PromptVersion
from prompts.publishing.builds import services as builds
from prompts.publishing.versions.selectors import list_tombstoned_digests, load_version_texts
from prompts.serving import cache
from prompts.serving.cache import PROCESS_CACHE
from tests.api_client import Api
from tests.factories import BY, make_agent, make_channel, make_memory, make_profile, make_soul
from tests.prompts.evidence.erasure.guesses import find_columns_with
from tests.prompts.evidence.erasure.test_erasure import SECRET
from tests.shared_cast import (  # noqa: F401  # fixtures
    SharedCast,
    shared_alice,
    shared_as_alice,
    shared_bob,
    shared_cast,
    shared_commits,
    shared_stage,
    shared_workspace,
)

HAS_ELSEWHERE = False
pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("commits")]
CANARY = "third flowerpot"


def set_stage(shared: SharedCast) -> None:
    """Two agents that remember the same sentence. A bot has fetched it from both."""
    workspace = shared.workspace
    deck = make_channel(workspace, "deck")
    soul = make_soul(workspace, text="Be brave.")
    shared.agents = [
        make_agent(workspace, "pilot", soul=soul, channels=[deck]),
        make_agent(workspace, "cook", channels=[deck]),
    ]
    shared.memories = [make_memory(workspace, SECRET, agent=agent) for agent in shared.agents]


def get_version(agent: Agent, number: int) -> PromptVersion:
    rows = PromptVersion.objects.in_workspace(agent.workspace_id)
    return rows.select_related("prompt__agent", "prompt__channel").get(prompt__agent=agent, number=number)


def get_latest(agent: Agent) -> PromptVersion:
    rows = AgentPrompt.objects.in_workspace(agent.workspace_id)
    latest = rows.get(agent=agent).latest
    assert latest is not None
    return latest


def fetch(bot: Api, agent: str = "pilot", query: str = "") -> Any:
    return bot.get(f"agents/{agent}/channels/deck/prompt{query}")


def erase(admin: Api, memory: Any, **more: Any) -> dict[str, Any]:
    body = {"kind": memory.kind, "record": memory.pk, "reason": "She asked for it.", **more}
    response = admin.post("erasures", body)
    assert response.status_code == 201, response.content
    result: dict[str, Any] = response.json()
    return result


def format_time(at: datetime) -> str:
    return at.isoformat().replace("+00:00", "Z")


def assert_refused(response: Any) -> None:
    assert (response.status_code, response.json()["code"]) == (410, "erased"), response.content[:300]
    assert "erased" in response.json()["detail"]
    assert CANARY.encode() not in response.content


def forget_served() -> None:
    """Empty the caches, as a restart of the process does."""
    PROCESS_CACHE.versions.clear()
    PROCESS_CACHE.resolutions.clear()


def test_a_version_with_an_erased_record_is_refused_although_another_record_has_its_text(stage, bot, admin):
    assert CANARY in fetch(bot, query="?version=2").content.decode()
    before = timezone.now()
    erase(admin, stage.memories[0])
    assert_refused(fetch(bot, query="?version=2"))
    assert_refused(fetch(bot, query=f"?at={format_time(before)}"))
    archive_record(stage.memories[1], by=BY)
    assert_refused(fetch(bot, query="?version=2"))
    forget_served()
    assert_refused(fetch(bot, query="?version=2"))


def test_the_other_agent_is_served_what_its_own_record_says(stage, bot, admin):
    before = fetch(bot, "cook").json()
    erase(admin, stage.memories[0])
    assert CANARY not in fetch(bot).content.decode()
    assert fetch(bot).json()["version"] == 3
    after = fetch(bot, "cook").json()
    assert (after["text"], after["digest"]) == (before["text"], before["digest"])
    assert CANARY in after["text"]


def test_an_older_version_of_the_other_agent_is_still_served(stage, bot, admin):
    """Erasure goes by record: version 2 of the cook does not contain the erased one."""
    archive_record(stage.memories[1], by=BY)
    assert fetch(bot, "cook").json()["version"] == 3
    erase(admin, stage.memories[0])
    assert CANARY in fetch(bot, "cook", "?version=2").content.decode()


def list_reads(stage, bot: Api, admin: Api, entry: int, before: datetime) -> Iterator[Any]:
    """Yield the response of every operation of the API that returns text of version 2 of the pilot."""
    path, at = "agents/pilot/channels/deck", format_time(before)
    version, first = get_version(stage.agents[0], 2), get_version(stage.agents[0], 1)
    yield fetch(bot, query="?version=2")
    yield fetch(bot, query=f"?at={at}")
    yield fetch(bot, query=f"?at={at}&version=2")
    yield bot.call("HEAD", f"{path}/prompt?version=2")
    yield bot.get(f"{path}/prompt?version=2", If_None_Match=f'W/"{version.digest}"')
    yield bot.get(f"{path}/prompt.md?version=2")
    yield admin.get(f"prompt-versions/{version.digest}")
    yield admin.get(f"prompt-versions/{version.digest}/provenance")
    yield admin.get(f"prompt-versions/{version.digest}/diff?against={first.digest}")
    yield admin.get(f"prompt-versions/{first.digest}/diff?against={version.digest}")
    yield admin.get(f"{path}/versions/2/sizes")
    yield admin.get(f"ledger/{entry}/replay")
    yield admin.get(f"replay?agent=pilot&channel=deck&at={at}")


def test_no_operation_of_the_api_returns_a_version_with_an_erased_record(stage, bot, admin):
    entry = fetch(bot, query="?version=2").json()["ledger_id"]
    before = timezone.now()
    for response in list_reads(stage, bot, admin, entry, before):
        assert response.status_code in (200, 304), (response.request, response.content[:300])
    erase(admin, stage.memories[0])
    for response in list_reads(stage, bot, admin, entry, before):
        assert response.status_code == 410, response.request
        assert CANARY.encode() not in response.getvalue()
    item = {"agent": "pilot", "channel": "deck", "at": format_time(before)}
    batch = bot.post("prompts:batchGet", {"prompts": [item]}).getvalue()
    assert (b'"status":410' in batch.replace(b" ", b""), CANARY.encode() in batch) == (True, False), batch


def test_no_page_shows_a_version_with_an_erased_record(stage, bot, admin, as_alice):
    entry = fetch(bot, query="?version=2").json()["ledger_id"]
    before = timezone.now()
    version = get_version(stage.agents[0], 2)
    start, at = f"/w/{stage.workspace.slug}", before.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    prompt, moment = f"{start}/prompts/{version.prompt_id}", f"prompts/{version.prompt_id}/production/{at}"
    paths = {
        f"{prompt}/versions/2/": 200,
        f"{prompt}/versions/2/?lockfile": 200,
        f"{prompt}/versions/2/peek/": 200,
        f"{prompt}/versions/3/peek/": 200,
        f"{prompt}/versions/2/text/": 410,
        f"{prompt}/versions/2/json/": 410,
        f"{prompt}/diff/1/2/": 200,
        f"{prompt}/diff/2/3/?show=all": 200,
        f"{start}/time-machine/fetches/{entry}/": 200,
        f"{start}/time-machine/fetches/{entry}/text/": 410,
        f"{start}/time-machine/fetches/{entry}/evidence/": 200,
        f"{start}/time-machine/{moment}/": 200,
        f"{start}/time-machine/{moment}/text/": 410,
        f"{start}/time-machine/{moment}/evidence/": 200,
        f"{start}/agents/pilot/versions/": 200,
        f"{start}/agents/pilot/": 200,
        f"{start}/comments/versions/{version.prompt_id}/2/": 200,
    }
    erase(admin, stage.memories[0])
    for path, status in paths.items():
        page = as_alice.get(path)
        assert (path, page.status_code) == (path, status)
        assert CANARY.encode() not in page.content, path


def test_the_evidence_of_a_fetch_has_neither_text_nor_salt_of_the_erased_record(stage, bot, admin):
    entry = fetch(bot, query="?version=2").json()["ledger_id"]
    erase(admin, stage.memories[0])
    bundle = build_evidence(replay_entry(stage.workspace, entry))
    assert CANARY not in json.dumps(bundle)
    version = get_version(stage.agents[0], 2)
    [hidden] = list_tombstoned_digests(version.workspace_id, [version.segments])
    assert hidden
    assert not hidden & set(bundle["salts"])
    assert {check.state for check in run_evidence_checks(bundle, None)} <= {"ok", "absent"}
    assert admin.get(f"prompt-versions/{version.digest}/verify").json()["is_valid"]


def test_labels_do_not_move_to_a_version_with_an_erased_record(stage, bot, admin, as_alice):
    erase(admin, stage.memories[0])
    version = get_version(stage.agents[0], 2)
    labels, page = (
        "agents/pilot/channels/deck/labels",
        f"/w/{stage.workspace.slug}/prompts/{version.prompt_id}",
    )
    refused = [
        admin.call("PUT", f"{labels}/canary", {"version": 2, "expected": None}),
        admin.call("PUT", f"{labels}/canary", {"version": version.digest, "expected": None}),
        admin.post(f"{labels}/production:rollback", {"note": "Back.", "to": 2}),
        admin.post(f"{labels}/production:rollback", {"note": "Back."}),
        as_alice.post(f"{page}/roll-back/", {"to": 2, "note": "Back."}),
        as_alice.post(f"{page}/versions/2/label/", {"label": "canary", "note": ""}),
    ]
    for response in refused[:4]:
        assert (response.status_code, "erased text" in response.content.decode()) == (422, True)
    for response in refused[4:]:
        assert response.status_code in (302, 422)
    names = PromptLabel.objects.in_workspace(stage.workspace).filter(version=version)
    assert not names.exists()


# --- sequences -----------------------------------------------------------------------------------------


def test_the_same_text_typed_again_is_served_and_the_old_version_is_not(stage, bot, admin):
    erase(admin, stage.memories[0])
    make_memory(stage.workspace, SECRET, agent=stage.agents[0])
    served = fetch(bot).json()
    assert (served["version"], CANARY in served["text"]) == (4, True)
    assert_refused(fetch(bot, query="?version=2"))
    # Both versions have the same digest, because another agent kept the content. One of them is readable.
    assert get_version(stage.agents[0], 2).digest == served["digest"]
    body = admin.get(f"prompt-versions/{served['digest']}").json()
    assert (CANARY in body["text"], body["first"]["version"]) == (True, 4)


@pytest.mark.parametrize("count", [1, 2, 5])
def test_each_of_several_records_is_erased_in_turn(stage, bot, admin, count):
    extra = [make_memory(stage.workspace, SECRET, agent=stage.agents[0]) for _ in range(max(0, count - 2))]
    records = [*stage.memories[:count], *extra]
    if count == 1:
        archive_record(stage.memories[1], by=BY)
        records = stage.memories
    for record in records:
        last = get_latest(stage.agents[0]).number
        tombstoned = [
            number for number in range(1, last + 1) if CANARY in stored_text(stage.agents[0], number)
        ]
        erase(admin, record)
        gone = [number for number in tombstoned if CANARY not in stored_text(stage.agents[0], number)]
        for number in gone:
            assert_refused(fetch(bot, query=f"?version={number}"))
        text = fetch(bot).json()["text"]
        left = [one for one in records[records.index(record) + 1 :] if one.agent_id == stage.agents[0].pk]
        assert text.count(CANARY) == len(left)
    assert find_columns_with(CANARY) == []


def stored_text(agent: Agent, number: int) -> str:
    version = get_version(agent, number)
    return load_version_texts(agent.workspace_id, [version.pk])[version.pk]


def test_a_version_with_both_records_is_rebuilt_with_the_other_one(stage, bot, admin):
    twin = make_memory(stage.workspace, SECRET, agent=stage.agents[0])
    assert fetch(bot).json()["text"].count(CANARY) == 2
    erase(admin, stage.memories[0])
    served = fetch(bot).json()
    assert (served["version"], served["text"].count(CANARY)) == (4, 1)
    assert_refused(fetch(bot, query="?version=2"))
    assert_refused(fetch(bot, query="?version=3"))
    erase(admin, twin)
    assert CANARY not in fetch(bot).json()["text"]
    assert_refused(fetch(bot, query="?version=4"))


def test_a_memory_and_a_user_profile_with_the_same_text(stage, bot, admin):
    profile = make_profile(stage.workspace, "Guest", display_name="", notes=SECRET)
    agent = stage.agents[0]
    edit_record(agent, {"user_profile": profile}, expected=agent.revision, by=BY)
    assert fetch(bot).json()["text"].count(CANARY) == 2
    erase(admin, stage.memories[0])
    assert fetch(bot).json()["text"].count(CANARY) == 1
    erase(admin, profile)
    assert fetch(bot).json()["text"].count(CANARY) == 0
    for number in (2, 3, 4):
        assert_refused(fetch(bot, query=f"?version={number}"))
    assert CANARY in fetch(bot, "cook").json()["text"]


def test_a_record_whose_text_contains_that_of_the_erased_one_is_still_served(stage, bot, admin):
    longer = make_memory(stage.workspace, f"{SECRET} And she likes tea.", agent=stage.agents[0])
    erase(admin, stage.memories[0])
    served = fetch(bot).json()
    assert (served["version"], served["text"].count(CANARY)) == (4, 1)
    assert_refused(fetch(bot, query="?version=3"))
    erase(admin, longer)
    assert CANARY not in fetch(bot).json()["text"]


def test_an_erasure_while_a_build_waits_gives_a_new_version(stage, bot, admin):
    """The waiting build has the text of the erased record from another one, so its digest is the same."""
    agent = stage.agents[0]
    archive_record(stage.memories[1], by=BY)
    other = make_memory(stage.workspace, SECRET, agent=stage.agents[1])
    other.agent = agent
    other.save()
    erase(admin, stage.memories[0])
    served = fetch(bot).json()
    assert (served["version"], served["text"].count(CANARY)) == (3, 1)
    assert served["digest"] == get_version(agent, 2).digest
    assert_refused(fetch(bot, query="?version=2"))


def test_a_worker_rebuilds_many_prompts_and_labels_wait_with_410(stage, bot, admin, settings):
    settings.DRAMATIS_BUILD_AT_ONCE = 0
    body = {"kind": "memory", "record": stage.memories[0].pk, "reason": "She asked for it."}
    response = admin.post("erasures", body)
    assert response.status_code == 202
    key = response.json()["id"]
    if admin.get(f"erasures/{key}").json()["status"] == "rebuilding":
        assert_refused(fetch(bot))
        render = "agents/pilot/channels/deck/prompt:render"
        assert_refused(bot.post(render, {"append": "Be brief."}))
        assert_refused(bot.post(render, {"limits": {"total": 100_000}}))
        services.finish_erasure(stage.workspace, key)
    assert CANARY not in fetch(bot).json()["text"]
    assert_refused(fetch(bot, query="?version=2"))


def test_a_retried_erasure_changes_nothing(stage, bot, admin):
    body = {"kind": "memory", "record": stage.memories[0].pk, "reason": "She asked for it."}
    first = admin.post("erasures", body, Idempotency_Key="once")
    again = admin.post("erasures", body, Idempotency_Key="once")
    other = admin.post("erasures", body)
    assert (first.status_code, again.content, other.json()["id"]) == (201, first.content, first.json()["id"])
    assert_refused(fetch(bot, query="?version=2"))
    assert fetch(bot).json()["version"] == 3


@pytest.mark.parametrize("layout", sorted(LAYOUTS))
def test_in_every_layout_the_latest_version_is_served_after_an_erasure(workspace, bot, admin, layout):
    values = {
        "display_name": "Rosamund Penhaligon",
        "location": "Bay Street",
        "notes": SECRET,
        "timezone": "Europe/Oslo",
    }
    profile = make_profile(workspace, "Guest", **values)
    make_profile(workspace, "Twin", **values)
    channels = [make_channel(workspace, "deck-two")]
    make_agent(workspace, "host", layout=layout, user_profile=profile, channels=channels)
    make_memory(workspace, SECRET)
    erase(admin, profile)
    response = bot.get("agents/host/channels/deck-two/prompt")
    assert (response.status_code, "Rosamund" in response.content.decode()) == (200, False)


# --- planted fault -------------------------------------------------------------------------------------


@pytest.mark.planted
def test_a_version_refused_only_for_missing_content_is_detected(stage, bot, admin, monkeypatch):
    """The former behaviour: contents that another version shares keep the tombstoned version readable."""
    monkeypatch.setattr(cache, "find_tombstones", lambda *_: {})
    erase(admin, stage.memories[0])
    with pytest.raises((AssertionError, KeyError)):
        assert_refused(fetch(bot, query="?version=2"))


@pytest.mark.planted
def test_a_build_that_keeps_a_version_with_an_erased_record_is_detected(stage, bot, admin, monkeypatch):
    monkeypatch.setattr(builds, "list_erased_versions", lambda *_: set())
    with pytest.raises(KeyError):
        test_an_erasure_while_a_build_waits_gives_a_new_version(stage, bot, admin)
