"""Hands out a prompt: fill, seal, record, and only then let the words go."""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

import structlog
from django.db import Error as DatabaseFailure
from django.utils import timezone

from prompts.assembly.slots import Slots
from prompts.proof.canonical import bytes_digest, canonical
from prompts.proof.hashed_rows import SLOTS, LedgerRow
from prompts.serving.cache import PROCESS, Question, Recall, Words, words_of
from prompts.serving.errors import ServingDown
from prompts.serving.ledger_insert import Facts, record
from prompts.serving.rendered_prompt import Sheet
from prompts.serving.request import PLAIN, Admit, Call, Reader, Toll, Wanted, everybody
from prompts.serving.resolve import Guess, refuse_malformed, resolve
from prompts.serving.slots import clock_alone, settled, with_clock

log = structlog.get_logger(__name__)

# A label that moves more often than this between two statements is not moved by people.
TRIES = 4
NOT_FOR_IDS = re.compile(r"[^\x21-\x7e]")
ID_LENGTH = 64


# Told the ids of key, if it is one, and workspace before anything is written.
@dataclass(frozen=True)
class Served:
    """A prompt that stands in the ledger; without words when the caller had them already."""

    ledger_id: int
    row: LedgerRow
    words: Words
    sheet: Sheet
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


class Draft(NamedTuple):
    """Words ready to go, and the row that must be there first."""

    sheet: Sheet
    slots: Slots
    facts: Facts


def hand_out(
    reader: Reader, wanted: Wanted, call: Call, *, admit: Admit = everybody, recall: Recall = PROCESS
) -> Served:
    """The prompt for this caller, recorded; else Refused or ServingDown. Call it outside of transactions.

    One statement when the process has served the same before. An unchanged version is answered by a row of
    status 304 and no words; the row then names the digest of what the words would have been. `admit` may
    raise what it likes against a key that asks too often.
    """
    try:
        return _attempt(reader, wanted, call, admit, recall)
    except DatabaseFailure as error:
        reason = str(error).partition("\n")[0]
        log.error("prompt_not_recorded", reason=reason)  # noqa: TRY400  # further lines may quote the row
        raise ServingDown from error


def _attempt(reader: Reader, wanted: Wanted, call: Call, admit: Admit, recall: Recall) -> Served:
    question: Question = (reader.name, wanted.agent, wanted.channel, wanted.label, wanted.verb)
    toll = Toll(admit)
    for _ in range(TRIES):
        guess = recall.guesses.find(question) if wanted.at is None else None
        is_known = guess is not None
        guess = guess or _resolved(reader, wanted, toll.pay)
        toll.pay(guess.key_id, guess.workspace_id)
        words = words_of(recall, guess.workspace_id, guess.version_id, guess.erasures)
        draft = _drafted(wanted, guess, words, call)
        ledger_id = record(reader, wanted, guess, draft.facts)
        if ledger_id is not None:
            if wanted.at is None and not is_known:
                recall.guesses.store(question, guess)
            return _served(ledger_id, draft, words, call, guess)
        recall.guesses.discard(question)
    log.error("prompt_not_recorded", reason="the label would not stand still")
    raise ServingDown


def _resolved(reader: Reader, wanted: Wanted, admit: Admit) -> Guess:
    refuse_malformed(reader)
    return resolve(reader, wanted, admit)


def _drafted(wanted: Wanted, guess: Guess, words: Words, call: Call) -> Draft:
    now = timezone.now()
    if call.slots is PLAIN:
        slots, facts = clock_alone(now, words.timezone)
    else:
        slots, facts = settled(with_clock(call.slots, now, words.timezone))
    sheet, stored = words.sheet(slots), canonical(facts)
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
        slots=bytes_digest(SLOTS, stored),
        served=sheet.digest,
        size=sheet.size,
        status=304 if call.has(words.digest) else 200,
        request_id=NOT_FOR_IDS.sub("", call.request_id)[:ID_LENGTH],
        at=now,
    )
    return Draft(sheet, slots, Facts(row, stored.decode()))


def _served(ledger_id: int, draft: Draft, words: Words, call: Call, guess: Guess) -> Served:
    (row, stored), is_plain = draft.facts, call.slots is PLAIN
    return Served(ledger_id, row, words, draft.sheet, draft.slots, stored, is_plain, guess.key_id)
