"""A limited key links only records that are used within its limits, and reads no other linked record.

Every field of every operation that names a record is filled with one that the key may not read. A linked
record would be part of the next prompt, so the prompts within the limits are searched for its text, too.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pytest

from personas.actors import Actor
from personas.agents.services import create_named_record
from personas.api import record_resource
from personas.models import Agent, Channel, Identity, Soul, Tool, UserProfile
from personas.records.services import create_record, edit_record
from prompts.models import AgentPrompt
from prompts.publishing.settings import api as settings_api
from prompts.publishing.settings.services import find_level_settings, put_settings
from prompts.publishing.versions.selectors import get_version_text
from skills.models import Source
from tests.isolation.api_cast import rolled_back_as_test
from tests.isolation.api_matrix import may_call
from tests.isolation.api_substitution import FieldProbe, fill_body, list_probes
from tests.isolation.api_table import known_endpoints
from tests.isolation.api_walk import ApiEndpoint
from tests.isolation.cast import HARBOUR, owner_of, rolled_back
from tests.isolation.matrix import Outcome
from tests.isolation.scope_matrix import (
    AGENTS,
    CHANNELS,
    REFUSED,
    LimitedKey,
    ScopeStage,
    build_pending,
    build_request,
    send,
    set_scope_stage,
)

pytestmark = [pytest.mark.django_db]
# A word that only records contain which no agent within the limits uses; it is in every text of them.
CANARY = "closedrecordword"


@dataclass
class LinkStage:
    """The data of the scope matrix with records that the limited keys may not read."""

    scope: ScopeStage
    # By the kind in the tables of the matrix.
    closed: dict[str, Any]

    @property
    def agent(self) -> Agent:
        return Agent.unscoped.get(pk=self.scope.inside.row(HARBOUR, "agents").pk)

    def get_key(self, *limits: str, is_bot: bool = False) -> LimitedKey:
        return next(key for key in self.scope.keys if key.limits == limits and key.caller.is_bot == is_bot)


def set_link_stage(scope: ScopeStage) -> LinkStage:
    stage = scope.inside
    workspace, by = stage.workspaces[HARBOUR], Actor.person(owner_of(stage, HARBOUR))
    text = f"{CANARY} text."
    closed: dict[str, Any] = {
        "identities": create_named_record(
            Identity, workspace, {"name": CANARY, "display_name": CANARY, "vibe": CANARY}, by=by
        ),
        "souls": create_named_record(Soul, workspace, {"name": CANARY, "text": text}, by=by),
        "user-profiles": create_named_record(
            UserProfile, workspace, {"name": CANARY, "display_name": CANARY, "notes": text}, by=by
        ),
        "tools": create_record(Tool, workspace, {"name": CANARY, "description": text}, by=by),
        "channels": create_record(
            Channel, workspace, {"slug": CANARY, "name": CANARY, "formatting": text}, by=by
        ),
        "sources": create_named_record(
            Source, workspace, {"name": CANARY, "source_kind": "pushed", "harnesses": ["plain"]}, by=by
        ),
    }
    # Another agent uses them all.
    values = {
        "slug": f"{CANARY}-agent",
        "name": CANARY,
        "instructions": text,
        "channels": [closed["channels"]],
    }
    values |= {"identity": closed["identities"], "soul": closed["souls"], "tools": [closed["tools"]]}
    closed["agents"] = create_record(
        Agent, workspace, values | {"user_profile": closed["user-profiles"]}, by=by
    )
    build_pending(workspace)
    return LinkStage(scope, closed)


@pytest.fixture(scope="module")
def linked_scope(seeded, django_db_blocker):
    with django_db_blocker.unblock(), rolled_back():
        yield set_link_stage(set_scope_stage(seeded))


@pytest.fixture
def links(linked_scope, db):
    with rolled_back():
        yield linked_scope


def run_links(links: LinkStage, keys: Iterable[LimitedKey], endpoints: Iterable[ApiEndpoint]) -> Outcome:
    outcome, stage = Outcome(), links.scope.inside
    for key in keys:
        for endpoint in endpoints:
            if not may_call(key.caller, endpoint):
                continue
            for probe in list_probes(stage, endpoint, HARBOUR):
                if probe.named.kind in list_closed_kinds(links, key):
                    outcome.cells += 1
                    with rolled_back_as_test():
                        findings = check_link(links, key, probe)
                    outcome.findings += [f"{key} · {probe}: {text}" for text in findings]
    return outcome


def list_closed_kinds(links: LinkStage, key: LimitedKey) -> set[str]:
    """Return the kinds of which the key may not read the closed record: docs/keys.md has the table."""
    kinds = set(links.closed)
    return kinds if AGENTS in key.limits else kinds - {"agents", "sources"}


def check_link(links: LinkStage, key: LimitedKey, probe: FieldProbe) -> list[str]:
    value = getattr(links.closed[probe.named.kind], probe.named.attribute)
    body = fill_body(probe.base, probe.place, [value] if probe.is_list else value)
    path, _body = build_request(links.scope.inside, key.caller, probe.endpoint)
    answer = send(key.caller, probe.endpoint, path, body)
    findings = []
    # An item of a batch has its own status.
    if answer.status not in REFUSED and str(probe.endpoint) != "POST batch-get":
        findings.append(f"answered {answer.status}")
    # Errors quote what was sent.
    if CANARY in answer.visible_text.replace(str(value), ""):
        findings.append("returned text of a closed record")
    if answer.wrote_tenant_rows:
        findings += find_closed_text(links)
    return findings


def find_closed_text(links: LinkStage) -> list[str]:
    """Return the prompts of the agent that contain text of a closed record."""
    build_pending(links.scope.inside.workspaces[HARBOUR])
    prompts = AgentPrompt.unscoped.filter(agent=links.agent, latest__isnull=False).select_related("latest")
    return [
        f"{prompt} contains text of a closed record"
        for prompt in prompts
        if prompt.latest and CANARY in get_version_text(prompt.latest)
    ]


@pytest.mark.slow
def test_no_key_of_this_run_links_a_record_that_it_may_not_read(links, tally):
    keys = [links.get_key(AGENTS), links.get_key(CHANNELS)]
    tally(run_links(links, keys, known_endpoints()), at_least=40)


@pytest.mark.promise("R16", "no linked record read")
@pytest.mark.hard
def test_no_limited_key_links_a_record_that_it_may_not_read(links, tally):
    tally(run_links(links, links.scope.keys, known_endpoints()), at_least=200)


@pytest.mark.promise("R16")
def test_used_records_can_be_chosen_and_kept(links):
    """The positive control: the agent's own records are accepted, and so is an unchanged link outside."""
    key, agent = links.get_key(AGENTS), links.agent
    [endpoint] = [one for one in known_endpoints() if str(one) == "PATCH agents-one"]
    path, _body = build_request(links.scope.inside, key.caller, endpoint)
    assert agent.parent is not None
    assert agent.parent.slug not in key.scopes[AGENTS]
    body = {"soul": agent.soul.slug, "parent": agent.parent.slug, "identity": agent.identity.slug}
    assert send(key.caller, endpoint, path, body).status == 200


