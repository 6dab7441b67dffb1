"""Gives again what an agent was told: the very bytes of a fetch, or what a label pointed at in a moment."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from hashlib import sha256

from django.utils import timezone
from django.utils.translation import gettext as _

# Each layout registers the renderers of its slots when it is imported.
import prompts.assembly.layouts  # noqa: F401
from personas.errors import InvalidInput
from personas.models import Erasure, Workspace
from personas.ui.display_names import get_display_name
from prompts.assembly.segments import Segment
from prompts.assembly.slots import fill_segments
from prompts.errors import FetchNotFound, LedgerRowExpired, NoPromptAtTime, PromptErased, ReplayMismatch
from prompts.models import (
    LATEST,
    PRODUCTION,
    AgentPrompt,
    LabelMove,
    LedgerEntry,
    LedgerRollOff,
    PromptVersion,
)
from prompts.serving import slots_from_json
from prompts.versions.segments import list_content_digests, unpack_segments
from prompts.versions.selectors import get_contents

ENTRY_RELATIONS = ("prompt__agent", "prompt__channel", "version", "key")
# No row has a larger id, and no database compares with one.
MAX_ID = 2**63 - 1


@dataclass(frozen=True)
class Replay:
    """What was told then; with the row of its ledger, or of a moment in which perhaps nobody asked."""

    version: PromptVersion
    label: str
    at: datetime
    # As they were handed out, slots filled; of a moment, and of erased words, as they were built.
    segments: tuple[Segment, ...]
    entry: LedgerEntry | None = None
    # What put the label there; builds alone move `latest`.
    move: LabelMove | None = None
    erasures: Sequence[Erasure] = ()
    # Why the slots could not be filled again.
    problem: str = ""

    @property
    def prompt(self) -> AgentPrompt:
        return self.version.prompt

    @cached_property
    def text(self) -> str:
        return "".join([segment.text for segment in self.segments])

    @cached_property
    def digest(self) -> str:
        return sha256(self.text.encode()).hexdigest()

    @property
    def recorded(self) -> str:
        """The digest that was written down at the time."""
        return self.entry.served_digest if self.entry else self.version.text_digest

    @property
    def is_erased(self) -> bool:
        return bool(self.erasures)

    @property
    def is_exact(self) -> bool:
        """Whether these are the bytes that were recorded."""
        return not self.problem and self.digest == self.recorded

    def refuse_other(self) -> None:
        """Raise unless these are the very bytes."""
        if self.is_erased:
            raise PromptErased(describe_erasures(self.erasures))
        if not self.is_exact:
            raise ReplayMismatch(describe_mismatch(self))


def describe_erasures(erasures: Sequence[Erasure]) -> str:
    said = "; ".join(
        _("%(kind)s %(number)s on %(day)s: %(reason)s")
        % {
            "kind": get_display_name(one.kind).lower(),
            "number": one.object_id,
            "day": f"{one.at:%Y-%m-%d}",
            "reason": one.reason,
        }
        for one in erasures
    )
    return _("Words of this prompt were erased since, and cannot be given again (%(said)s).") % {"said": said}


def describe_mismatch(replay: Replay) -> str:
    why = replay.problem or _("they have the digest %(digest)s") % {"digest": replay.digest}
    return _("These are NOT the bytes that were recorded with the digest %(digest)s: %(why)s.") % {
        "digest": replay.recorded,
        "why": why,
    }


# --- by the ledger -------------------------------------------------------------------------------------


def replay_entry(workspace: Workspace, ledger_id: int) -> Replay:
    """The bytes of one row of the ledger, built from what is stored."""
    return build_replay(get_ledger_entry(workspace, ledger_id))


def get_ledger_entry(workspace: Workspace, ledger_id: int) -> LedgerEntry:
    rows = LedgerEntry.objects.in_workspace(workspace).select_related(*ENTRY_RELATIONS)
    entry = rows.filter(pk=ledger_id).first() if 0 < ledger_id <= MAX_ID else None
    if entry is not None:
        return entry
    notes = LedgerRollOff.objects.in_workspace(workspace)
    gone = (
        notes.filter(first_id__lte=ledger_id, last_id__gte=ledger_id).first() if ledger_id <= MAX_ID else None
    )
    if gone is None:
        raise FetchNotFound(_("There is no row %(row)s in this ledger.") % {"row": ledger_id})
    said = _("Row %(row)s was let go on %(day)s: the ledger was kept for %(months)s months.")
    raise LedgerRowExpired(said % {"row": ledger_id, "day": f"{gone.at:%Y-%m-%d}", "months": gone.months})


def list_request_entries(workspace: Workspace, request_id: str) -> list[LedgerEntry]:
    """What was handed out under a request id, oldest first; one request may ask for many prompts."""
    rows = LedgerEntry.objects.in_workspace(workspace).filter(request_id=request_id)
    found = list(rows.select_related(*ENTRY_RELATIONS).order_by("pk")[:100])
    if not found:
        gone = LedgerRollOff.objects.in_workspace(workspace).exists()
        asked = {"request": request_id[:80]}
        said = _("Nothing was handed out here under the request id “%(request)s”.") % asked
        more = _("Rows older than %(months)s months were let go.") % {"months": workspace.ledger_months}
        raise FetchNotFound(f"{said} {more}" if gone else said)
    return found


def build_replay(entry: LedgerEntry) -> Replay:
    version = entry.version
    version.prompt = entry.prompt
    built, erasures = load_built_segments(version)
    said, problem = built, ""
    if not erasures:
        try:
            said = fill_segments(built, slots_from_json(entry.slots))
        except Exception as error:  # noqa: BLE001  # whatever a renderer of today makes of it, the page must say
            fault = {"fault": type(error).__name__}
            problem = _("its slots cannot be filled any more (%(fault)s)") % fault
    return Replay(version, entry.label, entry.at, said, entry, None, erasures, problem)


# --- by a moment ---------------------------------------------------------------------------------------


def replay_prompt_by_slugs(
    workspace: Workspace, agent: str, channel: str, at: datetime, label: str = PRODUCTION
) -> Replay:
    """What a label of an agent's prompt on a channel pointed at then."""
    rows = AgentPrompt.objects.in_workspace(workspace).select_related("agent", "channel", "latest")
    prompt = rows.filter(agent__slug=agent, channel__slug=channel).first()
    if prompt is None:
        raise NoPromptAtTime(
            _("“%(agent)s” never had a prompt on “%(channel)s”.") % {"agent": agent, "channel": channel}
        )
    return replay_prompt(prompt, at, label)


