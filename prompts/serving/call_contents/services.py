"""Store the data of a call before its ledger row is written."""

from collections.abc import Iterable, Mapping
from datetime import date

from django.utils import timezone

from core.db.workspace_scope import workspace_scope
from core.shared_cache import SharedLRUCache
from personas.contents.services import SaltedDigest
from personas.limits.daily_usage import get_utc_day
from personas.limits.storage_quota import take_call_bytes
from prompts.models import CallContent

# Workspace, plain SHA-256, day and erasure counter. A value that was erased or not used today is not found.
DigestKey = tuple[int, str, date, int]
MAX_CACHED_DIGESTS = 20_000
CACHED_DIGESTS: SharedLRUCache[DigestKey, SaltedDigest] = SharedLRUCache(MAX_CACHED_DIGESTS)


def store_call_data(
    workspace_id: int, row_size: int, contents: Mapping[str, bytes], erasures: int
) -> dict[str, SaltedDigest]:
    """Charge the daily quota and store the values of a call, given by plain SHA-256; return their digests.

    `row_size` are the bytes that the ledger row stores itself. A value that the workspace already has takes
    no further bytes. Raise CallQuotaExceeded, before anything is stored, if the quota is used up.

    The contents are committed before the ledger row refers to them. If that row is then not written, they
    stay unused until retention deletes them.

    `erasures` is the workspace's erasure counter. The digests of values that this process stored today are
    cached until it changes, so that a repeated call needs no further statement.
    """
    today = get_utc_day(timezone.now())
    cached = {plain: CACHED_DIGESTS.find((workspace_id, plain, today, erasures)) for plain in contents}
    known = {plain: digest for plain, digest in cached.items() if digest is not None}
    if len(known) == len(contents):
        take_call_bytes(workspace_id, row_size)
        return known
    with workspace_scope(workspace_id):
        stored = renew_contents(workspace_id, contents, today)
        new = contents.keys() - stored.keys()
        take_call_bytes(workspace_id, row_size + sum(len(contents[plain]) for plain in new))
        if new:
            # A concurrent call may store the same value first, with another salt. Its row is then used.
            CallContent.objects.in_workspace(workspace_id).bulk_create(
                [
                    CallContent.build_salted(workspace_id, plain, contents[plain], last_used_on=today)
                    for plain in sorted(new)
                ],
                ignore_conflicts=True,
            )
            stored |= renew_contents(workspace_id, new, today)
    for plain, digest in stored.items():
        CACHED_DIGESTS.store((workspace_id, plain, today, erasures), digest)
    return stored


def renew_contents(workspace_id: int, plain_digests: Iterable[str], today: date) -> dict[str, SaltedDigest]:
    """Find the values that are stored already, and note that they were used today.

    At the same time, retention may delete a value that was not used recently. The result then lacks it.
    """
    rows = CallContent.objects.in_workspace(workspace_id).filter(plain_digest__in=list(plain_digests))
    columns = ("pk", "plain_digest", "digest", "salt", "last_used_on")
    found = list(rows.values_list(*columns))
    due = {key for key, *_, used_on in found if used_on < today}
    if due:
        rows.filter(pk__in=due).update(last_used_on=today)
        found = list(rows.values_list(*columns))
    return {plain: SaltedDigest(digest, salt or "") for _, plain, digest, salt, _ in found}