@pytest.mark.slow
@pytest.mark.promise("R16")
def test_no_sequence_brings_back_a_link_that_the_key_may_not_choose(links):
    """The agent had the closed records once. The key cannot restore that revision, nor read their names."""
    key, agent, by = links.get_key(AGENTS), links.agent, Actor(label="seeds")
    workspace = links.scope.inside.workspaces[HARBOUR]
    before = {"soul": agent.soul, "tools": [link.tool for link in agent.tool_links.all()]}
    for number, values in enumerate(
        [{"soul": links.closed["souls"]}, {"tools": [links.closed["tools"]]}, {"user_profile": None}]
    ):
        start = agent.revision
        if number == 2:
            # Without an own profile, the agent gets the one of the workspace.
            settings = {"user_profile": links.closed["user-profiles"]}
            row = find_level_settings(workspace, None, None)
            expected = row.revision if row else 0
            put_settings(workspace, settings, expected=expected, by=by, agent=None, channel=None)
            before = {"user_profile": agent.user_profile}
        agent = edit_record(agent, values, expected=start, by=by)
        agent = edit_record(agent, before, expected=agent.revision, by=by)
        assert find_closed_text(links) == []
        path = f"/api/v1/agents/{agent.slug}/revisions/{start + 1}:restore"
        with rolled_back_as_test():
            answer = restore(key, path)
            assert (answer.status, find_closed_text(links)) == (403, []), answer.visible_text
        agent.refresh_from_db()
    [history] = [one for one in known_endpoints() if str(one) == "GET agents-revisions"]
    answer = send(key.caller, history, *build_request(links.scope.inside, key.caller, history))
    assert answer.status == 200
    assert CANARY not in answer.visible_text
    [patch] = [one for one in known_endpoints() if str(one) == "PATCH agents-one"]
    path, _body = build_request(links.scope.inside, key.caller, patch)
    assert send(key.caller, patch, path, {"user_profile": None}).status == 403


def restore(key: LimitedKey, path: str) -> Any:
    [endpoint] = [one for one in known_endpoints() if str(one) == "POST agents-restore-revision"]
    return send(key.caller, endpoint, path, None)


# --- planted fault -------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.promise("R16")
@pytest.mark.planted
def test_an_unchecked_link_is_found(links, monkeypatch):
    for module in (record_resource, settings_api):
        monkeypatch.setattr(module, "list_linkable", list_all)
    names = {"PATCH agents-one", "PUT prompt-settings-prompt", "POST preview"}
    endpoints = [one for one in known_endpoints() if str(one) in names]
    found = run_links(links, [links.get_key(AGENTS)], endpoints).findings
    for probe in ("PATCH agents-one soul", "PATCH agents-one user_profile", "PATCH agents-one tools"):
        assert any(f"{probe}: answered 200" in text for text in found), found
    assert any("PUT prompt-settings-prompt soul" in text for text in found), found
    assert any("contains text of a closed record" in text for text in found), found


def list_all(caller: Any, model: Any) -> Any:
    return model.objects.in_workspace(caller.workspace).filter(archived_at=None)
