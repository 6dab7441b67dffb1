"""Signed checkpoints detect truncated and completely rewritten chains, which chains alone cannot."""

from base64 import b64decode, b64encode
from dataclasses import replace
from datetime import timedelta

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from prompts.proof.canonical import canonical_json, parse_canonical_json
from prompts.proof.chain_heads import ChainHeads, read_heads
from prompts.proof.checkpoint_comparison import (
    compare_checkpoint,
    find_missing_checkpoints,
    get_checkpoint_names,
    verify_checkpoints,
)
from prompts.proof.checkpoints import (
    CheckpointStatement,
    SignedCheckpoint,
    format_checkpoint_line,
    read_checkpoint,
    read_checkpoint_lines,
    sign_statement,
    verify_signature,
)
from prompts.proof.faults import Fault
from prompts.proof.signing_keys import (
    dump_private_key,
    dump_public_key,
    generate_signing_key,
    get_key_id,
    load_private_key,
    load_public_key,
)
from tests.prompts.proof.proof_stage import (
    AT,
    KEY,
    Record,
    checkpoint_of,
    faults_in,
    heads_of,
    present,
    record,
    rewritten,
)

PUBLIC = KEY.public_key()
KNOWN = {get_key_id(PUBLIC): PUBLIC}


def format_faults(faults):
    return [str(fault) for fault in faults]


def signed_days(count, workspace=1):
    """Sign one checkpoint per day, each with the previous hash and the heads that changed."""
    checkpoints, previous, before = [], "", None
    for day in range(1, count + 1):
        history, at = grown(day), AT + timedelta(days=day)
        checkpoint = checkpoint_of(history, workspace=workspace, at=at, previous=previous)
        heads = heads_of(history)
        checkpoints.append(sign_statement(checkpoint, KEY, heads.select_new(before) if before else heads))
        previous, before = checkpoints[-1].hash, heads
    return checkpoints


def grown(day) -> Record:
    """Build the history as of that day."""
    history = record()
    history.versions = [stored for stored in history.versions if stored[0].number <= 2 * day]
    history.moves = [stored for stored in history.moves if stored[0].sequence <= day]
    return history


# --- comparison with the stored rows -------------------------------------------------------------------


def test_what_only_grew_agrees_with_an_earlier_checkpoint():
    history = record()
    earlier = history.copy()
    earlier.versions = [stored for stored in history.versions if stored[0].number < 4]
    earlier.moves = [stored for stored in history.moves if stored[0].sequence < 3]
    del earlier.blocks[2:], earlier.expiries[1:]
    assert not compare_checkpoint(checkpoint_of(earlier), heads_of(earlier), present(history))
    assert not compare_checkpoint(checkpoint_of(history), heads_of(history), present(history))
    assert not compare_checkpoint(CheckpointStatement(1, AT), ChainHeads(), present(history))


@pytest.mark.parametrize(
    ("table", "name"),
    [
        ("versions", "version 7 of agent 3 on channel 2"),
        ("moves", "label move 7 of agent 3 on channel 2"),
        ("blocks", "ledger block 4"),
        ("expiries", "expiry of ledger block 2"),
    ],
)
def test_a_cut_tail_is_named(table, name):
    history = record()
    checkpoint, heads = checkpoint_of(history), heads_of(history)
    rows = getattr(history, table)
    rows.remove(next(stored for stored in rows if stored[0].name == name))
    if table == "blocks":
        del history.ledger[-10:]
    assert not list(faults_in(history))
    gone = "it existed when the checkpoint of 2026-03-08T14:55:05.250000Z was signed, but is missing now"
    assert format_faults(compare_checkpoint(checkpoint, heads, present(history))) == [f"{name}: {gone}"]


def test_a_missing_chain_is_named():
    history = record()
    checkpoint, heads = checkpoint_of(history), heads_of(history)
    history.versions = [stored for stored in history.versions if stored[0].agent != 5]
    history.moves = [stored for stored in history.moves if stored[0].agent != 5]
    assert not list(faults_in(history))
    assert [fault.key for fault in compare_checkpoint(checkpoint, heads, present(history))] == [
        "version 5 of agent 5 on channel 2",
        "label move 4 of agent 5 on channel 2",
    ]


def test_a_full_rewrite_verifies_and_yet_is_found():
    history = record()
    other = rewritten(history)
    assert not list(faults_in(other))
    faults = compare_checkpoint(checkpoint_of(history), heads_of(history), present(other))
    assert len(faults) == 9
    assert all("was rewritten after the checkpoint" in fault.reason for fault in faults)


# --- the checkpoint itself -----------------------------------------------------------------------------


