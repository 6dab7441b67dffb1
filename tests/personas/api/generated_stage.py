"""Test data: one of every object, so that generated requests can name existing ones."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from django.utils import timezone

from personas.actors import Actor
from personas.api_keys.format import ADMIN
from personas.api_keys.scopes import VERBS_BY_KIND
from personas.api_keys.services import create_key
from personas.members.services import invite_member
from personas.memories.services import revoke_memory
from personas.models import Agent, Event, MemoryStatus, Soul, User, WebhookDelivery, Workspace
from personas.records.services import archive_record, edit_record
from personas.roles import Role
from personas.webhooks.services import create_endpoint, send_test_event
from prompts.evidence.erasure.services import erase_record
from prompts.evidence.integrity.services import request_verification
from prompts.models import AgentPrompt, LabelMove
from prompts.publishing.builds.services import rebuild_agents
from prompts.publishing.comments.services import comment_on_line, comment_on_memory
from prompts.publishing.labels.services import move_label
from prompts.publishing.releases.services import approve_release, request_release
from skills.discovery.harness_json import harness_to_json
from skills.discovery.harnesses import HARNESSES
from skills.files.services import waive_findings
from skills.models import AllowedFolder, ContextFile, RefreshRun
from skills.rule_sets.services import save_rules
from tests.factories import (
    BY,
    join,
    make_agent,
    make_channel,
    make_identity,
    make_memory,
    make_profile,
    make_responsibility,
    make_skill,
    make_soul,
    make_task,
    make_tool,
    make_user,
)
from tests.personas.api.generated_requests import Stage
from tests.personas.api.skills_stage import (
    POISON,
    SKILL_PATH,
    SKILL_TEXT,
    file_in,
    make_pushed,
    push_and_refresh,
    read_source,
)
from tests.prompts.serving.serving_stage import fetch

Names = dict[str, Any]


def make_stage(workspace: Workspace, owner: User, other: User) -> Stage:
    by = Actor.person(owner)
    _, secret = create_key(workspace, "All", {"verbs": list(VERBS_BY_KIND[ADMIN])}, by=by, kind=ADMIN)
    names = personas(workspace, by)
    agent = Agent.objects.in_workspace(workspace).get(slug="mira")
    names |= files(workspace, agent)
    names |= versions(workspace, agent, owner, other)
    return Stage(secret, names)


def personas(workspace: Workspace, by: Actor) -> Names:
    channel, tool = make_channel(workspace, slug="harbour"), make_tool(workspace, name="read_file")
    soul, identity, profile = make_soul(workspace), make_identity(workspace), make_profile(workspace)
    agent = make_agent(workspace, slug="mira", channels=[channel], tools=[tool], soul=soul)
    memory = make_memory(workspace, agent=agent, status=MemoryStatus.PROPOSED)
    duty = make_responsibility(agent, title="Water the plants")
    task = make_task(workspace, agent=agent, steps=[{"title": "One", "is_done": False}])
    skill = make_skill(workspace, name="release-notes", agents=[agent])
    key, _ = create_key(workspace, "Other", {}, by=by)
    soon = (timezone.now() + timedelta(days=9)).isoformat()
    return {
        "agents.slug": agent.slug,
        "identities.slug": identity.slug,
        "souls.slug": soul.slug,
        "user-profiles.slug": profile.slug,
        "channels.slug": channel.slug,
        "tools.name": tool.name,
        "skills.name": skill.name,
        "memories.id": memory.pk,
        "responsibilities.id": duty.pk,
        "tasks.number": task.number,
        "keys.id": key.pk,
        "members.id": join(workspace, make_user("Ida"), Role.VIEWER).pk,
        "/api/v1/memories/{id}/comments/{comment}.comment": comment_on_memory(memory, text="Why?", by=by).pk,
        "DELETE /api/v1/members/{id}": join(workspace, make_user("Olaf"), Role.VIEWER).pk,
        "invitations.id": invite_member(workspace, "nora@example.com", Role.VIEWER, by=by).pk,
        "POST /api/v1/invitations/{id}:resend": invite_member(
            workspace, "per@example.com", Role.VIEWER, by=by
        ).pk,
        "/api/v1/invitations email": "kari@example.com",
        "agent": agent.slug,
        "channel": channel.slug,
        "name": skill.name,
        "number": 1,
        "revision": 1,
        "version": 1,
        "position": 0,
        "body.agent": agent.slug,
        "body.channel": channel.slug,
        "body.soul": soul.slug,
        "body.identity": identity.slug,
        "body.user_profile": profile.slug,
        "body.channels": [channel.slug],
        "body.tools": [tool.name],
        "body.agents": [agent.slug],
        "body.superseded_by": make_memory(workspace, text="Likes coffee.").pk,
        "body of POST /api/v1/erasures": {
            "kind": "memory",
            "record": make_memory(workspace, text="Was born in Bergen.").pk,
        },
        "body of POST /api/v1/erasures:preview": {
            "kind": "memory",
            "record": make_memory(workspace, text="Was born in Bergen.").pk,
        },
        "erasures.id": erase_record(
            make_memory(workspace, text="Was born in Hamar."), reason="Asked", by=BY
        ).pk,
        "body.expires_at": soon,
        "body.ends_at": soon,
        "/api/v1/agents/{agent}/responsibilities:remove title": duty.title,
        "/api/v1/tools name": "fresh-tool",
        # An agent cannot call itself, and parameters are JSON in a text, which the schema cannot express.
        "/api/v1/tools/{name} agent": make_agent(workspace, slug="helper").slug,
        "/api/v1/tools/{name} parameters": '{"type": "object"}',
        # Nothing refers to these, so they can be archived.
        "DELETE /api/v1/souls/{slug}": make_soul(workspace, name="Free").slug,
        "DELETE /api/v1/channels/{slug}": make_channel(workspace, slug="free").slug,
        "DELETE /api/v1/tools/{name}": make_tool(workspace, name="free").name,
        **bulk_ids(workspace, agent),
        "rule-sets.harness": "plain",
        # Not a time.
        "/api/v1/rule-sets/{harness} at": None,
        "verifications.id": request_verification(workspace, by=by).pk,
        **webhook_values(workspace, by),
        "/api/v1/workspaces slug": "fresh-workspace",
        "query of GET /api/v1/usages": {"kind": "soul", "id": soul.pk},
        "POST /api/v1/memories/{id}:restore": revoke_memory(make_memory(workspace), by=BY).pk,
        "POST /api/v1/agents/{slug}:restore": archive_record(make_agent(workspace, slug="gone"), by=BY).slug,
    }


def webhook_values(workspace: Workspace, by: Actor) -> Names:
    """An endpoint at an address of this machine, which the settings of the tests allow, and a delivery."""
    url = "http://127.0.0.1/hook"
    endpoint, _ = create_endpoint(workspace, {"name": "Hook", "url": url}, by=by)
    send_test_event(endpoint, by=by)
    event = Event.objects.in_workspace(workspace).filter(type="webhook.test").latest("pk")
    delivery = WebhookDelivery(workspace=workspace, endpoint=endpoint, event=event, status="delivered")
    delivery.save()
    return {
        "webhooks.id": endpoint.pk,
        "delivery": delivery.pk,
        "/api/v1/webhooks url": url,
        "/api/v1/webhooks/{id} url": url,
    }


def bulk_ids(workspace: Workspace, agent: Agent) -> Names:
    """Records for bulk actions, which nothing refers to."""
    rows: dict[str, Any] = {
        "agents": make_agent(workspace, slug="bulk"),
        "identities": make_identity(workspace, name="Bulk"),
        "souls": make_soul(workspace, name="Bulk"),
        "user-profiles": make_profile(workspace, name="Bulk"),
        "channels": make_channel(workspace, slug="bulk"),
        "tools": make_tool(workspace, name="bulk"),
        "skills": make_skill(workspace, name="bulk"),
        "memories": make_memory(workspace, text="Bulk."),
        "responsibilities": make_responsibility(make_agent(workspace, slug="bulk-duty"), title="Bulk"),
        "tasks": make_task(workspace),
    }
    names = {
        f"/api/v1/{kind}:{verb} ids": [row.pk]
        for kind, row in rows.items()
        for verb in ("archive", "restore")
    }
    revoked = revoke_memory(make_memory(workspace, text="Revoked."), by=BY)
    proposed = make_memory(workspace, text="Proposed.", status=MemoryStatus.PROPOSED)
    decisions = {f"/api/v1/memories:{verb} ids": [proposed.pk] for verb in ("approve", "reject")}
    duties = agent.responsibilities.values_list("pk", flat=True)
    return {
        **names,
        **decisions,
        "/api/v1/memories:restore ids": [revoked.pk],
        "/api/v1/agents/{agent}/responsibilities:order ids": list(duties),
    }


def files(workspace: Workspace, agent: Agent) -> Names:
    source, free = make_pushed(workspace), make_pushed(workspace, "Free")
    by_hand = make_pushed(workspace, "By hand", approval="manual")
    push_and_refresh(by_hand, {"AGENTS.md": "Be brief.", "CLAUDE.md": POISON})
    proposed, waived = file_in(by_hand), file_in(by_hand, "CLAUDE.md")
    until = timezone.now().date() + timedelta(days=9)
    waiver = waive_findings(waived, digest=digest_of(waived), reason="Known.", until=until, by=BY)
    push_and_refresh(source, {"AGENTS.md": POISON, "CLAUDE.md": "Be kind.", SKILL_PATH: SKILL_TEXT})
    read_source(agent, source)
    poisoned, skill_file = file_in(source), file_in(source, SKILL_PATH)
    run = RefreshRun.objects.in_workspace(workspace).filter(source=source).latest("pk")
    gone = make_pushed(workspace, "Gone")
    held = RefreshRun(workspace=workspace, source=gone, status="held", missing=1, missing_paths=["AGENTS.md"])
    held.save()
    rules = harness_to_json(replace(HARNESSES["plain"], off=("skill",)))
    save_rules(workspace, "plain", rules, expected_revision=0, by=BY)
    grant = AllowedFolder(workspace=workspace, path="/srv/granted")
    grant.save()
    return {
        "/api/v1/sources allowed_folder": grant.path,
        "/api/v1/sources folder": "",
        "sources.slug": source.slug,
        "DELETE /api/v1/sources/{slug}": free.slug,
        "discovered-skills.id": skill_file.pk,
        "context-files.id": poisoned.pk,
        "path": "AGENTS.md",
        "/api/v1/sources/{slug}/runs/{run}.run": run.pk,
        "POST /api/v1/sources/{slug}:confirmRemoval": gone.slug,
        "body of POST /api/v1/sources/{slug}:confirmRemoval": {"run": held.pk},
        "POST /api/v1/context-files/{id}:approve": proposed.pk,
        "body of POST /api/v1/context-files/{id}:approve": {"digest": digest_of(proposed)},
        "body of POST /api/v1/context-files/{id}:waive": {
            "digest": digest_of(poisoned),
            "until": until.isoformat(),
        },
        "/api/v1/context-files/{id}/waivers/{waiver}:end.id": waived.pk,
        "waiver": waiver.pk,
        "body.source": source.slug,
        "body.harness": "opal",
        "body.ids": [file_in(source, "CLAUDE.md").pk],
    }


def digest_of(file: ContextFile) -> str:
    assert file.latest is not None
    return file.latest.digest


def versions(workspace: Workspace, agent: Agent, owner: User, other: User) -> Names:
    """Create two versions, a label moved twice, an approved and an open release, and a fetch."""
    by = Actor.person(owner)
    rebuild_agents(workspace, [agent.pk])
    prompt = AgentPrompt.objects.in_workspace(workspace).get(agent=agent)
    first = prompt.latest
    soul = Soul.objects.in_workspace(workspace).get(agents=agent)
    # By neither of the two, so that both can approve a release of it.
    edit_record(soul, {"text": "Be calmer."}, expected=soul.revision, by=BY)
    rebuild_agents(workspace, [agent.pk])
    prompt.refresh_from_db()
    assert first is not None
    assert prompt.latest is not None
    move_label(prompt, "canary", first, expected=None, by=by, note="")
    prompt.refresh_from_db()
    move_label(prompt, "canary", prompt.latest, expected=first.pk, by=by, note="")
    key, secret = create_key(workspace, "Fetcher", {}, by=by)
    served = fetch(secret, agent.slug, "harbour")
    open_release = request_release(workspace, [prompt], message="Go", by=Actor.person(other), label="beta")
    approved = request_release(workspace, [prompt], message="Go", by=by, label="gamma")
    approve_release(approved, by=Actor.person(other))
    # Neither of the two, because both have requested or approved a release.
    reviewer = join(workspace, make_user("Una"), Role.ADMIN).user
    comments_path = "/api/v1/agents/{agent}/channels/{channel}/versions/{version}/comments"
    moves = LabelMove.objects.in_workspace(workspace).filter(prompt=prompt)
    timestamp = (moves.latest("pk").at + timedelta(microseconds=1)).isoformat().replace("+00:00", "Z")
    return {
        "prompt-versions.digest": prompt.latest.digest,
        f"{comments_path}/{{comment}}.comment": comment_on_line(first, 1, text="Why?", by=by).pk,
        f"{comments_path} line": 1,
        "body.against": first.digest,
        "body.digest": prompt.latest.digest,
        "body.version": first.number,
        "body.at": timestamp,
        "body.label": "canary",
        "body.ledger_id": served.ledger_id,
        "ledger.id": served.ledger_id,
        "label": "canary",
        # Values that must be consistent, which the schema cannot express.
        "query of GET /api/v1/replay": {
            "agent": agent.slug,
            "channel": "harbour",
            "label": "canary",
            "at": timestamp,
        },
        "query of GET /api/v1/replay/evidence": {
            "agent": agent.slug,
            "channel": "harbour",
            "label": "canary",
            "at": timestamp,
        },
        "body of PUT /api/v1/agents/{agent}/channels/{channel}/labels/{label}": {
            "version": first.number,
            "expected": prompt.latest.number,
        },
        "body of POST /api/v1/releases": {
            "prompts": [{"agent": agent.slug, "channel": "harbour"}],
            "label": "delta",
        },
        "body of POST /api/v1/releases/{number}:requestReview": {"reviewers": [reviewer.email]},
        "body of POST /api/v1/impact": {
            "kind": "soul",
            "key": soul.slug,
            "values": {"text": "Be calmest."},
        },
        "releases.number": open_release.number,
        "POST /api/v1/releases/{number}:publish": approved.number,
        "body.key": key.pk,
    }
