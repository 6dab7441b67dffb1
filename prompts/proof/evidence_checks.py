"""The checks of an evidence bundle.

Each returns a message when the bundle passes, or raises MissingEvidence or ValueError with the reason.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from typing import Any

from core.salted_digests import salt_digest
from prompts.proof.canonical import canonical_digest, canonical_json, text_digest
from prompts.proof.chain_heads import ChainHead
from prompts.proof.chains import verify_chain_span
from prompts.proof.checkpoints import verify_signature
from prompts.proof.evidence_reader import LATEST_LABEL, EvidenceBundle, EvidenceSegment, MissingEvidence
from prompts.proof.hashed_rows import (
    LOCKFILE_DOMAIN,
    SEGMENTS_DOMAIN,
    SLOTS_DOMAIN,
    ChainedRow,
    StoredRow,
    ledger_rows_digest,
)
from prompts.proof.json_reader import read_list, read_object, read_text
from prompts.proof.signing_keys import get_key_id, load_public_key

# Rebuilds the served text from the segments and the slot values of a bundle.
SlotFiller = Callable[[EvidenceBundle], str]
KEY_NOT_COMPARED = (
    "NOT COMPARED. The bundle brings its own key, and anyone can make a key: ask the operator for its id "
    "by another way, and compare it with {id}"
)


def check_evidence_format(bundle: EvidenceBundle) -> str:
    return f"the bundle is a {bundle.content['format']} of version {bundle.content['version']}"


def check_served_bytes(bundle: EvidenceBundle) -> str:
    """Check that the text has the digest that was recorded when it was served."""
    digest = salt_digest(text_digest(bundle.text), bundle.served_salt)
    require_same_digest(digest, bundle.served, "the text", "the served digest")
    return "the text has the served digest"


def check_built_text(bundle: EvidenceBundle) -> str:
    built_text = "".join([segment.text for segment in bundle.segments if segment.text is not None])
    if any(segment.text is None for segment in bundle.segments):
        check_not_erased(bundle.segments)
    require_same_digest(
        salt_digest(text_digest(built_text), bundle.text_salt),
        bundle.version.text,
        "the joined text of the segments",
        "the version's text digest",
    )
    return "the joined text of the segments has the version's text digest"


def check_evidence_segments(bundle: EvidenceBundle) -> str:
    digest = canonical_digest(SEGMENTS_DOMAIN, [segment.stored for segment in bundle.segments])
    require_same_digest(digest, bundle.version.segments, "the segments", "the version's segment digest")
    return f"the version is made of these {len(bundle.segments)} segments"


def check_evidence_salts(bundle: EvidenceBundle) -> str:
    """Check that every salt is that of a text in the bundle: no digest covers others."""
    inputs = bundle.inputs if bundle.content["inputs"] is not None else {}
    values = bundle.slot_digests.values() if bundle.content["slots"] is not None else ()
    files = () if bundle.skill is None else (bundle.skill_file_digest,)
    if not bundle.salts.keys() <= {*bundle.content_digests, bundle.version.tools, *inputs, *values, *files}:
        raise ValueError("the bundle has salts of texts that it does not contain")
    return f"the {len(bundle.salts)} salts belong to texts in the bundle"


def check_segment_texts(bundle: EvidenceBundle) -> str:
    """Check that the text of every segment equals its stored text or has the stored digest."""
    for place, segment in enumerate(bundle.segments):
        check_segment_text(segment, bundle.salts, f"segments[{place}]")
    check_not_erased(bundle.segments)
    return "the text of every segment matches its stored digest"


def check_segment_text(segment: EvidenceSegment, salts: Mapping[str, str], where: str) -> None:
    stored, text, slot_data = segment
    if "text" in stored:
        is_match = text == stored["text"] and "content" not in stored
    else:
        is_match = "content" in stored if text is None else has_digest(text, stored.get("content"), salts)
    if not is_match:
        raise ValueError(f"the text of {where} does not match its stored digest")
    if slot_data is not None and not has_digest(slot_data, stored.get("given"), salts):
        raise ValueError(f"the slot value of {where} does not match its stored digest")


def check_evidence_tools(bundle: EvidenceBundle) -> str:
    """Check the tool definitions, which are sent with the text, against the digest in the version."""
    tools, digest = bundle.tools, bundle.version.tools
    if tools is None and digest:
        raise MissingEvidence("the tool definitions are not in the bundle; their digest is kept")
    if tools is None:
        return "the version has no tool definitions"
    actual = salt_digest(text_digest(tools), bundle.salts.get(digest, ""))
    require_same_digest(actual, digest, "the tool definitions", "the version's digest of them")
    return "the tool definitions are the version's"


def check_evidence_inputs(bundle: EvidenceBundle) -> str:
    """Check that the stored inputs are those that the lockfile names, and that nothing else is among them."""
    contents = bundle.inputs
    for digest, text in contents.items():
        actual = salt_digest(text_digest(text), bundle.salts.get(digest, ""))
        require_same_digest(actual, digest, "an input", "its digest")
    named = list_input_digests(contents, read_text(bundle.lockfile.get("inputs"), "the lockfile's inputs"))
    if named != contents.keys():
        raise ValueError("the inputs do not match the lockfile")
    return f"the {len(named)} stored inputs belong to the version"


def list_input_digests(contents: Mapping[str, str], manifest: str) -> set[str]:
    """List the digests of the manifest, of the parts that it names, and of its lists and their parts."""
    digests = {manifest}
    for member in read_object(parse_input(contents, manifest), "the manifest of inputs").values():
        fields = read_object(member, "a member of the manifest")
        if "part" in fields:
            digests.add(read_text(fields["part"], "a part"))
        if "parts" in fields:
            listed = read_text(fields["parts"], "a list of parts")
            parts = read_list(parse_input(contents, listed), "a list of parts")
            digests |= {listed, *[read_text(part, "a part") for part in parts]}
    return digests


def parse_input(contents: Mapping[str, str], digest: str) -> Any:
    try:
        return json.loads(contents[digest])
    except (KeyError, RecursionError):
        raise ValueError("an input is missing or cannot be read") from None


def check_evidence_lockfile(bundle: EvidenceBundle) -> str:
    require_same_digest(
        canonical_digest(LOCKFILE_DOMAIN, bundle.lockfile),
        bundle.version.lockfile,
        "the lockfile",
        "the version's digest of it",
    )
    return "the lockfile is the version's"


def check_evidence_parts(bundle: EvidenceBundle) -> str:
    """Check the complete list of parts against the digest in the lockfile.

    The digest covers all parts, although the lockfile may list only those that changed since the previous
    version.
    """
    expected = read_text(bundle.lockfile.get("digest"), "the lockfile's digest")
    require_same_digest(
        sha256(canonical_json(bundle.lockfile_parts)).hexdigest(),
        expected,
        "the parts",
        "the lockfile's digest of them",
    )
    return f"the version was made of these {len(bundle.lockfile_parts)} parts"


def check_version_hash(bundle: EvidenceBundle) -> str:
    check_row_hash(bundle.versions[0])
    return f"the hash of {bundle.version.name} was recomputed"


def check_evidence_slots(bundle: EvidenceBundle) -> str:
    require_same_digest(
        canonical_digest(SLOTS_DOMAIN, bundle.slots),
        bundle.ledger[0].slots,
        "the slot values",
        "the ledger row's digest of them",
    )
    return "the slot values are those of the ledger row"


def check_slot_contents(bundle: EvidenceBundle) -> str:
    """Check that the slot values are those that the slots name, and that nothing else is among them."""
    named, contents = set(bundle.slot_digests.values()), bundle.slot_contents
    if not named:
        raise ValueError("the slots have no values, but the bundle has a field for them")
    for digest, text in contents.items():
        actual = salt_digest(text_digest(text), bundle.salts.get(digest, ""))
        require_same_digest(actual, digest, "a slot value", "its digest")
    if not contents.keys() <= named:
        raise ValueError("the bundle has values that its slots do not use")
    if missing := len(named - contents.keys()):
        raise MissingEvidence(f"{missing} of {len(named)} slot values were erased; their digests are kept")
    return f"the {len(named)} slot values match the slots"


def check_ledger_seal(bundle: EvidenceBundle) -> str:
    row, seal = bundle.ledger
    require_same_digest(row.seal(), seal, row.name, "its seal")
    return f"the seal of {row.name} was recomputed"


def check_ledger_row(bundle: EvidenceBundle) -> str:
    """Check that the ledger row refers to this version and these bytes."""
    row, version = bundle.ledger[0], bundle.version
    named = (row.workspace, row.agent, row.channel, row.number)
    if named != (version.workspace, version.agent, version.channel, version.number):
        raise ValueError("the ledger row refers to a different version")
    require_same_digest(bundle.served, row.served, "the served digest", "the ledger row's")
    if bundle.content["text"] is not None and len(bundle.text.encode()) != row.size:
        raise ValueError("the length of the text does not match the ledger row")
    return f"{row.name} states that {version.name} was served with this digest"


def check_skill_file(bundle: EvidenceBundle) -> str:
    """Check that the served file is the one that the version offers under the name in the ledger row."""
    require_same_digest(
        bundle.served, bundle.skill_file_digest, "the served digest", "the version's skill file"
    )
    return f"{bundle.version.name} offers this file as the skill {bundle.skill!a}"


def check_seal_in_block(bundle: EvidenceBundle) -> str:
    (row, seal), block = bundle.ledger, bundle.block.links[0][0]
    pairs, ids = bundle.block.pairs, [number for number, _ in bundle.block.pairs]
    if row.workspace != block.workspace or (row.id, seal) not in pairs:
        raise ValueError(f"{row.name} with its seal is not among the rows of {block.name}")
    if (ids[0], ids[-1], len(ids)) != (block.first_id, block.last_id, block.count) or ids != sorted(set(ids)):
        raise ValueError(f"the rows of {block.name} do not have the order and number that it states")
    require_same_digest(
        ledger_rows_digest(pairs), block.rows, "the ids and seals", f"the digest in {block.name}"
    )
    return f"{row.name} is one of the {len(ids)} rows that {block.name} was closed over"


def check_block_hash(bundle: EvidenceBundle) -> str:
    check_row_hash(bundle.block.links[0])
    return f"the hash of {bundle.block.links[0][0].name} was recomputed"


def check_block_coverage(bundle: EvidenceBundle) -> str:
    mark = bundle.checkpoint.ledger
    check_links_reach(bundle, bundle.block.links, mark.sequence, mark.hash)
    return (
        f"{bundle.block.links[0][0].name} leads to ledger block {mark.sequence}, which the checkpoint names"
    )


def check_version_coverage(bundle: EvidenceBundle) -> str:
    head = get_chain_head(bundle, bundle.heads.versions)
    check_links_reach(bundle, bundle.versions, head.number, head.hash)
    return f"{bundle.version.name} leads to version {head.number}, which the checkpoint names"


def check_move_coverage(bundle: EvidenceBundle) -> str:
    head = get_chain_head(bundle, bundle.heads.label_moves)
    check_links_reach(bundle, bundle.pointer.moves, head.number, head.hash)
    return f"{bundle.pointer.moves[0][0].name} leads to move {head.number}, which the checkpoint names"


def get_chain_head(bundle: EvidenceBundle, heads: Iterable[ChainHead]) -> ChainHead:
    version = bundle.version
    for head in heads:
        if (head.agent, head.channel) == (version.agent, version.channel):
            return head
    raise ValueError(f"the checkpoint has no entry for agent {version.agent} on that channel")


def check_evidence_heads(bundle: EvidenceBundle) -> str:
    """Check the chain heads in the bundle against the summaries in the signed checkpoint.

    The list of heads itself is not signed.
    """
    if not bundle.checkpoint.matches_heads(bundle.heads):
        raise ValueError("the heads in the bundle do not match the checkpoint")
    return f"the checkpoint covers these {len(bundle.heads.versions)} chains"


def check_label_pointer(bundle: EvidenceBundle) -> str:
    """Check that the label pointed to the version at the requested time."""
    label, at, moves = bundle.pointer
    start, ends = get_move_times(bundle) if moves else get_build_times(bundle)
    if start > at or any(end <= at for end in ends):
        raise ValueError(f"“{label}” did not point to this version at that time")
    if bundle.checkpoint.at < at:
        raise MissingEvidence(
            "the checkpoint was signed before that time: the label may have moved in between"
        )
    return f"“{label}” pointed to {bundle.version.name} at {bundle.content['pointer']['at']}"


def get_move_times(bundle: EvidenceBundle) -> tuple[datetime, list[datetime]]:
    """Return when the label was moved to the version, and the times of all later moves of this label."""
    label, _, moves = bundle.pointer
    move, version = moves[0][0], bundle.version
    check_row_hash(moves[0])
    if (*move.chain, move.number, move.label) != (
        *version.chain,
        version.number,
        label,
    ) or label == LATEST_LABEL:
        raise ValueError(f"{move.name} does not move “{label}” to this version")
    return move.at, [row.at for row, _, _ in moves[1:] if row.label == label]


def get_build_times(bundle: EvidenceBundle) -> tuple[datetime, list[datetime]]:
    """Return when the version was built, and when all later versions were built.

    These are the times at which the label `latest` moved.
    """
    return bundle.version.at, [row.at for row, _, _ in bundle.versions[1:]]


def check_evidence_signature(bundle: EvidenceBundle) -> str:
    signed, key = bundle.signed
    if not verify_signature(signed, key):
        raise ValueError("the signature of the checkpoint is not valid for the key in the bundle")
    return (
        f"the key {get_key_id(key)} in the bundle signed the checkpoint of {bundle.checkpoint.body()['at']}"
    )


def check_expected_key(bundle: EvidenceBundle, expected: str | None) -> str:
    """Check that the key is the one that the caller expects, by its id or PEM."""
    key = bundle.signed[1]
    if expected is None:
        raise MissingEvidence(KEY_NOT_COMPARED.format(id=get_key_id(key)))
    is_same = (
        key == load_public_key(expected) if expected.startswith("-----") else get_key_id(key) == expected
    )
    if not is_same:
        raise ValueError(f"the key {get_key_id(key)} in the bundle is not the expected key")
    return f"the key {get_key_id(key)} is the expected key"


def check_rebuilt_text(bundle: EvidenceBundle, fill: SlotFiller | None) -> str:
    """Check that filling the stored segments with the recorded slot values gives the served text.

    If the call changed the inputs of the version, the text is built from the stored inputs instead.
    """
    if fill is None:
        raise MissingEvidence("the text was not rebuilt, because slots cannot be filled here")
    check_not_erased(bundle.segments)
    try:
        rebuilt = fill(bundle)
    except (MissingEvidence, ValueError):
        raise
    except Exception as error:  # untrusted segments can make any renderer fail
        raise ValueError(f"the text cannot be rebuilt: {type(error).__name__}") from error
    if rebuilt != bundle.text:
        raise ValueError("the segments with the slot values give a different text")
    return "the segments with the slot values give the same text"


def has_digest(text: str, digest: object, salts: Mapping[str, str]) -> bool:
    return isinstance(digest, str) and salt_digest(text_digest(text), salts.get(digest, "")) == digest


def require_same_digest(actual: str, expected: str, subject: str, reference: str) -> None:
    if actual != expected:
        raise ValueError(
            f"{subject} and {reference} do not match: {actual[:16]}… is not {ascii(expected[:16])[1:-1]}…"
        )


def check_not_erased(segments: Sequence[EvidenceSegment]) -> None:
    erased = sum(segment.is_erased for segment in segments)
    if erased:
        raise MissingEvidence(
            f"the text of {erased} of {len(segments)} segments was erased; the digests are kept"
        )


def check_row_hash(link: StoredRow[Any]) -> None:
    row, stored, previous = link
    require_same_digest(row.hash(previous), stored, row.name, "its hash")


def check_links_reach(
    bundle: EvidenceBundle, links: Sequence[StoredRow[Any]], place: int, head_hash: str
) -> None:
    """Check that the links are an unbroken span of one hash chain and end with the row of the checkpoint.

    The checkpoint names this row by its place in the chain and its hash.
    """
    rows: Sequence[ChainedRow] = [row for row, _, _ in links]
    first = verify_chain_span(links).first
    if first:
        raise ValueError(str(first))
    if {row.chain for row in rows} != {rows[0].chain} or rows[0].chain[0] != bundle.checkpoint.workspace:
        raise ValueError("the rows up to the checkpoint do not form one chain of its workspace")
    if (rows[-1].place, links[-1][1]) != (place, head_hash):
        raise ValueError(f"the rows end with {rows[-1].name}, but the checkpoint names {place} with its hash")
