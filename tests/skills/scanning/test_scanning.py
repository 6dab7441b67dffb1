"""The scanner: each rule has its matches and no others, runs in linear time and shows no secret."""

import ast
import re
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skills.discovery.harnesses import DiscoveryCaps
from skills.scanning import (
    SCAN_RULES,
    Finding,
    ScanRule,
    compute_key_checksum,
    has_blocking_finding,
    mark_hidden_characters,
    mask_secrets,
    scan_text,
)
from skills.scanning.prompt_tags import FIELD_NAMES, SECTION_NAMES, normalize_tag_name
from skills.scanning.scanner import MAX_FINDINGS
from tests.example_counts import examples
from tests.skills.scanning.scanning_samples import (
    FURTHER,
    HEX,
    INNOCENT,
    MARKDOWN,
    MIXED,
    PROSE,
    SAMPLES,
    SECRETS,
    head,
)

ROOT = Path(__file__).resolve().parents[3]
DEMO = sorted(
    path
    for folder in ("tree", "cast")
    for path in (ROOT / "prompts/studio/demo" / folder).rglob("*")
    if path.is_file()
)
EACH_RULE = pytest.mark.parametrize("rule", SCAN_RULES, ids=lambda rule: rule.name)


def pairs(texts_of: dict[str, list[str]]) -> list[tuple[str, str]]:
    return [(name, text) for name, texts in texts_of.items() for text in texts]


def list_matched_rules(text: str, rules=SCAN_RULES) -> set[str]:
    return {finding.rule for finding in scan_text(text, kind="skill", rules=rules)}


def only(text: str, **options) -> Finding:
    findings = scan_text(text, **options)
    assert len(findings) == 1, findings
    return findings[0]


# --- each rule -----------------------------------------------------------------------------------------


def check_sample(name: str, rules=SCAN_RULES) -> None:
    assert name in list_matched_rules(SAMPLES[name], rules)


@EACH_RULE
def test_a_rule_finds_its_sample(rule):
    check_sample(rule.name)


@EACH_RULE
def test_a_rule_finds_its_sample_in_the_middle_of_prose(rule):
    if rule.kinds != frozenset({"skill"}):
        assert rule.name in list_matched_rules(f"{MARKDOWN}\n\nSee: {SAMPLES[rule.name]} \n\n{MARKDOWN}")


@pytest.mark.parametrize(("name", "text"), pairs(FURTHER), ids=ascii)
def test_a_rule_finds_its_other_forms(name, text):
    assert name in list_matched_rules(text)


@pytest.mark.parametrize(("name", "text"), pairs(INNOCENT), ids=ascii)
def test_a_rule_lets_pass_what_only_resembles(name, text):
    assert name not in list_matched_rules(text)


@pytest.mark.planted
@EACH_RULE
def test_without_its_row_a_rule_is_missed(rule):
    with pytest.raises(AssertionError):
        check_sample(rule.name, [row for row in SCAN_RULES if row is not rule])


def test_every_rule_has_samples_of_both_kinds():
    names = [rule.name for rule in SCAN_RULES]
    assert len(names) == len(set(names))
    assert set(SAMPLES) == set(INNOCENT) == set(names)


def test_about_twenty_kinds_of_keys_are_known():
    assert len(SECRETS) >= 20


@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_is_reported_once(name):
    assert [finding.rule for finding in scan_text(SECRETS[name])] == [name]


@pytest.mark.parametrize("name", SECRETS)
def test_a_masked_text_has_no_finding_of_that_rule_and_the_same_lines(name):
    text = f"Before.\n{SECRETS[name]}\nAfter {SECRETS[name]} again.\n"
    masked = mask_secrets(text)
    assert name not in list_matched_rules(masked)
    assert "•••" in masked
    assert masked.count("\n") == text.count("\n")
    assert masked.startswith("Before.\n")
    assert masked.endswith(" again.\n")
    assert mask_secrets(MARKDOWN) == MARKDOWN


def test_what_hides_reorders_closes_or_is_secret_blocks():
    unseen = {"invisible-character", "bidi-control", "bidi-mark", "tag-character"}
    others = {"variation-selectors", "control-character", "section-closing"}
    blocking = {rule.name for rule in SCAN_RULES if rule.severity == "block"}
    assert blocking == unseen | others | set(SECRETS)


