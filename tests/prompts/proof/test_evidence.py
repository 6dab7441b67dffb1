"""Evidence bundles: every manipulation makes a specific check fail, and no input makes a check raise."""

import json
from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prompts.proof.canonical import canonical_json, parse_canonical_json, text_digest
from prompts.proof.chain_heads import ChainHeads, read_heads
from prompts.proof.checkpoints import read_checkpoint, sign_statement
from prompts.proof.evidence import (
    EVIDENCE_CHECKS,
    FETCH_CHECKS,
    INPUTS_CHECK,
    MOVE_COVERAGE_CHECK,
    POINTER_CHECKS,
    SALTS_CHECK,
    SKILL_CHECK,
    SLOT_CONTENTS_CHECK,
    TOOLS_CHECK,
    CheckResult,
    is_evidence_valid,
    verify_evidence,
)
from prompts.proof.evidence_reader import NOT_YET_SEALED, LabelPointer
from prompts.proof.signing_keys import dump_public_key, generate_signing_key, get_key_id
from tests.example_counts import examples
from tests.prompts.proof.proof_bundle import (
    LOCKED,
    PARTS,
    SERVED_TEXT,
    SLOT_DATA,
    TEXTS,
    TOOLS,
    Case,
    fill,
)
from tests.prompts.proof.proof_stage import KEY, chained, version

PUBLIC = KEY.public_key()
OURS = get_key_id(PUBLIC)


def run_checks(data, **more):
    options: dict[str, Any] = {"fill": fill, "expected_key": OURS} | more
    return verify_evidence(data, **options)


def by_state(data, state, **more):
    return {check.name for check in run_checks(data, **more) if check.state == state}


def failed(data, **more):
    return by_state(data, "failed", **more)


def get_message(data, name, **more):
    [result] = [check for check in run_checks(data, **more) if check.name == name]
    return result.message


# --- unmodified bundles --------------------------------------------------------------------------------


def test_an_honest_bundle_passes_every_check():
    checks = run_checks(Case().with_inputs().with_long_value().bundle())
    assert {check.state for check in checks} == {"ok"}
    # It is evidence of a prompt, not of a skill file.
    assert len(checks) == len(EVIDENCE_CHECKS) + 1
    assert is_evidence_valid(checks)


def test_a_bundle_is_the_same_after_a_trip_through_a_file():
    data = Case().bundle()
    assert parse_canonical_json(json.dumps(data, indent=2)) == data
    assert not failed(json.loads(json.dumps(data)))


def test_without_an_expected_key_the_message_warns():
    data = Case().bundle()
    message = get_message(data, "key is the expected key", expected_key=None)
    assert message.startswith("NOT COMPARED")
    assert OURS in message
    assert by_state(data, "absent", expected_key=None) == {"key is the expected key"}


def test_a_key_can_be_known_by_its_pem():
    assert not failed(Case().bundle(), expected_key=dump_public_key(PUBLIC))
    for other in (dump_public_key(generate_signing_key().public_key()), "-----BEGIN nonsense", "", "0" * 16):
        assert failed(Case().bundle(), expected_key=other) == {"key is the expected key"}


def test_without_a_way_to_fill_slots_the_rest_is_still_checked():
    data = Case().bundle()
    assert by_state(data, "absent", fill=None) == {"text rebuilt"}
    assert not failed(data, fill=None)


# --- missing evidence ----------------------------------------------------------------------------------


def test_a_row_not_yet_sealed_is_reported():
    data = Case().bundle(blocks=(), block_rows=(), signed=None)
    assert data["block"] == NOT_YET_SEALED
    assert by_state(data, "absent") == {
        "seal is in its block",
        "block hash",
        "checkpoint covers the block",
        "checkpoint covers the version",
        "checkpoint covers the label move",
        "label pointed to the version",
        "heads match the checkpoint",
        "signature",
        "key is the expected key",
    }
    assert not failed(data)


