"""Replay served prompts: the exact bytes of a fetch, or the version that a label pointed to at a time."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from hashlib import sha256

from django.utils import timezone
from django.utils.translation import gettext as _

from core.salted_digests import salt_digest
from personas.models import Erasure, Workspace
from prompts.assembly.segments import RELEASE, Segment
from prompts.assembly.slots import fill_segments
from prompts.errors import (
    FetchNotFound,
    LedgerRowExpired,
    NoPromptAtTime,
    NoSuchLabelAtTime,
    PromptErased,
    ReplayMismatch,
)
from prompts.evidence.ledger.served_salts import get_served_salt
from prompts.models import (
    LATEST,
    PRODUCTION,
    AgentPrompt,
    LabelMove,
    LedgerEntry,
    LedgerExpiry,
    PromptVersion,
)
from prompts.proof.call_values import MissingCallValue
from prompts.publishing.versions.selectors import (
    decode_skill_file,
    get_content_salts,
    get_text_salt,
    load_skill_files,
)
from prompts.publishing.versions.stored_inputs import build_call_prompt
from prompts.publishing.versions.tool_definitions import DefinitionJson, list_definitions_json
from prompts.publishing.versions.version_contents import describe_erasures, load_version_contents
from prompts.serving.call_contents.selectors import get_call_values
from prompts.serving.response_body import select_call_tools
from prompts.serving.slot_values import slots_from_json

ENTRY_RELATIONS = ("prompt__agent", "prompt__channel", "version", "key")
# Largest value of a bigint column. Databases reject a larger number as a query parameter.
MAX_ID = 2**63 - 1


@dataclass(frozen=True)
class Replay:
    """A replayed prompt, either of a ledger row or of a point in time."""

    version: PromptVersion
    label: str
    at: datetime
    # For a ledger row: as served, with slots filled. For a point in time, or if text was erased or the slots
    # could not be filled: as built, with placeholders.
    segments: tuple[Segment, ...]
    entry: LedgerEntry | None = None
    # For a replay by time: the label move that selected the version. None for `latest`, which has no moves
    # because it is always the newest version.
    move: LabelMove | None = None
    erasures: Sequence[Erasure] = ()
    # Why the slots of a ledger row could not be filled; empty if they were.
    problem: str = ""
    # The tool definitions that are sent with the text: for a ledger row, those that the call selected. None
    # if they were erased.
    tools: Sequence[DefinitionJson] | None = ()
    # The salt of the recorded digest; empty if text was erased or the slots could not be filled.
    salt: str = ""

    @property
    def prompt(self) -> AgentPrompt:
        return self.version.prompt

    @cached_property
    def text(self) -> str:
        return "".join([segment.text for segment in self.segments])

    @cached_property
    def digest(self) -> str:
        """The plain SHA-256 of the text."""
        return sha256(self.text.encode()).hexdigest()

    @property
    def salted_digest(self) -> str:
        """The digest of the text in the form in which it is recorded."""
        return salt_digest(self.digest, self.salt)

    @property
    def recorded_digest(self) -> str:
        """The digest that was recorded when the prompt was served or, for a replay by time, built."""
        return self.entry.served_digest if self.entry else self.version.text_digest

    @property
    def is_erased(self) -> bool:
        return bool(self.erasures)

    @property
    def is_exact(self) -> bool:
        """Whether the replayed bytes match the recorded digest."""
        return not self.problem and self.salted_digest == self.recorded_digest

    def require_exact(self) -> None:
        """Raise unless the replayed bytes match the recorded digest."""
        if self.is_erased:
            raise PromptErased(describe_erasures(self.erasures))
        if not self.is_exact:
            raise ReplayMismatch(describe_mismatch(self))


def describe_mismatch(replay: Replay) -> str:
    why = replay.problem or _("its digest is %(digest)s") % {"digest": replay.salted_digest}
    return _("The text does not match the recorded digest %(digest)s: %(why)s.") % {
        "digest": replay.recorded_digest,
        "why": why,
    }


# --- by ledger row -------------------------------------------------------------------------------------


def replay_entry(workspace: Workspace, ledger_id: int) -> Replay:
    """Replay a ledger row from the stored segments and slots."""
    return build_replay(get_ledger_entry(workspace, ledger_id))


def get_ledger_entry(workspace: Workspace, ledger_id: int) -> LedgerEntry:
    rows = LedgerEntry.objects.in_workspace(workspace).select_related(*ENTRY_RELATIONS)
    entry = rows.filter(pk=ledger_id).first() if 0 < ledger_id <= MAX_ID else None
    if entry is not None:
        return entry
    expiries = LedgerExpiry.objects.in_workspace(workspace)
    expired = (
        expiries.filter(first_id__lte=ledger_id, last_id__gte=ledger_id).first()
        if ledger_id <= MAX_ID
        else None
    )
    if expired is None:
        raise FetchNotFound(_("The ledger has no row %(row)s. Check the number.") % {"row": ledger_id})
    message = _("Row %(row)s was deleted on %(day)s, after the retention period of %(months)s months.")
    raise LedgerRowExpired(
        message % {"row": ledger_id, "day": f"{expired.at:%Y-%m-%d}", "months": expired.months}
    )


def list_request_entries(workspace: Workspace, request_id: str) -> list[LedgerEntry]:
    """List the ledger rows of a request id, oldest first; one request may fetch many prompts."""
    rows = LedgerEntry.objects.in_workspace(workspace).filter(request_id=request_id)
    entries = list(rows.select_related(*ENTRY_RELATIONS).order_by("pk")[:100])
    if not entries:
        has_expired_rows = LedgerExpiry.objects.in_workspace(workspace).exists()
        values = {"request": request_id[:80]}
        message = _("No fetch has the request ID “%(request)s”.") % values
        hint = _("Rows older than %(months)s months were deleted.") % {"months": workspace.ledger_months}
        raise FetchNotFound(f"{message} {hint}" if has_expired_rows else message)
    return entries


def build_replay(entry: LedgerEntry) -> Replay:
    version = entry.version
    version.prompt = entry.prompt
    if entry.skill is not None:
        return build_skill_replay(entry, entry.skill)
    built, erasures, tools = load_version_contents(version)
    segments, problem = built, ""
    if not erasures:
        try:
            slots = slots_from_json(get_call_values(entry))
            prompt = build_call_prompt(version, slots)
            if prompt is not None:
                built, tools = prompt.segments, list_definitions_json(prompt.tools)
            tools = None if tools is None else select_call_tools(tools, slots.tools)[0]
            segments = fill_segments(built, slots)
        except MissingCallValue as error:
            problem = _("the value that the call sent for %(field)s is no longer stored") % {
                "field": error.args[0]
            }
        except Exception as error:  # noqa: BLE001  # the page shows any error of a current renderer
            fault = {"fault": type(error).__name__}
            problem = _("the slots can no longer be filled (%(fault)s)") % fault
    salt = "" if erasures or problem else get_served_salt(entry)
    return Replay(version, entry.label, entry.at, segments, entry, None, erasures, problem, tools, salt)


def build_skill_replay(entry: LedgerEntry, name: str) -> Replay:
    """Replay a skill file: the content of the version under this name, as one segment."""
    version = entry.version
    segments = get_skill_segments(version, name)
    if not segments:
        problem = _("the file of the skill %(name)s is no longer stored") % {"name": name}
        return Replay(version, entry.label, entry.at, (), entry, problem=problem)
    salt = get_content_salts(version.workspace_id, [entry.served_digest]).get(entry.served_digest, "")
    return Replay(version, entry.label, entry.at, segments, entry, salt=salt)


def get_skill_segments(version: PromptVersion, name: str) -> tuple[Segment, ...]:
    """Return the file that a version offers under this name as one segment; empty if it offers none."""
    return tuple(
        [
            Segment("skill_file", decode_skill_file(file.data), file.origin, RELEASE)
            for file in load_skill_files(version)
            if file.name == name
        ]
    )


# --- by time -------------------------------------------------------------------------------------------


def replay_prompt_by_slugs(
    workspace: Workspace, agent: str, channel: str, at: datetime, label: str = PRODUCTION
) -> Replay:
    """Replay the version that a label of an agent's prompt on a channel pointed to at a time."""
    rows = AgentPrompt.objects.in_workspace(workspace).select_related("agent", "channel", "latest")
    prompt = rows.filter(agent__slug=agent, channel__slug=channel).first()
    if prompt is None:
        raise NoPromptAtTime(
            _("“%(agent)s” never had a prompt on “%(channel)s”.") % {"agent": agent, "channel": channel}
        )
    return replay_prompt(prompt, at, label)


