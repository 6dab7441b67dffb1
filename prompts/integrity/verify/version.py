"""One version looked at anew: its words, its digests, its hash, and the links on both sides of it."""

from collections.abc import Iterator

from django.utils.translation import gettext as _

from personas.models import Content, sha256_digest
from prompts.hashed_rows import build_version_row
from prompts.integrity.verify import contents
from prompts.models import PromptVersion
from prompts.proof.canonical import canonical_json
from prompts.proof.chains import find_row_fault
from prompts.versions.segments import list_content_digests, list_hashed_values

# Rows that somebody wrote over may hold anything. Trouble with the database itself is no fault of theirs.
READ_ERRORS = (ValueError, TypeError, KeyError, AttributeError)


def list_version_faults(version: PromptVersion) -> list[str]:
    """What is wrong, in words; empty when all stands as it was written. The prompt must be at hand."""
    try:
        return [*find_chain_faults(version), *find_digest_faults(version), *find_content_faults(version)]
    except READ_ERRORS as error:
        return [_("It cannot be read: %(fault)s.") % {"fault": type(error).__name__}]


def find_chain_faults(version: PromptVersion) -> Iterator[str]:
    rows = PromptVersion.objects.in_workspace(version.workspace_id).filter(prompt=version.prompt_id)
    before = rows.filter(number=version.number - 1).values_list("hash", flat=True).first()
    is_there = before is not None or version.number == 1
    place = version.number - (1 if is_there else 2)
    fault = find_row_fault(
        build_version_row(version), version.hash, version.previous_hash, place, before or ""
    )
    if fault:
        yield str(fault)
    following = rows.filter(number=version.number + 1).values_list("previous_hash", flat=True).first()
    if following is None:
        following = version.prompt.last_hash
    if following != version.hash:
        yield _("What comes after it names another hash.")


def find_digest_faults(version: PromptVersion) -> Iterator[str]:
    """The digest again, from the stored list."""
    words = [[list_hashed_values(row), row["section"], row["volatility"]] for row in version.segments]
    if sha256_digest(canonical_json([version.layout, version.tools, words])) != version.digest:
        yield _("Its segments do not give its digest.")


def find_content_faults(version: PromptVersion) -> Iterator[str]:
    """Every content by its own digest, then the text; what somebody erased is no fault, and has no text."""
    wanted = list_content_digests(version.segments, version.tools) | {version.report}
    rows = Content.objects.in_workspace(version.workspace_id).filter(digest__in=wanted)
    found = {row.digest: row for row in rows}
    yield from (
        _("Content %(digest)s… is not there.") % {"digest": digest[:16]}
        for digest in sorted(wanted - set(found))
    )
    tombs = contents.list_erased_digests(version.workspace)
    for _digest, row in sorted(found.items()):
        if fault := contents.verify_content(row, tombs):
            yield str(fault)
    if wanted <= set(found) and not has_erased_segments(version, found):
        text = "".join([get_segment_text(row, found) for row in version.segments])
        if sha256_digest(text.encode()) != version.text_digest:
            yield _("Its words do not give the digest of its text.")


def has_erased_segments(version: PromptVersion, found: dict[str, Content]) -> bool:
    return any(found[row["content"]].data is None for row in version.segments if "content" in row)


def get_segment_text(row: dict[str, str], found: dict[str, Content]) -> str:
    return row["text"] if "text" in row else bytes(found[row["content"]].data or b"").decode()