def test_a_version_never_fetched_has_no_ledger_row():
    data = Case().bundle(ledger=None, blocks=(), block_rows=(), slots=None, text=None, served=None)
    assert data["block"] is None
    assert not failed(data)
    assert {"version hash", "checkpoint covers the version", "signature"} <= by_state(data, "ok")


def test_evidence_without_a_time_has_no_pointer():
    checks = run_checks(Case().with_inputs().with_long_value().bundle(pointer=None))
    assert len(checks) == len(EVIDENCE_CHECKS) - 1
    assert {check.state for check in checks} == {"ok"}
    assert not POINTER_CHECKS & {check.name for check in checks}


def test_evidence_for_a_time_skips_the_fetch_checks():
    checks = run_checks(
        Case().bundle(ledger=None, blocks=(), block_rows=(), slots=None, text=None, served=None)
    )
    assert {check.state for check in checks} == {"ok"}
    assert not FETCH_CHECKS & {check.name for check in checks}


def test_an_incomplete_fetch_runs_all_checks():
    complete = Case().bundle()
    for name in ("ledger", "text", "served", "slots", "block"):
        assert by_state(complete | {name: None}, "absent")
        assert by_state(complete | {name: None, "pointer": None}, "absent")
    nothing = complete | dict.fromkeys(("ledger", "text", "served", "slots", "block", "pointer"))
    assert by_state(nothing, "absent") >= (FETCH_CHECKS | POINTER_CHECKS) - {SKILL_CHECK}


def test_the_latest_version_at_a_time_needs_no_move():
    case = Case()
    case.label, case.label_at = "latest", version(2).at
    checks = run_checks(case.bundle(pointer=LabelPointer("latest", case.label_at, [])))
    assert {check.state for check in checks} == {"ok"}
    assert MOVE_COVERAGE_CHECK not in {check.name for check in checks}


def test_a_time_after_the_checkpoint_is_not_proved_yet():
    case = Case()
    case.signed_at = case.label_at - timedelta(seconds=1)
    assert by_state(case.bundle(), "absent") == {"label pointed to the version"}
    assert not failed(case.bundle())


def test_erased_text_leaves_its_digest_provable():
    case = Case()
    case.segments[0] = case.segments[0]._replace(text=None)
    data = case.bundle(text=None)
    assert not failed(data)
    assert by_state(data, "absent") == {
        "bytes match the served digest",
        "text matches its segments",
        "segments join to the built text",
        "text rebuilt",
    }
    assert get_message(data, "text matches its segments").startswith("the text of 1 of 3 segments was erased")


def test_what_a_slot_was_given_can_be_erased_too():
    case = Case()
    case.segments[2] = case.segments[2]._replace(given=None)
    data = case.bundle()
    assert not failed(data)
    assert by_state(data, "absent") == {"text matches its segments", "text rebuilt"}


# --- one manipulation per check ------------------------------------------------------------------------


def spoil_text(case):
    case.text = SERVED_TEXT.replace("Iris", "Isis")
    return case.bundle()


def spoil_slots(case):
    case.slots = {"day": "Saturday", "more": "words"}
    return case.bundle()


def spoil_segments(case):
    stored = case.segments[0].stored | {"origin": {"kind": "soul", "id": "1"}}
    case.segments[0] = case.segments[0]._replace(stored=stored)
    return case.bundle()


def spoil_salts(case):
    case.salts |= {"0" * 64: "0" * 32}
    return case.bundle()


def spoil_tools(case):
    case.with_tools().tools = TOOLS.replace("Read a page", "Burn a page")
    return case.bundle()


def spoil_added_tools(case):
    """Add definitions to a version that has none."""
    case.tools = TOOLS
    return case.bundle()


def spoil_lockfile(case):
    case.lockfile = LOCKED | {"layout": "nova"}
    return case.bundle()


def spoil_parts(case):
    case.lockfile_parts = PARTS | {"soul:4@1": "0" * 64}
    return case.bundle()