# --- our prompts' own tags -----------------------------------------------------------------------------


FRAMING = ("build_tag_frame", "wrap_in_tag", "build_tagged_element", "wrapper", "escape_closing_tags")
CLOSING = re.compile(r"</([\w-]+)>")


def tags_in_code() -> Iterator[str]:
    """Names passed to the functions that build tags, and closing tags in string literals."""
    for path in sorted((ROOT / "prompts/assembly").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Call(func=ast.Name(id=called) | ast.Attribute(attr=called)) if called in FRAMING:
                    yield from (str(name.value) for name in node.args if isinstance(name, ast.Constant))
                case ast.Constant(value=str(text)):
                    yield from CLOSING.findall(text)


def tags_in_prompts() -> Iterator[str]:
    """Closing tags on separate lines of the golden prompts."""
    for path in sorted((ROOT / "tests/prompts/assembly/golden").rglob("*.txt")):
        lines = path.read_text(encoding="utf-8").splitlines()
        yield from (match[1] for line in lines if (match := CLOSING.fullmatch(line.strip())))


@pytest.mark.parametrize("tags_of_layouts", [tags_in_code, tags_in_prompts])
def test_every_tag_of_every_layout_is_known(tags_of_layouts):
    tags = {normalize_tag_name(tag) for tag in tags_of_layouts()}
    assert len(tags) > 25
    # The status tag is written by the model and is not part of the prompt.
    assert tags - {"status"} <= {*SECTION_NAMES, *FIELD_NAMES}


@pytest.mark.parametrize("shape", ["</{}>", "</ {}\n>", "< /{} x='y'>", "</{}"])
def test_no_section_can_be_closed(shape):
    for name in SECTION_NAMES:
        assert list_matched_rules(shape.format(name)) == {"section-closing"}, name
        assert list_matched_rules(shape.format(name.upper())) == {"section-closing"}, name


def test_a_look_alike_within_another_tag_is_still_seen():
    assert list_matched_rules("<context \uff1c/soul\uff1e >") == {"section-closing"}
    assert list_matched_rules("<context \uff1c/context\uff1e >") == {"section-look-alike"}


# --- prose and code ------------------------------------------------------------------------------------


@pytest.mark.parametrize("language", PROSE)
def test_prose_in_many_scripts_passes_without_a_word(language):
    assert scan_text(PROSE[language]) == ()
    assert mark_hidden_characters(PROSE[language]) == PROSE[language]


@pytest.mark.parametrize("language", PROSE)
def test_prose_does_not_hide_a_finding_next_to_it(language):
    assert "invisible-character" in list_matched_rules(f"{PROSE[language]} a\u200bb {PROSE[language]}")


def test_markdown_with_code_ids_and_hashes_passes_without_a_word():
    assert scan_text(MARKDOWN) == ()
    assert scan_text(MARKDOWN.replace("\n", "\r\n")) == ()


@pytest.mark.parametrize("kind", ["context", "skill", "typed"])
def test_nothing_of_the_demo_is_blocked(kind):
    for path in DEMO:
        assert not has_blocking_finding(scan_text(path.read_text(encoding="utf-8"), kind=kind)), path


def test_the_demo_is_there():
    assert len(DEMO) > 30


# --- kinds ---------------------------------------------------------------------------------------------


def test_permission_rules_apply_to_skills_only():
    text = head("allowed-tools: '*'")
    assert [finding.rule for finding in scan_text(text, kind="skill")] == ["wide-tools"]
    assert scan_text(text) == scan_text(text, kind="typed") == ()


@pytest.mark.parametrize("name", SAMPLES)
def test_what_members_type_is_flagged_and_never_blocked(name):
    findings = scan_text(SAMPLES[name], kind="typed")
    assert not has_blocking_finding(findings)
    assert len(findings) == len(scan_text(SAMPLES[name]))


def test_only_a_blocking_finding_blocks():
    assert has_blocking_finding(scan_text("</soul>"))
    assert not has_blocking_finding(scan_text("<soul></soul>"))
    assert not has_blocking_finding(())


# --- places --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_lines_and_columns_count_from_one_whatever_ends_a_line(line_end):
    finding = only(line_end.join(["one", "", "three", "ab\u200bc"]))
    assert (finding.line, finding.column) == (4, 3)


def test_columns_count_code_points():
    finding = only("\U0001f600\U00020000é \u200b")
    assert (finding.line, finding.column) == (1, 5)


def test_a_finding_at_the_start_or_the_end_has_its_place():
    assert [(finding.line, finding.column) for finding in scan_text("\u200b\n\u200b")] == [(1, 1), (2, 1)]


def test_a_run_is_one_finding():
    assert only("a" + "\u200b" * 50_000 + "b").column == 2


def test_findings_come_in_the_order_of_the_text():
    text = "\n".join(SAMPLES[rule.name] for rule in reversed(SCAN_RULES))
    places = [(finding.line, finding.column) for finding in scan_text(text)]
    assert len(places) > 30
    assert places == sorted(places)


def test_the_base64_of_a_private_key_is_reported_only_as_a_key():
    lines = "\n".join(MIXED[:64] for _ in range(20))
    text = f"-----BEGIN PRIVATE {'KEY'}-----\n{lines}\n-----END PRIVATE {'KEY'}-----\n"
    assert only(text).rule == "secret-private-key"


# --- many ----------------------------------------------------------------------------------------------


def test_more_than_a_hundred_end_with_a_word_that_there_are_more():
    *findings, last = scan_text("a\u200b" * 5_000)
    assert len(findings) == 100
    assert [finding.column for finding in findings[:3]] == [2, 4, 6]
    assert (last.rule, last.severity, last.line, last.column) == ("more", "block", 1, 10_001)


def test_exactly_a_hundred_need_no_such_word():
    assert len(scan_text("a\u200b" * 100)) == 100
    assert len(scan_text("a\u200b" * 101)) == 101


def test_a_flood_of_trifles_hides_nothing_grave():
    findings = scan_text("</name>\n" * 5_000 + "</soul>")
    assert "section-closing" in {finding.rule for finding in findings}
    assert findings[-1].rule == "more"
    assert findings[-1].severity == "note"


def test_what_is_left_out_keeps_its_gravity():
    assert has_blocking_finding(scan_text("</soul>\n" * 5_000)[-1:])


ODD = st.sampled_from(
    [*SAMPLES.values(), *(text for texts in FURTHER.values() for text in texts), *"\r\n <>/-\u200b\u0645"]
)


@pytest.mark.slow
@given(st.lists(ODD | st.text(), max_size=12).map("".join), st.sampled_from(["context", "skill", "typed"]))
@settings(max_examples=examples(40, hard=200), deadline=None)
def test_whatever_the_text_findings_are_ordered_bounded_and_in_it(text, kind):
    findings, lines = scan_text(text, kind=kind), re.split("\r\n?|\n", text)
    places = [(finding.line, finding.column) for finding in findings]
    assert places == sorted(places)
    assert len(findings) <= MAX_FINDINGS + 1
    assert all(1 <= column <= len(lines[line - 1]) + 1 for line, column in places)


# --- what is shown -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SECRETS)
def test_no_excerpt_tells_a_secret(name):
    finding = only(f"the key {SECRETS[name]} ends here")
    assert "•••" in finding.excerpt
    assert SECRETS[name] not in finding.excerpt
    # The random part of every sample is taken from these.
    parts = [text[at : at + 9] for text in (MIXED, HEX) for at in range(len(text) - 9)]
    assert not [part for part in [*parts, "tr0ub4dor", "ZVKYLN"] if part in finding.excerpt]


def test_no_excerpt_of_a_neighbour_tells_a_secret_either():
    text = "\u200b redis" + "://:" + "9fK2-xQ@h </soul>"
    assert len(scan_text(text)) == 3
    assert not [finding for finding in scan_text(text) if "9fK2-xQ" in finding.excerpt]


def test_no_excerpt_of_the_hundredth_neighbour_does():
    text = ("\u200b redis" + "://:" + "9fK2-xQ@h </soul>\n") * 500
    assert not [finding for finding in scan_text(text) if "9fK2-xQ" in finding.excerpt]


def test_an_excerpt_shows_the_unseen_as_marks_in_its_line():
    assert only("first\nig\u200b\u2060nore\nlast").excerpt == "ig⟦U+200B⟧⟦U+2060⟧nore"


@pytest.mark.parametrize("name", SAMPLES)
def test_an_excerpt_is_one_short_line_without_anything_unseen(name):
    for finding in scan_text(SAMPLES[name] + "\u200b" * 1_000, kind="skill"):
        assert len(finding.excerpt) <= 241
        assert finding.excerpt.splitlines() in ([finding.excerpt], [])
        assert mark_hidden_characters(finding.excerpt) == finding.excerpt


def test_an_excerpt_never_ends_inside_a_mark():
    excerpt = only("\U000e0041" * 1_000).excerpt
    assert excerpt.endswith("⟧…")


def test_visible_marks_what_hides_and_spares_what_works():
    assert (
        mark_hidden_characters("a\u200bb\u202ec\U000e0041d\x1be") == "a⟦U+200B⟧b⟦U+202E⟧c⟦U+E0041⟧d⟦U+001B⟧e"
    )
    assert mark_hidden_characters("plain\ttext\r\n") == "plain\ttext\r\n"
    assert mark_hidden_characters("") == ""


def test_every_message_is_a_sentence():
    assert all(rule.message.endswith(".") and len(rule.message) < 120 for rule in SCAN_RULES)


# --- our keys ------------------------------------------------------------------------------------------


def test_the_checksum_is_the_crc32_in_six_base62_characters():
    # The check value of CRC32, 0xCBF43926 = 3,421,780,262, in base62.
    assert compute_key_checksum("123456789") == "3jZRME"
    assert compute_key_checksum("") == "000000"


def test_one_wrong_character_makes_a_key_a_look_alike():
    key = SECRETS["secret-own-key"]
    assert only(key).severity == "block"
    assert only(key[:20] + "0" + key[21:]).severity == "note"


# --- time ----------------------------------------------------------------------------------------------

# Generous, because the growth of the time is what matters.
SLOWEST = 10
# Shorter times are not reliable; quadratic work on a quarter of a megabyte takes far longer.
MEASURABLE = 0.05
# Small sizes first, so that a pattern that is not linear fails before it takes minutes.
SIZES = (2**14, 2**16, 2**18)
# Twice as much as the largest file.
BEYOND = (2**17, 2**19)
FILLERS = ["a", " ", "\n", "A1b-", "/", "<", "\u200d\u0645"]
BAITS = [
    *("<", "< ", "</", "<\t/ ", "<context ", "<context>", "</context ", "<\\", "\uff1c"),
    *("<!--", "<!-- -->", "<!-- ignore ", "<!-- you ", "<!-- send key", "<!-- curl a", "<!---"),
    *("](", "](a ", '](a "', "](a '", "](a (", "]:", "]: a ", '](a "ignore ', "]:]("),
    *("-----BEGIN PRIVATE KEY-----", "-----BEGIN ", "-----BEGIN PRIVATE KEY-----a-", "-"),
    *("postgres://", "postgres://a:", "postgres://a:bcd@", "https://a:abc", "://:"),
    *("eyJ", "eyJaaaaaaaaaaa.", "eyJaaaaaaaaaaa.eyJaaaaaaaaaaa.", "sk-", "sk-ant-", "sk-a1", "drm_bot_"),
    *("AccountKey=", "secret_access_key = ", "secretaccesskey:", "123456789:AA", "gl", "xox", "SG."),
    *(
        MIXED,
        MIXED[:60] + "\n",
        MIXED[:76] + "\r\n> ",
        MIXED[:60] + "\n" + MIXED[:30] + "!",
        "A1b" * 80 + " ",
    ),
    *(
        "\u200b",
        "a\u200b",
        "\u200e",
        "a\u200e",
        "\u05d0\u200e ",
        "\ufe0f",
        "a\ufe0f",
        "\u2764\ufe0f",
        "\U000e0041",
    ),
    *("\U0001f3f4\U000e0067", "\U0001f600\u200d", "\u0645\u200c", "\x1b", "a\x1b", "â\x80", "\x80", "\u202e"),
    *("\r", "\r\n", "\n", "a", " ", "0", "é", "allowed-tools: ", "\n- Bash(", "Bash(*) ", "*"),
]


def units(rule: ScanRule) -> list[str]:
    """Prefixes of matches, which cause backtracking, and near misses."""
    sample = SAMPLES[rule.name]
    cuts = sorted({max(1, len(sample) * part // 4) for part in range(1, 4)})
    return [*(sample[:cut] for cut in cuts), sample[: cuts[-1]] + " ", *INNOCENT[rule.name][:2]]


def hostile(rule: ScanRule) -> Iterator[Callable[[int], str]]:
    """Generators of long texts: repeated units, and half a sample before a long run."""
    half = SAMPLES[rule.name][: len(SAMPLES[rule.name]) // 2]
    yield from (partial(repeated, unit) for unit in units(rule))
    yield from (partial(repeated, filler, before=half) for filler in FILLERS)


def repeated(unit: str, size: int, *, before: str = "", after: str = "") -> str:
    return before + (unit * (size // len(unit) + 1))[:size] + after


def seconds(work: Callable[[str], object], text: str) -> float:
    start = process_time()
    work(text)
    return process_time() - start


def is_linear(work: Callable[[str], object], text_of: Callable[[int], str], sizes=SIZES) -> bool:
    """Return whether twice the text takes less than three times as long, and at most a few seconds."""
    before, size_before = 0.0, 0
    for size in sizes:
        took = seconds(work, text_of(size))
        is_measurable = took > MEASURABLE and before > MEASURABLE / 10
        if took > SLOWEST or (is_measurable and took >= before * 1.5 * size / size_before):
            return False
        # Even quadratic growth would not be measurable at the largest size, so it is skipped.
        if took * (sizes[-1] / size) ** 2 < MEASURABLE:
            return True
        before, size_before = took, size
    return True


def is_linear_at_last(work: Callable[[str], object], text_of: Callable[[int], str], sizes=SIZES) -> bool:
    """Retry, because of noise; a pattern that is not linear fails every time."""
    return any(is_linear(work, text_of, sizes) for _ in range(3))


def as_scanned(rule: ScanRule) -> Callable[[str], object]:
    return lambda text: list(islice(rule.find(text), MAX_FINDINGS + 1))


@pytest.mark.slow
@EACH_RULE
@pytest.mark.parametrize("sizes", [SIZES, pytest.param(BEYOND, marks=pytest.mark.hard)], ids=max)
def test_a_rule_takes_linear_time_on_text_made_to_hurt_it(rule, sizes):
    for text_of in hostile(rule):
        assert is_linear_at_last(as_scanned(rule), text_of, sizes), ascii(text_of(80))


@pytest.mark.hard
@pytest.mark.parametrize("bait", BAITS, ids=ascii)
def test_a_scan_of_the_largest_file_full_of_bait_takes_linear_time(bait):
    def scan_all(text: str) -> object:
        return scan_text(text, kind="skill"), mark_hidden_characters(text)

    assert max(SIZES) >= DiscoveryCaps().file_bytes
    assert is_linear_at_last(scan_all, partial(repeated, bait, before="---\n"))


@pytest.mark.slow
@pytest.mark.planted
@pytest.mark.parametrize(
    ("pattern", "bait"),
    [(r"a*b", "a"), (r"(?s)<!--.*?-->", "<!--"), (r"\s+$", " "), (r"\w+@", "a"), (r"(a|b)*c", "ab")],
)
def test_a_slow_pattern_would_be_noticed(pattern, bait):
    slow = re.compile(pattern)
    sizes = (2**11, 2**12, 2**13, 2**14)
    assert not is_linear(lambda text: list(slow.finditer(text)), partial(repeated, bait, after="!"), sizes)


@pytest.mark.slow
@pytest.mark.planted
def test_quick_work_that_is_not_linear_is_noticed_at_the_sizes_of_every_run():
    """The fastest search of a regex, for one character, restarted at every fiftieth position."""
    sign = re.compile("!")

    def slow(text: str) -> None:
        for start in range(0, len(text), 50):
            sign.search(text, start)

    assert not is_linear(slow, partial(repeated, "a"))