def test_a_body_is_read_as_it_was_written():
    checkpoint = checkpoint_of(record())
    body = parse_canonical_json(canonical_json(checkpoint.body()))
    assert read_checkpoint(body).body() == checkpoint.body()
    assert (body["versions"]["count"], body["label_moves"]["count"]) == (18, 12)


def test_heads_are_read_as_they_were_written():
    heads = heads_of(record())
    data = parse_canonical_json(canonical_json(heads.to_json()))
    assert read_heads(data) == heads
    assert [head[:3] for head in data["versions"]][:2] == [[3, None, 4], [3, 2, 7]]


def test_changed_heads_and_previous_heads_give_complete_heads():
    before, now = heads_of(grown(1)), heads_of(grown(3))
    new = now.select_new(before)
    assert len(new.versions) < len(now.versions)
    assert new.complete_from(before) == now
    assert now.complete_from(before) == now
    assert not now.select_new(now).versions + now.select_new(now).label_moves


@pytest.mark.parametrize(
    "spoil",
    [
        lambda data: data.update(is_whole=1),
        lambda data: data.update(more=[]),
        lambda data: data.pop("versions"),
        lambda data: data["versions"].reverse(),
        lambda data: data["versions"].insert(0, data["versions"][0]),
        lambda data: data["versions"][0].pop(),
        lambda data: data["label_moves"].append([1, 2, 3, None]),
        lambda data: data["label_moves"].append({}),
    ],
)
def test_heads_have_one_spelling(spoil):
    data = parse_canonical_json(canonical_json(heads_of(record()).to_json()))
    spoil(data)
    with pytest.raises(ValueError, match="heads"):
        read_heads(data)


@pytest.mark.parametrize(
    ("kind", "place", "to"), [("versions", 2, 3), ("versions", 3, "0" * 64), ("label_moves", 2, 1)]
)
def test_heads_that_were_not_signed_are_found(kind, place, to):
    days = signed_days(3)
    heads = parse_canonical_json(canonical_json(days[1].heads))
    heads[kind][0][place] = to
    days[1] = replace(days[1], heads=heads)
    first = verify_checkpoints(days, KNOWN).first
    assert str(first).endswith("its heads, combined with earlier ones, do not match the signed heads")
    assert "2026-03-09" in str(first)


def changed(body, *path, to):
    copy = parse_canonical_json(canonical_json(body))
    inner = copy
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = to
    return copy


@pytest.mark.parametrize(
    ("path", "to"),
    [
        (["versions", "count"], "17"),
        (["versions", "root"], None),
        (["versions", "heads"], []),
        (["versions"], []),
        (["expiries"], None),
        (["workspace"], True),
        (["workspace"], 2**70),
        (["at"], "yesterday"),
        (["at"], "2026-03-08T15:55:05.250000+01:00"),
        (["at"], "2026-03-08T14:55:05Z"),
        (["label_moves"], {"sequence": 1}),
        (["ledger", "more"], 1),
        (["previous"], None),
        (["previous"], "\ud800"),
        (["more"], 1),
        (["more"], 0.5),
    ],
)
def test_a_body_that_contradicts_itself_is_not_read(path, to):
    body = changed(checkpoint_of(record()).body(), *path, to=to)
    with pytest.raises(ValueError, match=r"checkpoint|float"):
        read_checkpoint(body)


# --- signatures ----------------------------------------------------------------------------------------


def test_a_signature_holds_for_its_body_and_its_key_alone():
    signed = sign_statement(checkpoint_of(record()), KEY)
    assert verify_signature(signed, PUBLIC)
    assert not verify_signature(signed, generate_signing_key().public_key())
    assert not verify_signature(replace(signed, key="0" * 16), PUBLIC)
    for path, to in ((["workspace"], 2), (["previous"], "0"), (["versions", "root"], "0" * 64)):
        assert not verify_signature(replace(signed, body=changed(signed.body, *path, to=to)), PUBLIC)