def spoil_segment_texts(case):
    """Move text from one segment to the next; the joined text stays the same."""
    first, second, third = case.segments
    case.segments = [first._replace(text=TEXTS[0][:-1]), second._replace(text=TEXTS[0][-1] + TEXTS[1]), third]
    return case.bundle()


def spoil_inline_text(case):
    """Remove text that is stored inline, which cannot have been erased."""
    case.segments[1] = case.segments[1]._replace(text=None)
    return case.bundle()


def spoil_slot_data(case):
    case.segments[2] = case.segments[2]._replace(given=SLOT_DATA + " ")
    return case.bundle()


def spoil_built_text(case):
    case.version = replace(case.version, text="0" * 64)
    return case.bundle()


def spoil_version_hash(case):
    parts = case.parts()
    first, _, previous = parts["versions"][0]
    return case.bundle(versions=[(first, "0" * 64, previous), *parts["versions"][1:]])


def spoil_time(case):
    """Claim a time after the label was moved again."""
    case.label_at += timedelta(minutes=1)
    return case.bundle()


def spoil_earlier_time(case):
    case.label_at -= timedelta(minutes=1)
    return case.bundle()


def spoil_label(case):
    case.label = "canary"
    return case.bundle()


def spoil_latest(case):
    """Claim `latest` with moves, although no move ever sets it."""
    case.label = "latest"
    return case.bundle()


def spoil_latest_time(case):
    return case.bundle(pointer=LabelPointer("latest", version(3).at, []))


def spoil_move(case):
    moves = case.parts()["pointer"].moves
    other = replace(moves[0][0], number=1)
    return case.bundle(pointer=LabelPointer(case.label, case.label_at, [(other, *moves[0][1:]), *moves[1:]]))


def spoil_move_reach(case):
    return case.bundle(pointer=LabelPointer(case.label, case.label_at, case.parts()["pointer"].moves[:1]))


def spoil_heads(case):
    data = case.bundle()
    data["checkpoint"]["heads"]["versions"].pop()
    return data


def spoil_seal(case):
    """Change the row before its block is closed, but keep its seal."""
    data = case.bundle()
    data["ledger"]["row"]["key"] = "key:5"
    return data


def spoil_fit(case):
    case.ledger = replace(case.ledger, number=1)
    return case.bundle()


def spoil_size(case):
    case.ledger = replace(case.ledger, size=1)
    return case.bundle()


def spoil_block_rows(case):
    rows = case.parts()["block_rows"]
    return case.bundle(block_rows=[(rows[0][0], rows[0][1]), (rows[1][0], "0" * 64), *rows[2:]])


def spoil_block_order(case):
    return case.bundle(block_rows=case.parts()["block_rows"][::-1])


def spoil_block_absence(case):
    return case.bundle(block_rows=case.parts()["block_rows"][1:])


def spoil_block_hash(case):
    first, _, previous = case.parts()["blocks"][0]
    return case.bundle(blocks=[(first, "0" * 64, previous), *case.parts()["blocks"][1:]])


def spoil_later_block(case):
    blocks = case.parts()["blocks"]
    changed = replace(blocks[1][0], count=3)
    return case.bundle(blocks=[blocks[0], (changed, *blocks[1][1:])])


def spoil_block_reach(case):
    return case.bundle(blocks=case.parts()["blocks"][:1])


def spoil_version_reach(case):
    return case.bundle(versions=case.parts()["versions"][:1])


def spoil_strange_version(case):
    versions = case.parts()["versions"]
    return case.bundle(versions=[versions[0], *chained([version(1, 9, None)])])


def spoil_head(case):
    checkpoint, heads = read_statement(case)
    kept = ChainHeads(tuple(head for head in heads.versions if head.agent != 3), heads.label_moves)
    versions, moves = kept.summarize()
    return case.bundle(
        signed=(sign_statement(replace(checkpoint, versions=versions, label_moves=moves), KEY, kept), PUBLIC)
    )


def spoil_workspace(case):
    checkpoint, heads = read_statement(case)
    return case.bundle(signed=(sign_statement(replace(checkpoint, workspace=2), KEY, heads), PUBLIC))


