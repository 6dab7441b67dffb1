"""Two workspaces for the load test behind PgBouncer; run as `python -m tests.project.database.pooled_scene`.

The environment names the database, as its owner: `build FOLDER` makes the data, `check FOLDER` counts it.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
django.setup()

from django.core.management import call_command  # noqa: E402  # Django first
from django.db.models import F  # noqa: E402

from personas.actors import Actor  # noqa: E402
from personas.agents.services import create_named_record  # noqa: E402
from personas.api_keys.format import ADMIN  # noqa: E402
from personas.api_keys.services import create_key  # noqa: E402
from personas.models import Agent, Channel, Revision, Soul, User, Workspace  # noqa: E402
from personas.records.services import create_record  # noqa: E402
from personas.workspaces.services import create_workspace  # noqa: E402
from prompts.evidence.integrity.verify import verify_workspace  # noqa: E402
from prompts.models import BuildCause, LedgerEntry  # noqa: E402
from prompts.publishing.builds.services import rebuild_agents  # noqa: E402

BY = Actor("scene")
SLUGS = ("harbour", "quarry")
# Agents with a soul each; and agents that share one, more than are built before the response of an edit.
AGENTS, SHARING = 8, 24


def get_marker(slug: str) -> str:
    return f"This text belongs to {slug}."


def build(folder: Path) -> dict[str, Any]:
    call_command("migrate", verbosity=0, interactive=False)
    call_command("createcachetable", verbosity=0)
    return {slug: build_workspace(slug) for slug in SLUGS}


def build_workspace(slug: str) -> dict[str, Any]:
    owner = User.objects.create_user(f"{slug}@example.com", None, name=slug.title())
    workspace = create_workspace(slug.title(), slug, owner=owner)
    channel = Channel.objects.in_workspace(workspace).order_by("pk")[0]
    souls = [
        create_named_record(Soul, workspace, {"name": name, "text": get_marker(slug) * 20}, by=BY)
        for name in (*(f"Soul {number}" for number in range(AGENTS)), "Shared")
    ]
    for number in range(AGENTS + SHARING):
        soul = souls[min(number, AGENTS)]
        values = {"slug": f"a{number}", "name": f"Agent {number}", "soul": soul, "channels": [channel]}
        create_record(Agent, workspace, values, by=BY)
    rebuild_agents(workspace, Agent.objects.in_workspace(workspace).values_list("pk", flat=True))
    return {
        "bot": create_key(workspace, "Bots", {}, by=BY)[1],
        "editor": create_key(workspace, "Editor", {}, by=Actor.person(owner), kind=ADMIN)[1],
        "channel": channel.slug,
        "agents": [f"a{number}" for number in range(AGENTS + SHARING)],
        "souls": [soul.slug for soul in souls],
    }


def check(folder: Path) -> dict[str, Any]:
    return {slug: check_workspace(Workspace.objects.get(slug=slug)) for slug in SLUGS}


def check_workspace(workspace: Workspace) -> dict[str, int]:
    rows = LedgerEntry.objects.in_workspace(workspace)
    return {
        "rows": rows.count(),
        "rows of others": rows.exclude(version__workspace=F("workspace")).count(),
        "edits": Revision.objects.in_workspace(workspace).filter(kind=Soul.kind, number__gt=1).count(),
        "waiting": BuildCause.objects.in_workspace(workspace).count(),
        "bad rows": verify_workspace(workspace).bad,
    }


if __name__ == "__main__":
    step, place = sys.argv[1:]
    sys.stdout.write(json.dumps({"build": build, "check": check}[step](Path(place))) + "\n")
