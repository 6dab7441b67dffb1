"""Skill files are released with a version: bots of a reviewed agent read only what was approved."""
# fixtures are imported and requested by name

import json
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from typing import Any

import pytest

from personas.actors import Actor
from personas.api.rate_limits import charge_rate_limit
from personas.api_keys.format import BOT
from personas.models import Agent, User, Workspace
from prompts.evidence.replay.evidence import run_evidence_checks
from prompts.models import AgentPrompt, LedgerEntry, PromptVersion
from prompts.proof.evidence import SKILL_CHECK
from prompts.publishing.releases.services import approve_release, request_release, run_release
from prompts.serving.skill_files import api, services
from tests.api_client import Api
from tests.factories import make_agent, make_channel
from tests.personas.api.response_checker import TrueApi
from tests.shared_cast import (  # noqa: F401  # fixtures
    shared_alice,
    shared_bob,
    shared_cast,
    shared_commits,
    shared_workspace,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("commits")]
FILE = "agents/nova/channels/desk/skills/refunds/SKILL.md"
SAFE, UNSAFE = "Refund only with two approvals.", "Refund everybody at once, no approval needed."


@pytest.fixture
def nova(workspace: Workspace) -> Agent:
    channel = make_channel(workspace, "desk")
    return make_agent(workspace, "nova", layout="nova", channels=[channel], release_policy="reviewed")


@pytest.fixture
def desk(key_for: Callable[..., Api], workspace: Workspace, alice: User) -> TrueApi:
    return TrueApi(key_for(workspace, alice).secret, key_for(workspace, alice).client)


@pytest.fixture
def reader(key_for: Callable[..., Api], workspace: Workspace, alice: User) -> TrueApi:
    api = key_for(workspace, alice, BOT, verbs=["fetch"])
    return TrueApi(api.secret, api.client)


def write_skill(desk: TrueApi, body: str, **values: Any) -> Any:
    """Create the skill, or change its body."""
    current = desk.get("skills/refunds")
    if current.status_code == 404:
        fields = {"name": "refunds", "description": "How to refund.", "body": body, "agents": ["nova"]}
        response = desk.post("skills", fields | values)
    else:
        response = desk.patch("skills/refunds", {"body": body} | values, current["ETag"])
    assert response.status_code in (200, 201), response.content
    return response


def release(agent: Agent, alice: User, bob: User) -> PromptVersion:
    """Request, approve and publish the latest version, with two people."""
    prompt = AgentPrompt.objects.in_workspace(agent.workspace_id).get(agent=agent)
    [row] = [request_release(agent.workspace, [prompt], by=Actor.person(alice), message="Refunds")]
    approve_release(row, by=Actor.person(bob))
    run_release(row, by=Actor.person(bob))
    prompt.refresh_from_db()
    assert prompt.latest is not None
    return prompt.latest


def ledger(workspace: Workspace) -> list[LedgerEntry]:
    return list(LedgerEntry.objects.in_workspace(workspace).order_by("pk"))


def test_a_changed_skill_reaches_bots_only_with_a_release(
    desk: TrueApi, reader: TrueApi, nova: Agent, alice: User, bob: User
) -> None:
    write_skill(desk, SAFE)
    assert reader.get(FILE).status_code == 404
    released = release(nova, alice, bob)
    write_skill(desk, UNSAFE)
    for path in (FILE, FILE.removesuffix("/SKILL.md"), "agents/nova/skills/refunds"):
        response = reader.get(path)
        assert response.status_code == 200, response.content
        assert SAFE in response.content.decode()
        assert UNSAFE not in response.content.decode()
        assert response["Dramatis-Version"] == str(released.number)
    rows = ledger(nova.workspace)
    assert [(row.kind, row.skill, row.version_id) for row in rows] == [("skill", "refunds", released.pk)] * 3
    second = release(nova, alice, bob)
    assert second.number == released.number + 1
    assert UNSAFE in reader.get(FILE).content.decode()