def read_statement(case):
    statement = case.bundle()["checkpoint"]
    return read_checkpoint(statement["body"]), read_heads(statement["heads"])


def spoil_signature(case):
    data = case.bundle()
    other = sign_again(case)
    data["checkpoint"]["signature"] = other["checkpoint"]["signature"]
    return data


def sign_again(case):
    case.key = generate_signing_key()
    return case.bundle()


def spoil_key(case):
    """Rewrite everything and sign it with Mallory's key; only the comparison of keys can fail."""
    return sign_again(case)


COVER = {
    "checkpoint covers the block",
    "checkpoint covers the version",
    "checkpoint covers the label move",
}
POINTED = {"label pointed to the version"}
SPOILED = [
    (spoil_text, {"bytes match the served digest", "text rebuilt"}),
    (spoil_slots, {"slots match the ledger"}),
    (spoil_segments, {"segments match the version"}),
    (spoil_salts, {"salts belong to the texts"}),
    (spoil_tools, {"tool definitions match the version"}),
    (spoil_added_tools, {"tool definitions match the version"}),
    (spoil_lockfile, {"lockfile matches the version"}),
    (spoil_parts, {"parts match the lockfile"}),
    (spoil_segment_texts, {"text matches its segments"}),
    (spoil_inline_text, {"text matches its segments"}),
    (spoil_slot_data, {"text matches its segments"}),
    (spoil_built_text, {"segments join to the built text"}),
    (spoil_version_hash, {"version hash", "checkpoint covers the version"}),
    (spoil_time, POINTED),
    (spoil_earlier_time, POINTED),
    (spoil_label, POINTED),
    (spoil_latest, POINTED),
    (spoil_latest_time, POINTED),
    (spoil_move, POINTED | {"checkpoint covers the label move"}),
    (spoil_move_reach, {"checkpoint covers the label move"}),
    (spoil_heads, {"heads match the checkpoint"}),
    (spoil_seal, {"ledger seal"}),
    (spoil_fit, {"ledger row matches the version and the bytes"}),
    (spoil_size, {"ledger row matches the version and the bytes"}),
    (spoil_block_rows, {"seal is in its block"}),
    (spoil_block_order, {"seal is in its block"}),
    (spoil_block_absence, {"seal is in its block"}),
    (spoil_block_hash, {"block hash", "checkpoint covers the block"}),
    (spoil_later_block, {"checkpoint covers the block"}),
    (spoil_block_reach, {"checkpoint covers the block"}),
    (spoil_version_reach, {"checkpoint covers the version"}),
    (spoil_strange_version, {"checkpoint covers the version"}),
    (spoil_head, {"checkpoint covers the version"}),
    (spoil_workspace, COVER),
    (spoil_signature, {"signature"}),
    (spoil_key, {"key is the expected key"}),
]


@pytest.mark.parametrize(("spoil", "expected"), SPOILED, ids=lambda case: getattr(case, "__name__", ""))
def test_what_was_spoiled_fails_by_name_and_nothing_else_does(spoil, expected):
    assert failed(spoil(Case())) == expected


def test_tool_definitions_are_proved_by_the_version():
    checks = run_checks(Case().with_tools().bundle())
    assert {check.state for check in checks} == {"ok"}
    [check] = [check for check in checks if check.name == TOOLS_CHECK]
    assert check.message == "the tool definitions are the version's"


def test_erased_tool_definitions_are_reported_as_absent():
    case = Case().with_tools()
    case.tools = None
    assert by_state(case.bundle(), "absent") == {TOOLS_CHECK}
    assert not failed(case.bundle())


@pytest.mark.parametrize("key", ["tools", "inputs", "slot_contents", "salts"])
def test_a_bundle_without_a_key_is_rejected(key):
    bundle = Case().bundle()
    del bundle[key]
    assert failed(bundle) >= {"format"}


