"""Stored rows as the proof hashes them: one function per table."""

from typing import Any

from prompts.models import LabelMove, PromptVersion
from prompts.proof.canonical import digest
from prompts.proof.rows import LOCKFILE, REPORT, SEGMENTS, LabelMoveRow, VersionRow


def version_row(version: PromptVersion) -> VersionRow:
    prompt = version.prompt
    facts: dict[str, Any] = {
        "tools": version.tools,
        "characters": version.characters,
        "tokens": version.tokens,
        "sizes": version.sizes,
        "report": version.report,
    }
    return VersionRow(
        workspace=version.workspace_id,
        agent=prompt.agent_id,
        channel=prompt.channel_id,
        number=version.number,
        digest=version.digest,
        segments=digest(SEGMENTS, version.segments),
        text=version.text_digest,
        lockfile=digest(LOCKFILE, version.lockfile),
        report=digest(REPORT, facts),
        layout=version.layout,
        compiler=version.compiler,
        cause={"causes": version.causes},
        author=version.author_label,
        message=version.message,
        at=version.created_at,
    )


def move_row(move: LabelMove) -> LabelMoveRow:
    prompt = move.prompt
    return LabelMoveRow(
        workspace=move.workspace_id,
        sequence=move.sequence,
        agent=prompt.agent_id,
        channel=prompt.channel_id,
        label=move.label,
        version=move.version_id,
        previous_version=move.previous_version_id,
        reason=f"{move.reason}: {move.note}" if move.note else move.reason,
        release=move.release_id,
        author=move.author_label,
        at=move.at,
    )
