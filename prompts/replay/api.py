"""The time machine for programs: the very bytes of a fetch or a moment, and what proves them.

A bot replays its own rows only, for those words were handed to it and that is recorded. The past by a moment
it fetches with `at`, which leaves a row; here that is for keys that act for a person.
"""

from datetime import UTC
from typing import Any

from django.urls import URLPattern
from django.utils import timezone

from personas.api.exception_handler import invalid
from personas.api.operations import Call, Operation
from personas.api.problems import FieldError, ProblemError
from personas.api.responses import Answer, answered, moment_told
from personas.api.schema import Shape, anything, digest, moment, nullable, shape, slug
from personas.api.views import endpoint
from prompts.api_lookup import found_prompt, refuse_label
from prompts.ledger.api import ROW, visible_entry
from prompts.ledger.api import told as row_told
from prompts.models import PRODUCTION, LedgerEntry
from prompts.provenance.api import STRETCH, stretches_told
from prompts.replay.evidence import evidence_of
from prompts.replay.services import Replay, replay_prompt, replayed
from prompts.versions.serializers import REF, TEXT, ref

REPLAY = shape(
    {
        "agent": TEXT,
        "channel": TEXT,
        "label": TEXT,
        "at": moment(),
        "version": REF,
        "digest": digest(description="Of the text below, computed now."),
        "recorded_digest": digest(
            description="As it was written down then: the same, or there is no answer."
        ),
        "text": TEXT,
        "stretches": {"type": "array", "items": STRETCH},
        "row": nullable(ROW),
        "moved_at": nullable(moment(description="When the label came there.")),
    }
)
EVIDENCE: Shape = anything(description="A bundle that `dramatis` and docs tell how to check without us.")
GONE = {410: "erased", 409: "refused"}
MOMENT: dict[str, Shape] = {
    "agent": slug(description="Needed."),
    "channel": slug(description="Needed."),
    "label": slug(maxLength=40, default=PRODUCTION),
    "at": moment(description="A moment that has passed; needed."),
}


def by_row(call: Call, key: int) -> Answer:
    return given(call, replayed(labelled_entry(call, key)))


def by_moment(call: Call) -> Answer:
    said = call.query
    if missing := [name for name in MOMENT if name not in said]:
        raise wrong("This is needed.", missing[0])
    if said["at"] > timezone.now():
        raise wrong("Name a moment that has passed.", "at")
    refuse_label(call, said["label"])
    prompt = found_prompt(call, said["agent"], said["channel"])
    # Databases take no offsets as wide as those that can be written.
    return given(call, replay_prompt(prompt, said["at"].astimezone(UTC), said["label"]))


def evidence(call: Call, key: int) -> Answer:
    return answered(evidence_of(replayed(labelled_entry(call, key))))


def labelled_entry(call: Call, key: int) -> LedgerEntry:
    """Keys that are limited to labels get no words of others."""
    entry = visible_entry(call, key)
    refuse_label(call, entry.label.partition("@")[0])
    return entry


def given(call: Call, replay: Replay) -> Answer:
    """The very bytes, or none."""
    replay.refuse_other()
    said: dict[str, Any] = {
        "agent": replay.prompt.agent.slug,
        "channel": replay.prompt.channel.slug,
        "label": replay.label,
        "at": moment_told(replay.at),
        "version": ref(replay.version),
        "digest": replay.digest,
        "recorded_digest": replay.recorded,
        "text": replay.text,
        "stretches": stretches_told(call.workspace, replay.segments),
        "row": replay.entry and row_told(replay.entry),
        "moved_at": replay.move and moment_told(replay.move.at),
    }
    return answered(said)


def wrong(said: str, parameter: str) -> ProblemError:
    return ProblemError(invalid([FieldError(said, parameter=parameter)]))


COMMON: dict[str, Any] = {"tag": "ledger", "budget": "render", "refusals": GONE}
urlpatterns: list[URLPattern] = [
    endpoint(
        "ledger/<int:key>/replay",
        "ledger-replay",
        get=Operation(by_row, "The very bytes that were handed out", bots=True, answer=REPLAY, **COMMON),
    ),
    endpoint(
        "ledger/<int:key>/evidence",
        "ledger-evidence",
        get=Operation(evidence, "What proves a row of the ledger", bots=True, answer=EVIDENCE, **COMMON),
    ),
    endpoint(
        "replay",
        "replay",
        get=Operation(
            by_moment,
            "What a label pointed at in a moment",
            answer=REPLAY,
            query=MOMENT,
            **COMMON | {"refusals": {**GONE, 404: "not_found"}},
        ),
    ),
]