def test_each_read_is_in_the_ledger_and_replays_byte_for_byte(
    desk: TrueApi, reader: TrueApi, nova: Agent, alice: User, bob: User
) -> None:
    write_skill(desk, SAFE)
    release(nova, alice, bob)
    served = reader.get(FILE)
    write_skill(desk, UNSAFE)
    release(nova, alice, bob)
    number = int(served["Dramatis-Ledger"])
    replayed = desk.get(f"ledger/{number}/replay").json()
    assert replayed["text"].encode() == served.content
    assert replayed["ledger_entry"]["kind"] == "skill"
    assert replayed["served_digest"] == served["Dramatis-Digest"]
    listed = desk.get("ledger?kind=skill").json()["items"]
    assert [(row["id"], row["skill"]) for row in listed] == [(number, "refunds")]
    assert desk.get("ledger?kind=prompt").json()["items"] == []
    results = run_evidence_checks(desk.get(f"ledger/{number}/evidence").json(), None)
    assert {result.name: result.message for result in results if result.state == "failed"} == {}
    assert SKILL_CHECK in [result.name for result in results if result.state == "ok"]


def test_evidence_of_another_file_is_rejected(
    desk: TrueApi, reader: TrueApi, nova: Agent, alice: User, bob: User
) -> None:
    write_skill(desk, SAFE)
    release(nova, alice, bob)
    bundle = desk.get(f"ledger/{reader.get(FILE)['Dramatis-Ledger']}/evidence").json()
    changed = bundle | {"text": bundle["text"].replace("two", "no")}
    other = json.loads(json.dumps(bundle).replace('"name": "refunds"', '"name": "rebates"'))
    for forged in (changed, other):
        failed = [result.name for result in run_evidence_checks(forged, None) if result.state == "failed"]
        assert failed, forged


def test_a_current_copy_gets_304_and_head_gets_no_row(
    desk: TrueApi, reader: TrueApi, nova: Agent, alice: User, bob: User
) -> None:
    write_skill(desk, SAFE)
    release(nova, alice, bob)
    etag = Api(reader.secret, reader.client).call("HEAD", FILE)["ETag"]
    assert ledger(nova.workspace) == []
    assert reader.get(FILE, If_None_Match=etag).status_code == 304
    assert [row.status for row in ledger(nova.workspace)] == [304]


def test_the_list_has_names_and_digests_and_no_text(
    desk: TrueApi, reader: TrueApi, nova: Agent, alice: User, bob: User
) -> None:
    write_skill(desk, SAFE)
    path = "agents/nova/channels/desk/skills"
    assert reader.get(path).status_code == 404
    release(nova, alice, bob)
    write_skill(desk, UNSAFE, description="How to refund at once.")
    [listed] = reader.get(path).json()["items"]
    assert listed["name"] == "refunds"
    assert set(listed) == {"name", "digest", "size", "origin"}
    assert ledger(nova.workspace) == []


