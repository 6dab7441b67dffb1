"""Serve a prompt: resolve the request, fill the slots, write the ledger row, and then return the text."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

import structlog
from django.conf import settings
from django.db import Error as DatabaseFailure

from core.db.database_clock import PROCESS_CLOCK
from core.salted_digests import salt_digest
from personas.contents.services import SaltedDigest
from personas.errors import DomainError
from prompts.assembly.call_inputs import changes_inputs
from prompts.assembly.slots import Message, Slots
from prompts.proof.canonical import bytes_digest
from prompts.proof.hashed_rows import SLOTS_DOMAIN, LedgerRow
from prompts.proof.text_salts import combine_served_salts
from prompts.serving.cache import (
    PROCESS_CACHE,
    CachedVersion,
    ResolutionKey,
    ServingCache,
    get_cached_version,
)
from prompts.serving.call_build import build_for_call, get_version_inputs, mask_call_data
from prompts.serving.call_contents.services import store_call_data
from prompts.serving.call_slots import (
    PreparedSlots,
    prepare_call_slots,
    prepare_clock_slots,
    select_used_slots,
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
    Resolution,
    allow_all,
)
from prompts.serving.resolve import check_key_format, resolve_request
from prompts.serving.warnings import combine_warnings

log = structlog.get_logger(__name__)

# An attempt fails if the resolution is outdated when the row is inserted, for example because the label was
# moved in between, or if the clock is wrong. On a busy machine, with a label that is moved several times a
# second, four attempts in a row were seen to fail.
MAX_ATTEMPTS = 12
INVALID_ID_CHARACTERS = re.compile(r"[^\x21-\x7e]")
MAX_REQUEST_ID_LENGTH = 64
NO_DIGESTS: Mapping[str, SaltedDigest] = {}


@dataclass(frozen=True)
class ServedPrompt:
    """A served prompt, whose ledger row is committed.

    If the client already has this version, the status is 304 and the text is empty.
    """

    # 0 if the prompt was only described (HEAD).
    ledger_id: int
    row: LedgerRow
    version: CachedVersion
    rendered: RenderedPrompt
    # The slots of the call that the version uses, as an object and as JSON.
    slots: Slots
    slots_json: str
    # The messages of the call. They are not stored.
    messages: tuple[Message, ...]
    # Whether the client sent no slots.
    is_plain: bool
    # Fields of the call that the layout has no place for, and keys of host and sandbox that no layout uses.
    unplaced: tuple[str, ...]
    unknown: tuple[str, ...]
    key_id: int | None
    warnings: tuple[str, ...]

    @property
    def status(self) -> int:
        return self.row.status

    @property
    def text(self) -> str:
        return self.rendered.text if self.row.status == 200 else ""

    @property
    def at(self) -> datetime:
        return self.row.at

    @property
    def request_id(self) -> str:
        return self.row.request_id

    @property
    def served_digest(self) -> str:
        """The plain SHA-256 of the text. The ledger stores it with a salt only."""
        return self.rendered.digest

    @property
    def size(self) -> int:
        return self.row.size

    @property
    def version_id(self) -> int:
        return self.version.version_id

    @property
    def number(self) -> int:
        return self.version.number

    @property
    def digest(self) -> str:
        return self.version.digest

    @property
    def layout(self) -> str:
        return self.version.layout

    @property
    def tokens(self) -> int:
        return self.version.tokens

    @property
    def created_at(self) -> datetime:
        return self.version.created_at

    @property
    def tools(self) -> str:
        return self.version.tools

    @property
    def etag(self) -> str:
        """The digest of the version as a weak ETag.

        Weak, because the texts of two calls for the same version differ in their slots, such as the time.
        """
        return f'W/"{self.version.digest}"'


class PreparedPrompt(NamedTuple):
    """A rendered prompt with its slots and its time, before the ledger row is written."""

    # The cached version, or the version as the call builds it.
    version: CachedVersion
    rendered: RenderedPrompt
    slots: PreparedSlots
    unplaced: tuple[str, ...]
    unknown: tuple[str, ...]
    at: datetime


def serve_prompt(
    client: Client,
    prompt_request: PromptRequest,
    call: CallContext,
    *,
    check_rate_limit: RateLimitCheck = allow_all,
    cache: ServingCache = PROCESS_CACHE,
) -> ServedPrompt:
    """Write the ledger row and return the prompt.

    Raise PromptRefused if the request is refused, and ServingUnavailable if the row cannot be written. Call
    this outside of transactions. If the process has the request cached, one SQL statement is enough.

    If the client already has the version, no text is served and the row has status 304. The row then contains
    the digest of the text that would have been served. An exception of `check_rate_limit` is passed on.
    """
    try:
        return _serve_with_retries(client, prompt_request, call, check_rate_limit, cache)
    except DatabaseFailure as error:
        reason = str(error).partition("\n")[0]
        log.error("ledger_write_failed", reason=reason)  # noqa: TRY400  # further lines may quote the row
        raise ServingUnavailable from error


def describe_prompt(
    client: Client,
    prompt_request: PromptRequest,
    call: CallContext,
    *,
    check_rate_limit: RateLimitCheck = allow_all,
    cache: ServingCache = PROCESS_CACHE,
) -> ServedPrompt:
    """Return the prompt that `serve_prompt` would serve now, for its headers only.

    Nothing is served, so there is no ledger row. The cache of resolutions is not used: only the INSERT of a
    row notices that a resolution is outdated.
    """
    try:
        resolution = check_and_resolve(client, prompt_request, check_rate_limit)
        version = get_cached_version(
            cache, resolution.workspace_id, resolution.version_id, resolution.erasures
        )
    except DatabaseFailure as error:
        raise ServingUnavailable from error
    prepared = _prepare_prompt(resolution, version, call)
    row = _build_ledger_values(prompt_request, resolution, prepared, call, NO_DIGESTS).row
    return _build_served_prompt(0, row, prepared, call, resolution)


def _serve_with_retries(
    client: Client,
    prompt_request: PromptRequest,
    call: CallContext,
    check_rate_limit: RateLimitCheck,
    cache: ServingCache,
) -> ServedPrompt:
    cache_key: ResolutionKey = (
        client.name,
        prompt_request.agent,
        prompt_request.channel,
        prompt_request.label,
        prompt_request.action,
    )
    rate_limit, is_charged = RateLimitOnce(check_rate_limit), False
    for _ in range(MAX_ATTEMPTS):
        resolution, is_cached = _find_or_resolve(client, prompt_request, cache_key, rate_limit, cache)
        rate_limit.charge(resolution.key_id, resolution.workspace_id)
        try:
            version = get_cached_version(
                cache, resolution.workspace_id, resolution.version_id, resolution.erasures
            )
            prepared = _prepare_prompt(resolution, version, call)
        except DomainError:
            if not is_cached:
                raise
            # The cached resolution may be outdated: the label may now point to a version that can be served.
            cache.resolutions.discard(cache_key)
            continue
        digests = _store_call_data(resolution, prepared.slots, is_charged=is_charged)
        is_charged = True
        values = _build_ledger_values(prompt_request, resolution, prepared, call, digests)
        ledger_id = insert_ledger_row(client, prompt_request, resolution, values)
        if ledger_id is not None:
            if not prompt_request.has_fixed_version and not is_cached:
                cache.resolutions.store(cache_key, resolution)
            return _build_served_prompt(ledger_id, values.row, prepared, call, resolution)
        # The INSERT does not tell whether it refused the resolution or the time of the row.
        if not PROCESS_CLOCK.correct(timedelta(seconds=settings.DRAMATIS_MAX_CLOCK_SKEW)):
            cache.resolutions.discard(cache_key)
    log.error("ledger_write_failed", reason="the version, key or clock changed at each attempt")
    raise ServingUnavailable


def _find_or_resolve(
    client: Client,
    prompt_request: PromptRequest,
    cache_key: ResolutionKey,
    rate_limit: RateLimitOnce,
    cache: ServingCache,
) -> tuple[Resolution, bool]:
    """Return the resolution, and whether it is from the cache or from another thread, and may be outdated."""

    def resolve() -> Resolution:
        return check_and_resolve(client, prompt_request, rate_limit.charge)

    if prompt_request.has_fixed_version:
        return resolve(), False
    if (resolution := cache.resolutions.find(cache_key)) is not None:
        return resolution, True
    return cache.resolving.load(cache_key, resolve)


def check_and_resolve(
    client: Client, prompt_request: PromptRequest, check_rate_limit: RateLimitCheck
) -> Resolution:
    check_key_format(client)
    return resolve_request(client, prompt_request, check_rate_limit)


def _store_call_data(
    resolution: Resolution, slots: PreparedSlots, *, is_charged: bool
) -> Mapping[str, SaltedDigest]:
    """Store the values of the call. The bytes of the ledger row are charged at the first attempt only."""
    if slots.split is None:
        return NO_DIGESTS
    plain = {digest: digest for digest in slots.split.contents}
    size = 0 if is_charged else len(slots.encode_stored(plain))
    return store_call_data(resolution.workspace_id, size, slots.split.contents, resolution.erasures)


def _prepare_prompt(resolution: Resolution, version: CachedVersion, call: CallContext) -> PreparedPrompt:
    now = PROCESS_CLOCK.now()
    unplaced: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    if call.slots is EMPTY_SLOTS:
        prepared = prepare_clock_slots(now, version.timezone)
    else:
        used, unplaced, unknown = select_used_slots(version.layout, call.slots)
        if changes_inputs(used):
            inputs = get_version_inputs(resolution.workspace_id, version)
            prepared = prepare_call_slots(mask_call_data(used, inputs), now, version.timezone)
            version = build_for_call(version, inputs, prepared.slots)
        else:
            prepared = prepare_call_slots(used, now, version.timezone)
    return PreparedPrompt(version, version.render(prepared.slots), prepared, unplaced, unknown, now)


def _build_ledger_values(
    prompt_request: PromptRequest,
    resolution: Resolution,
    prepared: PreparedPrompt,
    call: CallContext,
    digests: Mapping[str, SaltedDigest],
) -> LedgerValues:
    version, rendered, slots = prepared.version, prepared.rendered, prepared.slots
    stored = slots.encode_stored({plain: one.digest for plain, one in digests.items()})
    salt = version.salt
    if slots.split is not None:
        salts = [digests[plain].salt for _, plain in sorted(slots.split.names.items())]
        salt = combine_served_salts(salt, version.inputs_salt if version.is_built_for_call else "", salts)
    row = LedgerRow(
        workspace=resolution.workspace_id,
        # The database assigns the id later. The seal does not include the id.
        id=0,
        key=resolution.reader,
        agent=resolution.agent_id,
        channel=resolution.channel_id,
        label=prompt_request.recorded_label,
        version=version.version_id,
        number=version.number,
        slots=bytes_digest(SLOTS_DOMAIN, stored),
        served=salt_digest(rendered.digest, salt),
        size=rendered.size,
        status=304 if call.has_digest(version.digest) else 200,
        request_id=clean_request_id(call.request_id),
        at=prepared.at,
    )
    return LedgerValues(row, stored.decode(), call.traceparent)


def clean_request_id(request_id: str) -> str:
    return INVALID_ID_CHARACTERS.sub("", request_id)[:MAX_REQUEST_ID_LENGTH]


def _build_served_prompt(
    ledger_id: int,
    row: LedgerRow,
    prepared: PreparedPrompt,
    call: CallContext,
    resolution: Resolution,
) -> ServedPrompt:
    return ServedPrompt(
        ledger_id,
        row,
        prepared.version,
        prepared.rendered,
        prepared.slots.slots,
        prepared.slots.values.decode(),
        call.slots.messages,
        is_plain=call.slots is EMPTY_SLOTS,
        unplaced=prepared.unplaced,
        unknown=prepared.unknown,
        key_id=resolution.key_id,
        warnings=combine_warnings(
            prepared.version.warnings,
            resolution.current_warnings,
            is_latest=resolution.is_latest,
            is_built_for_call=prepared.version.is_built_for_call,
        ),
    )
