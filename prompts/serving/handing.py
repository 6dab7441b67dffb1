"""Hands out a prompt: fill, seal, record, and only then let the words go."""

import re
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Any

import structlog
from django.db import Error as DatabaseFailure
from django.utils import timezone

from prompts.assembly.slots import fill
from prompts.proof.canonical import digest
from prompts.proof.rows import SLOTS, LedgerRow
from prompts.proving import reader_of
from prompts.serving.asking import Call, Reader, Wanted
from prompts.serving.call_facts import settled, slots_json, with_clock
from prompts.serving.recalling import PROCESS, Question, Recall
from prompts.serving.recording import record
from prompts.serving.refusals import ServingDown
from prompts.serving.resolving import Guess, refuse_malformed, resolve
from prompts.serving.words import Words, words_of

log = structlog.get_logger(__name__)

# A label that moves more often than this between two statements is not moved by people.
TRIES = 4
NOT_FOR_IDS = re.compile(r"[^\x21-\x7e]")
ID_LENGTH = 64


@dataclass(frozen=True)
class Served:
    """A prompt that stands in the ledger; without words when the caller had them already."""

    status: int
    text: str
    ledger_id: int
    at: datetime
    request_id: str
    served_digest: str
    size: int
    version_id: int
    number: int
    digest: str
    layout: str
    tokens: int
    created_at: datetime
    tools: str

    @property
    def etag(self) -> str:
        """Weak: it names the version, while time and other slots differ from call to call."""
        return f'W/"{self.digest}"'


@dataclass(frozen=True)
class Draft:
    """Words ready to go, and the row that must be there first."""

    text: str
    slots: dict[str, Any]
    row: LedgerRow


def hand_out(reader: Reader, wanted: Wanted, call: Call, *, recall: Recall = PROCESS) -> Served:
    """The prompt for this caller, recorded; else Refused or ServingDown. Call it outside of transactions.

    One statement when the process has served the same before. An unchanged version is answered by a row of
    status 304 and no words; the row then names the digest of what the words would have been.
    """
    refuse_malformed(reader)
    try:
        return _attempt(reader, wanted, call, recall)
    except DatabaseFailure as error:
        reason = str(error).partition("\n")[0]
        log.error("prompt_not_recorded", reason=reason)  # noqa: TRY400  # further lines may quote the row
        raise ServingDown from error


def _attempt(reader: Reader, wanted: Wanted, call: Call, recall: Recall) -> Served:
    question: Question = (reader.name, wanted.agent, wanted.channel, wanted.label, wanted.verb)
    for _ in range(TRIES):
        guess = recall.guesses.get(question) if wanted.at is None else None
        guess = guess or resolve(reader, wanted)
        words = words_of(recall, guess.workspace_id, guess.version_id, guess.erasures)
        draft = _drafted(wanted, guess, words, call)
        ledger_id = record(reader, wanted, guess, draft.row, draft.slots)
        if ledger_id is not None:
            if wanted.at is None:
                recall.guesses.put(question, guess)
            return _served(ledger_id, draft, words)
        recall.guesses.drop(question)
    log.error("prompt_not_recorded", reason="the label would not stand still")
    raise ServingDown


def _drafted(wanted: Wanted, guess: Guess, words: Words, call: Call) -> Draft:
    now = timezone.now()
    slots = settled(with_clock(call.slots, now, words.timezone))
    text, facts = fill(words.stretches, slots), slots_json(slots)
    data = text.encode()
    row = LedgerRow(
        workspace=guess.workspace_id,
        # Not known yet, and not covered by the seal.
        id=0,
        key=reader_of(guess.key_id, guess.user_id, guess.reader_label),
        agent=guess.agent_id,
        channel=guess.channel_id,
        label=wanted.recorded_label,
        version=words.version_id,
        number=words.number,
        slots=digest(SLOTS, facts),
        served=sha256(data).hexdigest(),
        size=len(data),
        status=304 if call.known_digest == words.digest else 200,
        request_id=NOT_FOR_IDS.sub("", call.request_id)[:ID_LENGTH],
        at=now,
    )
    return Draft(text, facts, row)


def _served(ledger_id: int, draft: Draft, words: Words) -> Served:
    row = draft.row
    return Served(
        status=row.status,
        text=draft.text if row.status == 200 else "",
        ledger_id=ledger_id,
        at=row.at,
        request_id=row.request_id,
        served_digest=row.served,
        size=row.size,
        version_id=words.version_id,
        number=words.number,
        digest=words.digest,
        layout=words.layout,
        tokens=words.tokens,
        created_at=words.created_at,
        tools=words.tools,
    )
