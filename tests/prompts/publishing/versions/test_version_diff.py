"""Comparison of two versions: sections, words, moved segments and the cache prefix."""

import random
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prompts.assembly.segments import LAYOUT_ORIGIN, Origin, Segment
from prompts.publishing.versions.diff import (
    MAX_CHARACTERS,
    MAX_LINES,
    compare_segments,
    count_common_prefix,
    find_longest_increasing_run,
    find_out_of_order,
    join_section_texts,
    join_segment_texts,
)
from tests.example_counts import examples


def count_words(text):
    return len(text.split())


def segment(section, text, origin=LAYOUT_ORIGIN, volatility="release", lead=0):
    return Segment(section, text, origin, volatility, lead)


def memory(number, text="", section="memories"):
    return segment(section, text or f"\n- Fact {number}.", Origin("memory", str(number), 1))


def soul(text, revision=1):
    return segment("soul", text, Origin("soul", "1", revision))


def states(diff):
    return {section.name: section.status for section in diff.sections}


def test_equal_versions_have_no_differences():
    diff = compare_segments([soul("Be calm.")], [soul("Be calm.", revision=2)], count_words)
    assert (diff.changed, diff.moved, diff.token_delta) == ([], [], 0)
    assert (diff.prefix.kept_characters, diff.prefix.rewritten_tokens, diff.prefix.section) == (8, 0, "")


def test_a_section_is_same_changed_added_or_removed():
    before = [soul("Be calm."), segment("tools", "Use it."), segment("task", "Go.")]
    after = [soul("Be quick."), segment("channel", "Short."), segment("task", "Go.")]
    assert states(compare_segments(before, after, count_words)) == {
        "soul": "changed",
        "channel": "added",
        "task": "same",
        "tools": "removed",
    }


def test_changed_words_are_marked_inside_changed_lines():
    [section] = compare_segments([soul("Be calm.\nStay.")], [soul("Be quick.\nStay.")], count_words).sections
    removed, added, same = section.lines
    assert [span.text for span in removed.spans if span.is_changed] == ["calm"]
    assert [span.text for span in added.spans if span.is_changed] == ["quick"]
    assert same.kind == "same"


def test_an_added_section_shows_no_empty_line_of_the_other_side():
    [section] = compare_segments([], [soul("One.\n\nTwo.")], count_words).sections
    assert [(line.kind, line.text) for line in section.lines] == [
        ("added", "One."),
        ("added", ""),
        ("added", "Two."),
    ]


def test_blank_lines_before_a_section_are_not_a_change():
    first, later = segment("soul", "Be calm."), segment("soul", "\n\nBe calm.", lead=2)
    diff = compare_segments([first], [segment("identity", "Ada."), later], count_words)
    assert states(diff) == {"identity": "added", "soul": "same"}


def test_tokens_are_counted_by_section():
    diff = compare_segments([soul("Be calm.")], [soul("Be very calm now.")], count_words)
    assert [(section.name, section.tokens_before, section.tokens_after) for section in diff.sections] == [
        ("soul", 2, 4)
    ]
    assert diff.token_delta == 2


# --- moved segments ------------------------------------------------------------------------------------


def test_a_moved_memory_is_named_once_and_the_others_stay():
    before = [memory(1), memory(2), memory(3), memory(4)]
    after = [memory(4), memory(1), memory(2), memory(3)]
    [moved] = compare_segments(before, after, count_words).moved
    assert (moved.origin.id, moved.before, moved.after) == ("4", "memories", "memories")


def test_the_gap_between_entries_does_not_hide_a_move():
    before = [memory(1, "- One."), memory(2, "\n- Two."), memory(3, "\n- Three.")]
    after = [memory(3, "- Three."), memory(1, "\n- One."), memory(2, "\n- Two.")]
    assert [moved.origin.id for moved in compare_segments(before, after, count_words).moved] == ["3"]


def test_a_segment_moved_to_another_section_names_both():
    [moved] = compare_segments(
        [memory(1, section="memories")], [memory(1, section="user")], count_words
    ).moved
    assert (moved.before, moved.after) == ("memories", "user")


def test_a_new_record_before_others_moves_none_of_them():
    assert (
        compare_segments([memory(1), memory(2)], [memory(9), memory(1), memory(2)], count_words).moved == []
    )


def test_reworded_segments_are_changed_and_not_moved():
    assert (
        compare_segments([memory(1), memory(2)], [memory(2, "\n- Other."), memory(1)], count_words).moved
        == []
    )


def test_a_section_moves_without_its_records_counting_as_moved():
    before = [memory(1), memory(2), segment("soul", "Calm."), segment("task", "Go.")]
    after = [segment("soul", "Calm."), segment("task", "Go."), memory(1), memory(2)]
    diff = compare_segments(before, after, count_words)
    assert [section.name for section in diff.changed] == ["memories"]
    assert diff.changed[0].is_moved
    assert diff.moved == []


@given(st.permutations(range(8)))
def test_items_that_did_not_move_are_in_order(order):
    moved = find_out_of_order(range(8), order)
    left = [number for number in order if number not in moved]
    assert left == sorted(left)


@given(st.lists(st.integers(0, 30), max_size=9, unique=True))
def test_the_increasing_subsequence_is_the_longest(numbers):
    kept = find_longest_increasing_run(numbers)
    assert [numbers[at] for at in sorted(kept)] == sorted(numbers[at] for at in kept)
    assert len(kept) == longest_by_dynamic_programming(numbers)


def longest_by_dynamic_programming(numbers):
    best = [1] * len(numbers)
    for at, number in enumerate(numbers):
        best[at] = 1 + max([best[before] for before in range(at) if numbers[before] < number], default=0)
    return max(best, default=0)