def replay_prompt(prompt: AgentPrompt, at: datetime, label: str = PRODUCTION) -> Replay:
    """Replay the version that a label pointed to at a time, as built: its slots are not filled."""
    if at.tzinfo is None or at > timezone.now():
        raise NoPromptAtTime(_("Enter a time in the past."))
    move, version = (
        (None, get_latest_version_at(prompt, at))
        if label == LATEST
        else get_label_version_at(prompt, label, at)
    )
    version.prompt = prompt
    segments, erasures, tools = load_version_contents(version)
    return Replay(
        version, label, at, segments, None, move, erasures, tools=tools, salt=get_text_salt(version)
    )


def get_latest_version_at(prompt: AgentPrompt, at: datetime) -> PromptVersion:
    rows = PromptVersion.objects.in_workspace(prompt.workspace_id).filter(prompt=prompt)
    version = rows.filter(created_at__lte=at).order_by("-created_at", "-number").first()
    if version is None:
        raise NoPromptAtTime(
            _("There was no version at that time: %(beginning)s.")
            % {"beginning": describe_first_version(prompt)}
        )
    return version


def get_label_version_at(prompt: AgentPrompt, label: str, at: datetime) -> tuple[LabelMove, PromptVersion]:
    rows = LabelMove.objects.in_workspace(prompt.workspace_id).filter(prompt=prompt, label=label)
    move = rows.filter(at__lte=at).order_by("-at", "-sequence").select_related("version").first()
    if move is None and not rows.exists():
        raise NoSuchLabelAtTime(_("This prompt never had a label “%(label)s”.") % {"label": label})
    if move is None:
        raise NoPromptAtTime(
            _("“%(label)s” did not exist yet: %(beginning)s.")
            % {"label": label, "beginning": describe_first_version(prompt)}
        )
    if move.version is None:
        message = _("“%(label)s” was removed on %(moment)s UTC.")
        raise NoPromptAtTime(message % {"label": label, "moment": f"{move.at:%Y-%m-%d %H:%M}"})
    return move, move.version


def describe_first_version(prompt: AgentPrompt) -> str:
    rows = PromptVersion.objects.in_workspace(prompt.workspace_id).filter(prompt=prompt, number=1)
    first = rows.values_list("created_at", flat=True).first()
    if first is None:
        return _("no version was ever built")
    return _("the first version was built on %(moment)s UTC") % {"moment": f"{first:%Y-%m-%d %H:%M:%S}"}
