"""A version as plain data: every word with its origin, and all that it can be checked by."""

from typing import Any

from prompts.assembly.json_codec import dump
from prompts.models import PromptVersion
from prompts.versions.selectors import parts_of, report_of, segments_of


def as_plain(version: PromptVersion) -> dict[str, Any]:
    prompt = version.prompt
    return {
        "agent": prompt.agent.slug,
        "channel": prompt.channel.slug,
        "number": version.number,
        "digest": version.digest,
        "text_digest": version.text_digest,
        "layout": version.layout,
        "compiler": version.compiler,
        "characters": version.characters,
        "tokens": version.tokens,
        "sizes": {
            name: {"characters": characters, "tokens": tokens}
            for name, (characters, tokens) in version.sizes.items()
        },
        "segments": [dump(segment) for segment in segments_of(version)],
        "report": report_of(version),
        "lockfile": {
            "layout": version.layout,
            "compiler": version.compiler,
            **version.lockfile,
            "parts": parts_of(version),
        },
        "causes": version.causes,
        "author": version.author_label,
        "message": version.message,
        "created_at": version.created_at.isoformat(),
        "previous_hash": version.previous_hash,
        "hash": version.hash,
    }
