"""What a restore must give again beside the rows: where every chain ends, and the text of some prompts."""

import secrets
from hashlib import sha256
from typing import Any

from django.db.models import Max, Min
from django.utils import timezone

from personas.models import Workspace
from prompts.integrity.checkpoints import build_statement, get_current_heads
from prompts.models import Checkpoint, PromptVersion
from prompts.replay.services import load_built_segments

ChainHeads = list[dict[str, Any]]
PromptDigests = dict[str, str]


def list_chain_heads() -> ChainHeads:
    """How far the record of every workspace has come, as a checkpoint would say it."""
    found = []
    for workspace_id in Workspace.objects.order_by("pk").values_list("pk", flat=True):
        told = build_statement(workspace_id, get_current_heads(workspace_id), "", timezone.now()).body()
        last = Checkpoint.objects.in_workspace(workspace_id).order_by("-sequence").first()
        kept = {name: told[name] for name in ("workspace", "versions", "label_moves", "ledger", "roll_offs")}
        found.append(kept | {"checkpoint": [last.sequence, last.hash] if last else None})
    return found


def sample_prompts(count: int) -> PromptDigests:
    """Versions picked at random by id, with the digest of their text, put together from what is stored."""
    ends = PromptVersion.unscoped.aggregate(first=Min("pk"), last=Max("pk"))
    if ends["first"] is None:
        return {}
    found: PromptDigests = {}
    # Twice as many tries: ids have gaps, and one may come up again.
    for _ in range(count * 2):
        if len(found) >= count:
            break
        place = ends["first"] + secrets.randbelow(ends["last"] - ends["first"] + 1)
        version = PromptVersion.unscoped.filter(pk__gte=place).order_by("pk").first()
        if version is not None:
            found[str(version.pk)] = compute_text_digest(version)
    return found


def compute_text_digest(version: PromptVersion) -> str:
    segments, _ = load_built_segments(version)
    return sha256("".join(segment.text for segment in segments).encode()).hexdigest()


def find_changed_prompts(prompts: PromptDigests) -> list[str]:
    """Ids of those that are not there, or say something else now."""
    rows = PromptVersion.unscoped.in_bulk([int(key) for key in prompts])
    return [
        key
        for key in prompts
        if (row := rows.get(int(key))) is None or compute_text_digest(row) != prompts[key]
    ]