def test_a_salt_without_a_text_and_a_changed_salt_are_found():
    bundle = Case().bundle()
    assert failed(bundle | {"salts": bundle["salts"] | {"0" * 64: "0" * 32}}) == {SALTS_CHECK}
    for digest in bundle["salts"]:
        changed = bundle | {"salts": bundle["salts"] | {digest: "0" * 32}}
        assert failed(changed) >= {"text matches its segments", "bytes match the served digest"}


def test_the_text_is_not_proved_without_a_salt():
    bundle = Case().bundle()
    [first, *_] = bundle["salts"]
    salts = {digest: salt for digest, salt in bundle["salts"].items() if digest != first}
    assert failed(bundle | {"salts": salts}) >= {"text matches its segments"}


def test_long_slot_values_are_proved_by_their_digests():
    bundle = Case().with_long_value().bundle()
    assert not failed(bundle)
    [digest] = bundle["slot_contents"]
    assert failed(bundle | {"slot_contents": {digest: '"Sunday"'}}) >= {SLOT_CONTENTS_CHECK}
    assert failed(bundle | {"slot_contents": bundle["slot_contents"] | {text_digest("{}"): "{}"}}) >= {
        SLOT_CONTENTS_CHECK
    }
    assert by_state(bundle | {"slot_contents": None}, "absent") == {SLOT_CONTENTS_CHECK, "text rebuilt"}
    assert failed(Case().bundle() | {"slot_contents": {}}) == {SLOT_CONTENTS_CHECK}


def test_inputs_are_proved_by_the_lockfile():
    checks = run_checks(Case().with_inputs().bundle())
    assert {check.state for check in checks} == {"ok"}
    [check] = [check for check in checks if check.name == INPUTS_CHECK]
    assert check.message == "the 4 stored inputs belong to the version"


def drop_last(inputs):
    return dict(list(inputs.items())[:-1])


@pytest.mark.planted
@pytest.mark.parametrize(
    "spoil",
    [
        lambda inputs: {digest: text.replace("tea", "rum") for digest, text in inputs.items()},
        lambda inputs: inputs | {text_digest("{}"): "{}"},
        drop_last,
        lambda inputs: {},
        lambda inputs: dict.fromkeys(inputs, "[" * 5_000),
    ],
    ids=["changed", "added", "dropped", "none", "nested"],
)
def test_spoiled_inputs_are_found(spoil):
    case = Case().with_inputs()
    case.inputs = spoil(case.inputs)
    assert failed(case.bundle()) >= {INPUTS_CHECK}


def test_every_check_is_needed_by_something_above():
    named = set().union(*(expected for _, expected in SPOILED))
    assert named == {check.name for check in run_checks(Case().bundle())} - {"format"}


def test_segments_that_give_another_text_are_found():
    assert failed(Case().bundle(), fill=lambda bundle: "Another text") == {"text rebuilt"}


@pytest.mark.parametrize("error", [KeyError("day"), RecursionError(), ValueError("no"), ZeroDivisionError()])
def test_a_renderer_that_breaks_is_a_failed_check(error):
    def broken(bundle):
        raise error

    assert failed(Case().bundle(), fill=broken) == {"text rebuilt"}


# --- untrusted bundles ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        None,
        [],
        "words",
        {},
        {1: 2},
        {"format": "dramatis-evidence"},
        {"format": "dramatis-evidence", "version": 2},
        {"format": "dramatis-evidence", "version": True},
        {"format": "dramatis-evidence", "version": 1},
        {"format": "dramatis-evidence", "version": 10**5_000},
    ],
    ids=lambda data: type(data).__name__,
)
def test_what_is_no_bundle_fails_every_check(data):
    checks = run_checks(data)
    assert {check.state for check in checks} <= {"failed", "absent"}
    assert checks[0].state == "failed"
    assert not is_evidence_valid(checks)


def places(value, path=()):
    """Yield the path of every value in the data, including the root."""
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inner:
        yield from places(item, (*path, key))


