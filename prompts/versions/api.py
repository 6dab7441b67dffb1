"""Versions: the list of a prompt, and one by its digest with every word.

A digest names words, not a place: versions of several prompts, or of one that came back to what it said,
share it. So what is answered under a digest is what they share, which never changes, with the first place
that this key may know of; `places` lists all, and grows.

People read versions without leaving a row in the ledger, and so do keys that act for one. A bot gets words
only where that is recorded: from fetch, render and the replay of its own rows; here it gets the facts.
"""

import json
from itertools import accumulate
from typing import Any

from django.db.models import QuerySet
from django.http import Http404
from django.urls import URLPattern

from personas.api.etags import NOT_MODIFIED, lasting
from personas.api.operations import Call, Operation
from personas.api.pagination import PAGING, page_answered, page_of_rows
from personas.api.responses import Answer, answered, moment_told
from personas.api.schema import (
    choice,
    digest,
    listed,
    moment,
    nullable,
    page_of,
    shape,
    slug,
    whole,
)
from personas.api.views import endpoint
from prompts.api_lookup import (
    bounded,
    found_prompt,
    is_limited,
    prompt_ids,
    versions_in,
)
from prompts.assembly.report import boundaries
from prompts.assembly.segments import VOLATILITY, Segment
from prompts.errors import ErasedSince
from prompts.models import PromptVersion
from prompts.replay.services import erased_words, erasures_of
from prompts.versions.segments import digests_in, unpacked
from prompts.versions.selectors import contents_of, labels_of
from prompts.versions.serializers import CAUSE, PLACE, TEXT, cause_told, place_told
from prompts.versions.timeline import labels_by_version

LISTED = shape(
    {
        "number": whole(1),
        "digest": digest(),
        "text_digest": digest(),
        "layout": TEXT,
        "compiler": TEXT,
        "characters": whole(),
        "tokens": whole(),
        "labels": listed(TEXT),
        "author": TEXT,
        "message": TEXT,
        "causes": listed(CAUSE, most=20),
        "created_at": moment(),
        "hash": digest(),
        "previous_hash": TEXT,
    }
)
SECTION = shape({"name": TEXT, "characters": whole(), "tokens": whole()})
SEGMENT = shape({"section": TEXT, "volatility": choice(VOLATILITY), "slot": TEXT, "text": TEXT})
BOUNDARY = shape({"volatility": TEXT, "offset": whole()})
NO_WORDS = "Null for keys of bots or of some labels only: fetch the prompt instead, which is recorded."
VERSION = shape(
    {
        "digest": digest(),
        "text_digest": digest(description="SHA-256 of the text as UTF-8."),
        "layout": TEXT,
        "characters": whole(),
        "tokens": whole(),
        "sections": listed(SECTION, most=1_000),
        "text": {"type": ["string", "null"], "description": f"Slots stand in it as built. {NO_WORDS}"},
        "segments": nullable({"type": "array", "items": SEGMENT, "description": NO_WORDS}),
        "boundaries": nullable({"type": "array", "items": BOUNDARY}),
        "tools": {"type": ["array", "null"], "description": f"Definitions for the provider. {NO_WORDS}"},
        "first": PLACE,
    }
)
OF_PLACE = {
    "agent": slug(description="Of the places with this digest, one of this agent."),
    "channel": slug(description="On this channel."),
    "number": whole(1, 2**31 - 1, description="With this number."),
}
PLACED = {"agent": "prompt__agent__slug", "channel": "prompt__channel__slug", "number": "number"}
COMMON: dict[str, Any] = {"bots": True, "tag": "prompt-versions"}


# --- of one prompt -------------------------------------------------------------------------------------


def index(call: Call, agent: str, channel: str) -> Answer:
    prompt = found_prompt(call, agent, channel)
    rows = versions_in(prompt).defer("segments", "sizes", "lockfile")
    page = page_of_rows(
        rows, limit=call.query["limit"], cursor=call.query.get("cursor", ""), newest_first=True
    )
    labels = labels_by_version(prompt, list(labels_of(prompt)))
    return page_answered(call, page, [listed_told(row, labels.get(row.pk, [])) for row in page.rows])


def by_number(call: Call, agent: str, channel: str, number: int) -> Answer:
    prompt = found_prompt(call, agent, channel)
    rows = versions_in(prompt).defer("segments", "sizes", "lockfile")
    version = rows.filter(number=bounded(number)).first()
    if version is None:
        raise Http404
    labels = labels_by_version(prompt, list(labels_of(prompt)))
    return answered(listed_told(version, labels.get(version.pk, [])))