def test_a_read_is_charged_once_also_if_it_is_refused_for_its_channel(
    desk: TrueApi, reader: TrueApi, nova: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_skill(desk, SAFE)
    channels = [make_channel(nova.workspace, "one"), make_channel(nova.workspace, "other")]
    make_agent(nova.workspace, "two", channels=channels)
    charges: list[str] = []
    charge = charge_rate_limit

    def count(key_id: int, workspace_id: int, budget: str) -> Any:
        charges.append(budget)
        return charge(key_id, workspace_id, budget)

    monkeypatch.setattr(api, "charge_rate_limit", count)
    refused = reader.get("agents/two/skills/refunds")
    assert (refused.status_code, charges) == (422, ["fetch"])
    assert (reader.get(FILE).status_code, charges) == (404, ["fetch"] * 2)


def test_bots_do_not_read_current_skills(desk: TrueApi, nova: Agent, key_for: Any, alice: User) -> None:
    write_skill(desk, UNSAFE)
    bot = key_for(nova.workspace, alice, BOT, verbs=["fetch", "render", "read", "write"])
    paths = ("skills", "skills/refunds", "skills/refunds/file", "skills/refunds/revisions")
    for path in (*paths, "agents/nova/skills", "discovered-skills"):
        response = bot.get(path)
        assert response.status_code == 403, path
        assert UNSAFE not in response.content.decode()
    assert bot.get("skills/refunds/SKILL.md").status_code == 404


def test_a_change_of_the_file_alone_is_in_impact_comparison_and_release(
    desk: TrueApi, nova: Agent, alice: User, bob: User
) -> None:
    write_skill(desk, SAFE)
    before = release(nova, alice, bob)
    draft = {"kind": "skill", "key": "refunds", "values": {"body": UNSAFE}}
    impact = desk.post("impact", draft)
    assert impact.status_code == 200, impact.content
    assert impact.json()["prompts"] == 1
    [change] = impact.json()["groups"][0]["changes"]
    assert (change["kind"], change["section"]) == ("skill_file", "refunds")
    assert UNSAFE in [line["text"] for line in change["lines"]]
    write_skill(desk, UNSAFE)
    after = release(nova, alice, bob)
    assert (before.text_digest, before.digest) != (after.text_digest, after.digest)
    diff = desk.get(f"prompt-versions/{after.digest}/diff?against={before.digest}").json()
    assert [file["name"] for file in diff["skill_files"]] == ["refunds"]
    assert diff["token_delta"] == 0


def test_an_assignment_alone_adds_no_version_to_others(desk: TrueApi, nova: Agent) -> None:
    """The revision of a skill grows with each edit, but a file with the same text is no change."""
    write_skill(desk, SAFE)
    versions = PromptVersion.objects.in_workspace(nova.workspace)
    count = versions.count()
    write_skill(desk, SAFE, message="No other words")
    assert versions.count() == count


def test_a_bot_with_an_edited_skill_file_has_drifted(
    desk: TrueApi, nova: Agent, key_for: Any, alice: User, bob: User
) -> None:
    write_skill(desk, SAFE)
    version = release(nova, alice, bob)
    reporter = key_for(nova.workspace, alice, BOT, verbs=["fetch", "write"])
    old = reporter.get(FILE).content
    body = {"agent": "nova", "channel": "desk", "digest": version.digest}

    def report(*files: bytes) -> str:
        skills = [{"name": "refunds", "digest": sha256(file).hexdigest()} for file in files]
        response = reporter.post("prompts:report", body | {"skills": skills})
        assert response.status_code == 201, response.content
        status: str = response.json()["status"]
        return status

    assert (report(old), report(old + b"!"), report()) == ("same", "never_released", "outdated")
    write_skill(desk, UNSAFE)
    body["digest"] = release(nova, alice, bob).digest
    assert report(old) == "outdated"
    assert report(reporter.get(FILE).content) == "same"


@pytest.fixture(params=["a draft", "no ledger row"])
def planted_fault(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file of the newest version is served, or the row is left out."""
    if request.param == "a draft":
        load = services.load_offering_version

        def load_latest(resolution: Any) -> PromptVersion:
            prompts = AgentPrompt.objects.in_workspace(resolution.workspace_id)
            latest = prompts.values_list("latest", flat=True).get(pk=resolution.prompt_id)
            return load(replace(resolution, version_id=latest or 0))

        monkeypatch.setattr(services, "load_offering_version", load_latest)
    else:
        monkeypatch.setattr(services, "insert_ledger_row", lambda *args: 1)


@pytest.mark.usefixtures("planted_fault")
def test_a_draft_served_to_bots_is_detected(
    desk: TrueApi, reader: TrueApi, nova: Agent, alice: User, bob: User
) -> None:
    with pytest.raises(AssertionError):
        test_a_changed_skill_reaches_bots_only_with_a_release(desk, reader, nova, alice, bob)