def put(data, path, value):
    if not path:
        return value
    copy = json.loads(json.dumps(data))
    inner = copy
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return copy


def cut(data, path):
    copy = json.loads(json.dumps(data))
    inner = copy
    for key in path[:-1]:
        inner = inner[key]
    del inner[path[-1]]
    return copy


ODD: tuple[Any, ...] = (
    None,
    True,
    -1,
    2**80,
    1.5,
    float("nan"),
    "",
    "\ud800",
    "x" * 70,
    [],
    [[]],
    {},
    {"": None},
    [1, "a"],
    b"x",
    (1,),
)
BUNDLE = Case().bundle()
PLACES = list(places(BUNDLE))


@pytest.mark.slow
@pytest.mark.parametrize("every", [15, pytest.param(1, marks=pytest.mark.hard)])
def test_nothing_put_anywhere_raises_and_nearly_all_of_it_fails(every):
    """Put None at every path, and each other value at every path or at every n-th one."""
    quiet = set()
    for place, path in enumerate(PLACES):
        for value in (None, *ODD[1 + place % every :: every]):
            data = put(BUNDLE, path, value)
            checks = run_checks(data)
            assert all(isinstance(check, CheckResult) and check.message for check in checks)
            "\n".join(check.message for check in checks).encode()
            if is_evidence_valid(checks) and data != BUNDLE:
                quiet.add(path)
    # These may be legitimately absent: erased text, or what is not recorded yet.
    erasable = {("segments", 0, "text"), ("segments", 2, "text"), ("segments", 2, "given")}
    absent = {("text",), ("served",), ("slots",), ("segments",), ("lockfile",), ("parts",), ("pointer",)}
    assert quiet == absent | {("ledger",), ("block",), ("checkpoint",)} | erasable


@pytest.mark.slow
def test_nothing_taken_away_raises_and_all_of_it_fails():
    for path in PLACES[1:]:
        assert not is_evidence_valid(run_checks(cut(BUNDLE, path))), path


def is_equivalent(data) -> bool:
    """Tell whether the bundles differ only in the requested time, for which the result can be the same."""
    fields = data.get("pointer")
    return isinstance(fields, dict) and data == put(BUNDLE, ("pointer", "at"), fields.get("at"))


@pytest.mark.slow
@pytest.mark.parametrize("flips", [150, pytest.param(1_000, marks=pytest.mark.hard)])
def test_flipped_bytes_of_a_bundle_file_are_found(flips):
    text = canonical_json(BUNDLE)
    dice = Random(4)  # noqa: S311  # repeatable, and no secret
    read = 0
    for _ in range(flips):
        place = dice.randrange(len(text))
        flipped = text[:place] + bytes([text[place] ^ 1 << dice.randrange(8)]) + text[place + 1 :]
        try:
            data = parse_canonical_json(flipped)
        except ValueError:
            continue
        if is_equivalent(data):
            continue
        read += 1
        assert not is_evidence_valid(run_checks(data)), flipped[place - 20 : place + 20]
    assert read > flips // 4


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.slow
@settings(max_examples=examples(25, hard=150), deadline=None)
@given(st.lists(st.tuples(st.sampled_from(PLACES), anything), min_size=1, max_size=4))
def test_no_bundle_makes_the_verifier_raise(changes):
    data = BUNDLE
    for path, value in changes:
        try:
            data = put(data, path, value)
        except (LookupError, TypeError):
            # An earlier change removed the path.
            continue
    for check in run_checks(data, fill=None):
        assert check.state in {"ok", "failed", "absent"}
        assert check.message


def test_deep_nesting_and_long_lists_end():
    deep: list = []
    for _ in range(500):
        deep = [deep]
    for path in (("slots",), ("lockfile", "gone"), ("versions", 0, "row", "causes"), ("checkpoint", "body")):
        assert not is_evidence_valid(run_checks(put(BUNDLE, path, {"a": deep})))
    assert not is_evidence_valid(run_checks(put(BUNDLE, ("block", "rows"), [[1, "a"]] * 50_000)))