# --- cache prefix --------------------------------------------------------------------------------------


def test_the_cache_prefix_ends_at_the_first_difference():
    before = [soul("Be calm. "), segment("task", "Go now.")]
    after = [soul("Be calm. "), segment("task", "Go then.")]
    prefix = compare_segments(before, after, count_words).prefix
    assert (prefix.kept_characters, prefix.section) == (len("Be calm. Go "), "task")
    assert (prefix.kept_tokens, prefix.rewritten_tokens) == (3, 1)


def test_text_added_at_the_end_keeps_the_rest_cached():
    prefix = compare_segments(
        [soul("Be calm.")], [soul("Be calm."), segment("task", " Go.")], count_words
    ).prefix
    assert (prefix.kept_characters, prefix.rewritten_tokens, prefix.is_beyond_cache) == (8, 1, False)


def test_text_removed_at_the_end_rewrites_no_tokens():
    prefix = compare_segments(
        [soul("Be calm."), segment("task", " Go.")], [soul("Be calm.")], count_words
    ).prefix
    assert (prefix.rewritten_tokens, prefix.section) == (0, "task")


def test_a_change_after_text_of_the_call_breaks_no_cache():
    now = segment("now", "⟦now⟧", volatility="turn")
    prefix = compare_segments(
        [soul("Calm."), now, memory(1)], [soul("Calm."), now, memory(2)], count_words
    ).prefix
    assert prefix.is_beyond_cache
    assert not compare_segments(
        [soul("Calm."), now], [soul("Quick."), now], count_words
    ).prefix.is_beyond_cache


@given(st.text("ab", max_size=40), st.text("ab", max_size=40))
def test_the_common_length_is_exact(one, other):
    length = count_common_prefix(one, other)
    assert one[:length] == other[:length]
    assert one[: length + 1] != other[: length + 1] or length in (len(one), len(other))


# --- any input -----------------------------------------------------------------------------------------

TEXTS = st.text("ab \n⟦", max_size=30)
SEGMENTS = st.lists(
    st.builds(
        Segment,
        st.sampled_from(["soul", "tools", "memories"]),
        TEXTS,
        st.builds(Origin, st.sampled_from(["soul", "memory", "layout"]), st.sampled_from(["", "1", "2"])),
        st.sampled_from(["release", "user", "turn"]),
        st.integers(0, 2),
        slot=st.just(""),
        given=st.none(),
        span=st.just(1),
    ),
    max_size=8,
)


@pytest.mark.slow
@settings(max_examples=examples(20, hard=100), deadline=None)
@given(SEGMENTS, SEGMENTS)
def test_both_texts_can_be_read_back_section_by_section(before, after):
    diff = compare_segments(before, after, count_words)
    old, new = join_section_texts(before), join_section_texts(after)
    for section in diff.sections:
        if section.status != "same":
            lines = section.lines
            old_text = "\n".join([line.text for line in lines if line.kind != "added"])
            new_text = "\n".join([line.text for line in lines if line.kind != "removed"])
            assert (old_text, new_text) == (old.get(section.name, ""), new.get(section.name, ""))
    kept = diff.prefix.kept_characters
    assert join_segment_texts(before)[:kept] == join_segment_texts(after)[:kept]


def hostile_texts():
    dice = random.Random(7)  # noqa: S311  # repeatable, not secret
    many = MAX_LINES * 2
    yield "one-letter lines", "a\n" * many, "b\n" * many
    yield "lines that alternate", "a\nb\n" * many, "b\na\n" * many
    yield "two letters at random", *["".join(dice.choices("ab", k=many)).replace("", "\n") for _ in "12"]
    yield "lines in reverse", "\n".join(map(str, range(many))), "\n".join(map(str, range(many, 0, -1)))
    yield "one endless line", "word " * 200_000, "word " * 200_000 + "x"
    yield "marks only", ("!?" * 190 + "\n") * 380, ("?!" * 190 + "\n") * 380
    yield "just within the bounds", "a \n" * (MAX_LINES // 2 - 1), "b\n" * (MAX_LINES // 2 - 1)
    yield "ten million letters", "a" * 10_000_000, "a" * 9_999_999 + "b"


@pytest.mark.parametrize(
    ("before", "after"), [pytest.param(*pair, id=name) for name, *pair in hostile_texts()]
)
def test_hostile_texts_are_compared_in_bounded_time(before, after):
    started = time.process_time()
    compare_segments([soul(before)], [soul(after)], len)
    assert time.process_time() - started < 5


@pytest.mark.slow
def test_many_reordered_segments_are_compared_in_bounded_time():
    numbers = list(range(20_000))
    before = [memory(number) for number in numbers]
    random.Random(3).shuffle(numbers)  # noqa: S311  # repeatable, not secret
    started = time.process_time()
    diff = compare_segments(before, [memory(number) for number in numbers], len)
    assert len(diff.moved) > 10_000
    assert time.process_time() - started < 5


def test_a_section_too_large_to_compare_is_withheld_and_the_rest_is_compared():
    huge = "line\n" * MAX_LINES
    before = [segment("context_files", huge), soul("Be calm.")]
    after = [segment("context_files", huge + "more"), soul("Be quick.")]
    large, small = compare_segments(before, after, count_words).sections
    assert "Too long to compare line by line" in large.withheld
    assert (large.status, list(large.lines), small.withheld) == ("changed", [], "")
    assert small.lines


def test_many_sections_share_one_budget():
    half = "x" * (MAX_CHARACTERS // 3)
    before = [segment(name, half) for name in "abc"]
    after = [segment(name, half + "y") for name in "abc"]
    sections = compare_segments(before, after, len).sections
    assert [bool(section.withheld) for section in sections] == [False, True, True]
