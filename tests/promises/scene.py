"""Builds the data of an installation and checks it after failures; each step is a process.

Run as `python -m tests.promises.scene build|check FOLDER`; the environment names the database.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
django.setup()

from django.conf import settings  # noqa: E402  # Django first
from django.core.management import call_command  # noqa: E402
from django.db import connection  # noqa: E402
from django.db.models import F  # noqa: E402

from core.salted_digests import salt_digest  # noqa: E402
from personas.actors import Actor  # noqa: E402
from personas.agents.services import create_named_record  # noqa: E402
from personas.api_keys.format import ADMIN  # noqa: E402
from personas.api_keys.services import create_key, revoke_key  # noqa: E402
from personas.models import Agent, Channel, Content, Revision, Soul, User, Workspace  # noqa: E402
from personas.records.services import create_record  # noqa: E402
from personas.workspaces.services import create_workspace  # noqa: E402
from prompts.evidence.integrity.verify import verify_workspace  # noqa: E402
from prompts.models import (  # noqa: E402
    AgentPrompt,
    BuildCause,
    LedgerEntry,
    PromptLabel,
    PromptVersion,
)
from prompts.publishing.builds.services import rebuild_agents  # noqa: E402
from prompts.publishing.versions.segments import list_content_digests  # noqa: E402
from prompts.publishing.versions.selectors import get_text_salt  # noqa: E402
from tests.factories import signed_in  # noqa: E402

BY = Actor("scene")
AGENTS = int(os.environ.get("SCENE_AGENTS", "6"))
SENTENCE = "Ask for the order number before you look anything up, and repeat it in the answer. "


def build(folder: Path) -> dict[str, Any]:
    """Create agents with a soul each, a bot key, an editor's key, a revoked key, and a session."""
    call_command("migrate", verbosity=0, interactive=False)
    call_command("createcachetable", verbosity=0)
    owner = User.objects.create_user("alice@example.com", None, name="Alice")
    workspace = create_workspace("Harbour", "harbour", owner=owner)
    channel = Channel.objects.in_workspace(workspace).order_by("pk")[0]
    for number in range(AGENTS):
        soul_values = {"name": f"Soul {number}", "text": SENTENCE * 20}
        soul = create_named_record(Soul, workspace, soul_values, by=BY)
        values = {"slug": f"a{number}", "name": f"Agent {number}", "soul": soul, "channels": [channel]}
        create_record(Agent, workspace, values, by=BY)
    rebuild_agents(workspace, Agent.objects.in_workspace(workspace).values_list("pk", flat=True))
    _, bot = create_key(workspace, "Bots", {}, by=BY)
    _, editor = create_key(workspace, "Editor", {}, by=Actor.person(owner), kind=ADMIN)
    revoked_key, revoked = create_key(workspace, "Revoked", {}, by=BY)
    revoke_key(revoked_key, by=BY)
    cookies = signed_in(owner).cookies
    return {
        "bot": bot,
        "editor": editor,
        "revoked": revoked,
        "cookie": f"{settings.SESSION_COOKIE_NAME}={cookies[settings.SESSION_COOKIE_NAME].value}",
        "channel": channel.slug,
        "agents": [f"a{number}" for number in range(AGENTS)],
        "souls": list(Soul.objects.in_workspace(workspace).order_by("pk").values_list("slug", flat=True))[
            -AGENTS:
        ],
    }


# --- check ---------------------------------------------------------------------------------------------


def check(folder: Path) -> dict[str, Any]:
    """Find acknowledged writes that are missing, and rows that are incomplete."""
    acknowledged = json.loads((folder / "acknowledged.json").read_text())
    workspace = Workspace.objects.get(slug="harbour")
    rows = LedgerEntry.objects.in_workspace(workspace)
    columns = ("request_id", "served_digest", "version_id")
    recorded = {request: (digest, version) for request, digest, version in rows.values_list(*columns)}
    versions = PromptVersion.objects.in_workspace(workspace)
    salts = {version.pk: get_text_salt(version) for version in versions.iterator()}
    fetches: dict[str, str] = acknowledged["fetches"]
    left = rebuild_waiting(workspace)
    verdict = verify_workspace(workspace)
    return {
        "missing": sum(request not in recorded for request in fetches),
        "wrong digests": sum(
            salt_digest(digest, salts[version]) != stored
            for request, digest in fetches.items()
            for stored, version in ([recorded[request]] if request in recorded else [])
        ),
        "missing edits": count_missing_edits(workspace, acknowledged["edits"]),
        "rows": rows.count(),
        "versions": PromptVersion.objects.in_workspace(workspace).count(),
        "left to the sweep": left,
        "torn": find_torn_versions(workspace),
        "broken links": count_broken_links(workspace),
        "bad rows": verdict.bad,
        "first bad": str(verdict.first or ""),
    }


def rebuild_waiting(workspace: Workspace) -> int:
    """Rebuild agents whose build was lost with the server, as the sweep does."""
    causes = BuildCause.objects.in_workspace(workspace)
    waiting = sorted(set(causes.values_list("agent_id", flat=True)))
    rebuild_agents(workspace, waiting)
    return len(waiting)


def count_missing_edits(workspace: Workspace, edits: list[tuple[str, int, str]]) -> int:
    rows = Revision.objects.in_workspace(workspace).filter(kind=Soul.kind)
    ids = dict(Soul.objects.in_workspace(workspace).values_list("slug", "pk"))
    kept = {(row.object_id, row.number): row.data.get("text") for row in rows}
    return sum(kept.get((ids[slug], revision)) != text for slug, revision, text in edits)


def find_torn_versions(workspace: Workspace) -> list[str]:
    """Find versions with missing content, gaps or duplicates in numbers, and missing revisions."""
    digests = set(Content.objects.in_workspace(workspace).values_list("digest", flat=True))
    findings = []
    for prompt in AgentPrompt.objects.in_workspace(workspace).select_related("agent__soul", "latest"):
        versions = list(PromptVersion.objects.in_workspace(workspace).filter(prompt=prompt))
        numbers = sorted(version.number for version in versions)
        if numbers != list(range(1, prompt.last_number + 1)):
            findings.append(f"the numbers of {prompt}")
        findings += [
            f"the content of {version}"
            for version in versions
            if not {*list_content_digests(version.segments, version.tools), version.report} <= digests
        ]
        soul = prompt.agent.soul
        assert soul is not None
        revisions = Revision.objects.in_workspace(workspace).filter(kind=Soul.kind, object_id=soul.pk)
        if soul.revision != revisions.count():
            findings.append(f"the revisions of {soul}")
        if not is_latest(soul, prompt.latest):
            findings.append(f"the newest text of {prompt}")
    return findings


def is_latest(soul: Soul, version: PromptVersion | None) -> bool:
    rows = Content.objects.in_workspace(soul.workspace_id)
    digests = list_content_digests(version.segments, version.tools) if version else ()
    return any(
        soul.text.strip().encode() in bytes(data or b"")
        for data in rows.filter(digest__in=digests).values_list("data", flat=True)
    )


def count_broken_links(workspace: Workspace) -> int:
    """Count labels that point to another prompt's version; the database checks all other foreign keys."""
    labels = PromptLabel.objects.in_workspace(workspace)
    prompts = AgentPrompt.objects.in_workspace(workspace)
    broken = labels.exclude(version__prompt=F("prompt")).count()
    broken += prompts.exclude(latest__prompt=F("pk")).count()
    connection.check_constraints()
    return broken


if __name__ == "__main__":
    step, place = sys.argv[1:]
    sys.stdout.write(json.dumps({"build": build, "check": check}[step](Path(place))) + "\n")