def listed_told(version: PromptVersion, labels: list[str]) -> dict[str, Any]:
    return {
        "number": version.number,
        "digest": version.digest,
        "text_digest": version.text_digest,
        "layout": version.layout,
        "compiler": version.compiler,
        "characters": version.characters,
        "tokens": version.tokens,
        "labels": labels,
        "author": version.author_label,
        "message": version.message,
        "causes": [cause_told(cause) for cause in version.causes],
        "created_at": moment_told(version.created_at),
        "hash": version.hash,
        "previous_hash": version.previous_hash,
    }


# --- by digest -----------------------------------------------------------------------------------------


def read(call: Call, key: str) -> Answer:
    version = found_version(call, key)
    has_words = may_read_words(call)
    words = words_of(version) if has_words else dict.fromkeys(("text", "segments", "boundaries", "tools"))
    said = {
        "digest": version.digest,
        "text_digest": version.text_digest,
        "layout": version.layout,
        "characters": version.characters,
        "tokens": version.tokens,
        "sections": [
            {"name": name, "characters": characters, "tokens": tokens}
            for name, (characters, tokens) in version.sizes.items()
        ],
        **words,
        "first": place_told(version, version.prompt),
    }
    return lasting(call, said, f"{key}-{version.pk}" if has_words else f"{key}-{version.pk}-facts")


def may_read_words(call: Call) -> bool:
    """A key that is limited to labels has a say about those, and not about every version there ever was."""
    return not call.caller.is_bot and "labels" not in call.caller.key.scopes


def words_of(version: PromptVersion) -> dict[str, Any]:
    """Whole, or not at all."""
    segments = whole_segments(version)
    offsets = accumulate([len(segment.text) for segment in segments], initial=0)
    starts = [(segment.volatility, at) for segment, at in zip(segments, offsets, strict=False)]
    data = contents_of(version.workspace_id, [version.tools]).get(version.tools) if version.tools else None
    return {
        "text": "".join([segment.text for segment in segments]),
        "segments": [
            {
                "section": segment.section,
                "volatility": segment.volatility,
                "slot": segment.slot,
                "text": segment.text,
            }
            for segment in segments
        ],
        "boundaries": [boundary._asdict() for boundary in boundaries(starts)],
        "tools": json.loads(data) if data else [],
    }


def whole_segments(version: PromptVersion) -> tuple[Segment, ...]:
    """As they were built; what is left of erased words is not what was said."""
    contents = contents_of(version.workspace_id, digests_in(version.segments, version.tools))
    gone = {digest for digest, data in contents.items() if data is None}
    if gone:
        raise ErasedSince(erased_words(erasures_of(version, gone)))
    return unpacked(version.segments, contents)


def places(call: Call, key: str) -> Answer:
    rows = versions_with(call, key).defer("segments", "sizes", "lockfile")
    page = page_of_rows(rows, limit=call.query["limit"], cursor=call.query.get("cursor", ""))
    if not page.rows and "cursor" not in call.query:
        raise Http404
    return page_answered(call, page, [place_told(row, row.prompt) for row in page.rows])


def versions_with(call: Call, key: str) -> QuerySet[PromptVersion]:
    """Every version with this digest that the key may know of; where the query names a place, those there."""
    rows = PromptVersion.objects.in_workspace(call.workspace).filter(digest=key)
    if is_limited(call.caller):
        rows = rows.filter(prompt__in=prompt_ids(call.caller))
    for name, field in PLACED.items():
        if name in call.query:
            rows = rows.filter(**{field: call.query[name]})
    return rows.select_related("prompt__agent", "prompt__channel").order_by("pk")


def found_version(call: Call, key: str) -> PromptVersion:
    """The first of them."""
    version = versions_with(call, key).first()
    if version is None:
        raise Http404
    return version


OF_PROMPT = "agents/<slug:agent>/prompts/<slug:channel>/versions"
urlpatterns: list[URLPattern] = [
    endpoint(
        OF_PROMPT,
        "versions-list",
        get=Operation(
            index,
            "List the versions of a prompt, newest first",
            answer=page_of(LISTED),
            query=PAGING,
            **COMMON,
        ),
    ),
    endpoint(
        f"{OF_PROMPT}/<int:number>",
        "versions-number",
        get=Operation(by_number, "Look up a version by its number", answer=LISTED, **COMMON),
    ),
    endpoint(
        "prompt-versions/<digest:key>",
        "versions-one",
        get=Operation(
            read,
            "Read a version",
            answer=VERSION,
            others=NOT_MODIFIED,
            refusals={410: "erased"},
            note="Several prompts may share a digest: `first` is the first of them, /places lists all.",
            **COMMON,
        ),
    ),
    endpoint(
        "prompt-versions/<digest:key>/places",
        "versions-places",
        get=Operation(
            places,
            "List the prompts and numbers with this digest",
            answer=page_of(PLACE),
            query=PAGING,
            **COMMON,
        ),
    ),
]