def replay_prompt(prompt: AgentPrompt, at: datetime, label: str = PRODUCTION) -> Replay:
    """As it was built then: slots stand in it as they were before any call."""
    if at.tzinfo is None or at > timezone.now():
        raise InvalidInput.on("at", _("Name a moment that has passed."))
    move, version = (
        (None, get_latest_version_at(prompt, at))
        if label == LATEST
        else get_label_version_at(prompt, label, at)
    )
    version.prompt = prompt
    segments, erasures = load_built_segments(version)
    return Replay(version, label, at, segments, None, move, erasures)


def get_latest_version_at(prompt: AgentPrompt, at: datetime) -> PromptVersion:
    rows = PromptVersion.objects.in_workspace(prompt.workspace_id).filter(prompt=prompt)
    version = rows.filter(created_at__lte=at).order_by("-created_at", "-number").first()
    if version is None:
        raise NoPromptAtTime(
            _("There was no version yet: %(beginning)s.") % {"beginning": describe_first_version(prompt)}
        )
    return version


def get_label_version_at(prompt: AgentPrompt, label: str, at: datetime) -> tuple[LabelMove, PromptVersion]:
    rows = LabelMove.objects.in_workspace(prompt.workspace_id).filter(prompt=prompt, label=label)
    move = rows.filter(at__lte=at).order_by("-at", "-sequence").select_related("version").first()
    if move is None:
        raise NoPromptAtTime(
            _("“%(label)s” pointed at nothing yet: %(beginning)s.")
            % {"label": label, "beginning": describe_first_version(prompt)}
        )
    if move.version is None:
        said = _("“%(label)s” was taken off on %(moment)s UTC, and pointed at nothing.")
        raise NoPromptAtTime(said % {"label": label, "moment": f"{move.at:%Y-%m-%d %H:%M}"})
    return move, move.version


def describe_first_version(prompt: AgentPrompt) -> str:
    rows = PromptVersion.objects.in_workspace(prompt.workspace_id).filter(prompt=prompt, number=1)
    first = rows.values_list("created_at", flat=True).first()
    if first is None:
        return _("none was ever built")
    return _("the first version was built on %(moment)s UTC") % {"moment": f"{first:%Y-%m-%d %H:%M:%S}"}


# --- words ---------------------------------------------------------------------------------------------


def load_built_segments(version: PromptVersion) -> tuple[tuple[Segment, ...], Sequence[Erasure]]:
    """As they were built, and the erasures that have taken words from them."""
    contents = get_contents(version.workspace_id, list_content_digests(version.segments))
    gone = {digest for digest, data in contents.items() if data is None}
    return unpack_segments(version.segments, contents), list_version_erasures(version, gone) if gone else ()


def list_version_erasures(version: PromptVersion, gone: set[str]) -> Sequence[Erasure]:
    rows = Erasure.objects.in_workspace(version.workspace_id).order_by("at")
    return [row for row in rows if gone & set(row.digests)]
