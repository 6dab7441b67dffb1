"""Verify one version: its contents, digests, hash, and the links to both neighbours."""

from collections.abc import Iterator

from django.utils.translation import gettext as _

from core.salted_digests import salt_digest
from personas.models import Content, sha256_digest
from prompts.evidence.integrity.verify import contents
from prompts.models import PromptVersion
from prompts.proof.chains import find_row_fault
from prompts.proof.text_salts import combine_text_salts
from prompts.proof_rows import build_version_row
from prompts.publishing.versions.segments import hash_segments, list_content_digests

# A tampered row may hold values of any type. Database errors are not listed: they are not faults of the row.
READ_ERRORS = (ValueError, TypeError, KeyError, AttributeError)


def list_version_faults(version: PromptVersion) -> list[str]:
    """List the faults of a version as messages; empty if it is intact. `version.prompt` should be loaded."""
    try:
        return [*find_chain_faults(version), *find_digest_faults(version), *find_content_faults(version)]
    except READ_ERRORS as error:
        return [_("The version cannot be read: %(fault)s.") % {"fault": type(error).__name__}]


def find_chain_faults(version: PromptVersion) -> Iterator[str]:
    rows = PromptVersion.objects.in_workspace(version.workspace_id).filter(prompt=version.prompt_id)
    previous_hash = rows.filter(number=version.number - 1).values_list("hash", flat=True).first()
    has_previous = previous_hash is not None or version.number == 1
    place = version.number - (1 if has_previous else 2)
    fault = find_row_fault(
        build_version_row(version), version.hash, version.previous_hash, place, previous_hash or ""
    )
    if fault:
        yield str(fault)
    next_hash = rows.filter(number=version.number + 1).values_list("previous_hash", flat=True).first()
    if next_hash is None:
        next_hash = version.prompt.last_hash
    if next_hash != version.hash:
        yield _("The chain continues from a different hash.")


def find_digest_faults(version: PromptVersion) -> Iterator[str]:
    """Recompute the digest from the stored segments."""
    computed = hash_segments(version.layout, version.tools, version.segments, version.skill_files)
    if computed != version.digest:
        yield _("The segments do not match the digest.")


def find_content_faults(version: PromptVersion) -> Iterator[str]:
    """Check each content and then the whole text against its digest; erased content is not a fault."""
    digests = list_content_digests(version.segments, version.tools) | {version.report}
    digests |= {row["content"] for row in version.skill_files}
    rows = Content.objects.in_workspace(version.workspace_id).filter(digest__in=digests)
    contents_by_digest = {row.digest: row for row in rows}
    yield from (
        _("Content %(digest)s… is missing.") % {"digest": digest[:16]}
        for digest in sorted(digests - set(contents_by_digest))
    )
    erased = contents.list_erased_digests(version.workspace)
    for _digest, row in sorted(contents_by_digest.items()):
        if fault := contents.verify_content(row, erased):
            yield str(fault)
    if digests <= set(contents_by_digest) and not has_erased_segments(version, contents_by_digest):
        text = "".join([get_segment_text(row, contents_by_digest) for row in version.segments])
        salts = {digest: row.salt or "" for digest, row in contents_by_digest.items()}
        salt = combine_text_salts(version.segments, salts)
        if salt_digest(sha256_digest(text.encode()), salt) != version.text_digest:
            yield _("The text does not match the digest.")


def has_erased_segments(version: PromptVersion, contents_by_digest: dict[str, Content]) -> bool:
    return any(
        contents_by_digest[row["content"]].data is None for row in version.segments if "content" in row
    )


def get_segment_text(row: dict[str, str], contents_by_digest: dict[str, Content]) -> str:
    return row["text"] if "text" in row else bytes(contents_by_digest[row["content"]].data or b"").decode()