def flips(data: bytes):
    for bit in range(len(data) * 8):
        yield data[: bit // 8] + bytes([data[bit // 8] ^ 1 << bit % 8]) + data[bit // 8 + 1 :]


def test_every_flipped_bit_of_a_signature_is_found():
    signed = sign_statement(checkpoint_of(record()), KEY)
    inner = [b64encode(raw).decode() for raw in flips(b64decode(signed.signature))]
    # Base64 has several encodings of the same bytes; only the canonical one is accepted.
    outer = [raw.decode("latin-1") for raw in flips(signed.signature.encode())]
    assert not [
        flipped for flipped in inner + outer if verify_signature(replace(signed, signature=flipped), PUBLIC)
    ]


@pytest.mark.parametrize("signature", ["", "x", "é", "AAAA", "A" * 88, "\ud800"])
def test_what_is_no_signature_does_not_count(signature):
    assert not verify_signature(
        replace(sign_statement(checkpoint_of(record()), KEY), signature=signature), PUBLIC
    )


def test_a_body_that_cannot_be_hashed_has_no_signature():
    signed = sign_statement(checkpoint_of(record()), KEY)
    assert not verify_signature(replace(signed, body={"workspace": 1.0}), PUBLIC)


def test_keys_go_in_and_out_as_pem():
    key = generate_signing_key()
    again = load_private_key(dump_private_key(key))
    assert get_key_id(again.public_key()) == get_key_id(key.public_key())
    assert load_public_key(dump_public_key(key.public_key())) == key.public_key()
    assert len(get_key_id(PUBLIC)) == 16


def test_other_keys_are_refused():
    other = generate_private_key(SECP256R1())
    private = other.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    public = other.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
    for pem in (b"", b"words", private, dump_private_key(KEY)[:-40], dump_public_key(PUBLIC).encode()):
        with pytest.raises(ValueError, match="key"):
            load_private_key(pem)
    for text in ("", "words", public, dump_private_key(KEY).decode()):
        with pytest.raises(ValueError, match="key"):
            load_public_key(text)


# --- order of checkpoints ------------------------------------------------------------------------------


def test_checkpoints_follow_each_other():
    days = signed_days(5)
    assert verify_checkpoints(days, KNOWN).is_sound
    both = [each for pair in zip(days, signed_days(5, workspace=2), strict=True) for each in pair]
    assert verify_checkpoints(both, KNOWN).is_sound


@pytest.mark.parametrize("place", range(4))
def test_a_missing_checkpoint_is_found(place):
    days = signed_days(5)
    del days[place]
    verdict = verify_checkpoints(days, KNOWN)
    assert verdict.bad == 1
    day = f"2026-03-{8 + place + 1:02}"
    assert str(verdict.first).startswith(f"checkpoint of workspace 1 at {day}")
    assert "checkpoints are missing" in str(verdict.first)


def test_a_strange_or_swapped_checkpoint_is_found():
    days = signed_days(4)
    days[1], days[2] = days[2], days[1]
    assert not verify_checkpoints(days, KNOWN).is_sound
    mallory = generate_signing_key()
    forged = sign_statement(checkpoint_of(rewritten(record())), mallory)
    assert "an unknown key" in str(verify_checkpoints([forged], KNOWN).first)
    dressed = replace(forged, key=get_key_id(PUBLIC))
    assert "its signature is not valid" in str(verify_checkpoints([dressed], KNOWN).first)
    nonsense = SignedCheckpoint({"at": ["?"]}, "", "")
    assert "it cannot be read" in str(verify_checkpoints([nonsense], KNOWN).first)


def test_what_only_one_copy_has_is_named():
    days = signed_days(4)
    assert not find_missing_checkpoints(get_checkpoint_names(days), get_checkpoint_names(days))
    lost = find_missing_checkpoints(get_checkpoint_names(days[:3]), get_checkpoint_names(days))
    assert format_faults(lost) == [
        (
            "checkpoint of workspace 1 at 2026-03-11T14:55:05.250000Z: it is in the file but not in the "
            "database"
        )
    ]
    [strange] = find_missing_checkpoints(get_checkpoint_names(days), get_checkpoint_names(days[1:]))
    assert strange.reason == "it is in the database but not in the file"
    assert not find_missing_checkpoints(
        get_checkpoint_names(days), get_checkpoint_names(days[1:]), {days[0].hash}
    )
    broken = SignedCheckpoint({"workspace": 0.5}, "", "")
    assert [fault.reason for fault in find_missing_checkpoints(get_checkpoint_names([broken]), {})] == [
        strange.reason
    ]


# --- the checkpoint file -------------------------------------------------------------------------------


def test_lines_are_read_as_they_were_written():
    days = signed_days(3)
    text = "".join(map(format_checkpoint_line, days))
    assert text.count("\n") == 3
    assert list(read_checkpoint_lines(text.split("\n"))) == days
    assert verify_checkpoints(days, KNOWN).is_sound


def test_a_torn_line_is_named_and_the_others_are_read():
    days = signed_days(3)
    lines = [
        *map(format_checkpoint_line, days),
        "",
        "[" * 9_000,
        '{"body":1.5}',
        "{}",
        format_checkpoint_line(days[0])[:99],
    ]
    lines[1] = lines[1].replace('"count":', '"count":1.')
    items = list(read_checkpoint_lines(lines))
    faults = [each for each in items if isinstance(each, Fault)]
    assert [each for each in items if isinstance(each, SignedCheckpoint)] == [days[0], days[2]]
    assert [fault.key for fault in faults] == [
        f"line {number} of the checkpoint file" for number in (2, 5, 6, 7, 8)
    ]
