"""Heads of the hash chains and a sample of prompt texts, which must be the same after a restore."""

import secrets
from hashlib import sha256
from typing import Any

from django.db.models import Max, Min
from django.utils import timezone

from personas.models import Workspace
from prompts.evidence.integrity.checkpoint_signer import build_statement, get_current_heads
from prompts.models import Checkpoint, PromptVersion
from prompts.publishing.versions.version_contents import load_version_contents

ChainHeads = list[dict[str, Any]]
PromptDigests = dict[str, str]


def list_chain_heads() -> ChainHeads:
    """Return the heads of the hash chains of every workspace, in the format of a checkpoint."""
    heads = []
    for workspace_id in Workspace.objects.order_by("pk").values_list("pk", flat=True):
        body = build_statement(workspace_id, get_current_heads(workspace_id), "", timezone.now()).body()
        last = Checkpoint.objects.in_workspace(workspace_id).order_by("-sequence").first()
        head = {name: body[name] for name in ("workspace", "versions", "label_moves", "ledger", "expiries")}
        heads.append(head | {"checkpoint": [last.sequence, last.hash] if last else None})
    return heads


def sample_prompts(count: int) -> PromptDigests:
    """Return the SHA-256 of the texts of up to `count` random versions, by version id."""
    ids = PromptVersion.unscoped.aggregate(first=Min("pk"), last=Max("pk"))
    if ids["first"] is None:
        return {}
    digests: PromptDigests = {}
    # Make up to twice as many attempts, because the same version may be picked again.
    for _ in range(count * 2):
        if len(digests) >= count:
            break
        random_id = ids["first"] + secrets.randbelow(ids["last"] - ids["first"] + 1)
        version = PromptVersion.unscoped.filter(pk__gte=random_id).order_by("pk").first()
        if version is not None:
            digests[str(version.pk)] = compute_text_digest(version)
    return digests


def compute_text_digest(version: PromptVersion) -> str:
    segments = load_version_contents(version).segments
    return sha256("".join(segment.text for segment in segments).encode()).hexdigest()


def find_changed_prompts(prompts: PromptDigests) -> list[str]:
    """Return the ids of the versions that are missing or whose text has another digest."""
    rows = PromptVersion.unscoped.in_bulk([int(key) for key in prompts])
    return [
        key
        for key in prompts
        if (row := rows.get(int(key))) is None or compute_text_digest(row) != prompts[key]
    ]
