"""Hands out a prompt: fill, seal, record, and only then let the words go."""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

import structlog
from django.db import Error as DatabaseFailure
from django.utils import timezone

from prompts.assembly.slots import Slots
from prompts.proof.canonical import bytes_digest, canonical_json
from prompts.proof.hashed_rows import SLOTS_DOMAIN, LedgerRow
from prompts.serving.cache import (
    PROCESS_CACHE,
    CachedVersion,
    ResolutionKey,
    ServingCache,
    get_cached_version,
)
from prompts.serving.errors import ServingUnavailable
from prompts.serving.ledger_insert import LedgerValues, insert_ledger_row
from prompts.serving.rendered_prompt import RenderedPrompt
from prompts.serving.request import (
    EMPTY_SLOTS,
    CallContext,
    Client,
    PromptRequest,
    RateLimitCheck,
    RateLimitOnce,
    allow_all,
)
from prompts.serving.resolve import Resolution, check_key_format, resolve_request
from prompts.serving.slots import build_clock_slots, fill_clock, normalize_slots

log = structlog.get_logger(__name__)

# A label that moves more often than this between two statements is not moved by people.
MAX_ATTEMPTS = 4
INVALID_ID_CHARACTERS = re.compile(r"[^\x21-\x7e]")
MAX_REQUEST_ID_LENGTH = 64


# Told the ids of key, if it is one, and workspace before anything is written.
@dataclass(frozen=True)
class ServedPrompt:
    """A prompt that stands in the ledger; without words when the caller had them already."""

    ledger_id: int
    row: LedgerRow
    words: CachedVersion
    sheet: RenderedPrompt
    # The facts of the call as they were recorded, and the same as JSON.
    slots: Slots
    slots_json: str
    # Nothing was said by the caller.
    is_plain: bool
    key_id: int | None

    @property
    def status(self) -> int:
        return self.row.status

    @property
    def text(self) -> str:
        return self.sheet.text if self.row.status == 200 else ""

    @property
    def at(self) -> datetime:
        return self.row.at

    @property
    def request_id(self) -> str:
        return self.row.request_id

    @property
    def served_digest(self) -> str:
        return self.row.served

    @property
    def size(self) -> int:
        return self.row.size

    @property
    def version_id(self) -> int:
        return self.words.version_id

    @property
    def number(self) -> int:
        return self.words.number

    @property
    def digest(self) -> str:
        return self.words.digest

    @property
    def layout(self) -> str:
        return self.words.layout

    @property
    def tokens(self) -> int:
        return self.words.tokens

    @property
    def created_at(self) -> datetime:
        return self.words.created_at

    @property
    def tools(self) -> str:
        return self.words.tools

    @property
    def etag(self) -> str:
        """Weak: it names the version, while time and other slots differ from call to call."""
        return f'W/"{self.words.digest}"'


class PreparedPrompt(NamedTuple):
    """Words ready to go, and the row that must be there first."""

    sheet: RenderedPrompt
    slots: Slots
    facts: LedgerValues


def serve_prompt(
    reader: Client,
    wanted: PromptRequest,
    call: CallContext,
    *,
    admit: RateLimitCheck = allow_all,
    recall: ServingCache = PROCESS_CACHE,
) -> ServedPrompt:
    """The prompt for this caller, recorded; else Refused or ServingDown. Call it outside of transactions.

    One statement when the process has served the same before. An unchanged version is answered by a row of
    status 304 and no words; the row then names the digest of what the words would have been. `admit` may
    raise what it likes against a key that asks too often.
    """
    try:
        return _serve_with_retries(reader, wanted, call, admit, recall)
    except DatabaseFailure as error:
        reason = str(error).partition("\n")[0]
        log.error("ledger_write_failed", reason=reason)  # noqa: TRY400  # further lines may quote the row
        raise ServingUnavailable from error


def _serve_with_retries(
    reader: Client, wanted: PromptRequest, call: CallContext, admit: RateLimitCheck, recall: ServingCache
) -> ServedPrompt:
    question: ResolutionKey = (reader.name, wanted.agent, wanted.channel, wanted.label, wanted.verb)
    toll = RateLimitOnce(admit)
    for _ in range(MAX_ATTEMPTS):
        guess = recall.guesses.find(question) if wanted.at is None else None
        is_known = guess is not None
        guess = guess or _check_and_resolve(reader, wanted, toll.pay)
        toll.pay(guess.key_id, guess.workspace_id)
        words = get_cached_version(recall, guess.workspace_id, guess.version_id, guess.erasures)
        draft = _prepare_prompt(wanted, guess, words, call)
        ledger_id = insert_ledger_row(reader, wanted, guess, draft.facts)
        if ledger_id is not None:
            if wanted.at is None and not is_known:
                recall.guesses.store(question, guess)
            return _build_served_prompt(ledger_id, draft, words, call, guess)
        recall.guesses.discard(question)
    log.error("ledger_write_failed", reason="the label would not stand still")
    raise ServingUnavailable


def _check_and_resolve(reader: Client, wanted: PromptRequest, admit: RateLimitCheck) -> Resolution:
    check_key_format(reader)
    return resolve_request(reader, wanted, admit)


def _prepare_prompt(
    wanted: PromptRequest, guess: Resolution, words: CachedVersion, call: CallContext
) -> PreparedPrompt:
    now = timezone.now()
    if call.slots is EMPTY_SLOTS:
        slots, facts = build_clock_slots(now, words.timezone)
    else:
        slots, facts = normalize_slots(fill_clock(call.slots, now, words.timezone))
    sheet, stored = words.sheet(slots), canonical_json(facts)
    row = LedgerRow(
        workspace=guess.workspace_id,
        # Not known yet, and not covered by the seal.
        id=0,
        key=guess.reader,
        agent=guess.agent_id,
        channel=guess.channel_id,
        label=wanted.recorded_label,
        version=words.version_id,
        number=words.number,
        slots=bytes_digest(SLOTS_DOMAIN, stored),
        served=sheet.digest,
        size=sheet.size,
        status=304 if call.has(words.digest) else 200,
        request_id=INVALID_ID_CHARACTERS.sub("", call.request_id)[:MAX_REQUEST_ID_LENGTH],
        at=now,
    )
    return PreparedPrompt(sheet, slots, LedgerValues(row, stored.decode()))


def _build_served_prompt(
    ledger_id: int, draft: PreparedPrompt, words: CachedVersion, call: CallContext, guess: Resolution
) -> ServedPrompt:
    (row, stored), is_plain = draft.facts, call.slots is EMPTY_SLOTS
    return ServedPrompt(ledger_id, row, words, draft.sheet, draft.slots, stored, is_plain, guess.key_id)
