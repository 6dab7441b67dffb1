"""Text diff by line and by word."""

from hypothesis import given, settings
from hypothesis import strategies as st

from core.text.diff import diff_lines


def format_diff(before, after):
    marks = {"same": " ", "removed": "-", "added": "+"}
    return [marks[line.kind] + line.text for line in diff_lines(before, after)]


def test_equal_texts_have_no_change():
    assert format_diff("a\nb", "a\nb") == [" a", " b"]


def test_a_changed_line_shows_what_went_before_what_came():
    assert format_diff("a\nb\nc", "a\nB\nc") == [" a", "-b", "+B", " c"]


def test_changed_words_are_marked_inside_the_line():
    _, removed, added = diff_lines("x\nBe calm now.", "x\nBe very calm now.")
    assert [span.text for span in removed.spans if span.is_changed] == []
    assert "".join(span.text for span in added.spans if span.is_changed).strip() == "very"


def test_lines_are_numbered_in_their_own_text():
    lines = diff_lines("a\nc", "a\nb\nc")
    assert [(line.before, line.after) for line in lines] == [(1, 1), (None, 2), (2, 3)]


@settings(deadline=None)
@given(st.text("ab \n", max_size=60), st.text("ab \n", max_size=60))
def test_both_texts_can_be_read_back_from_the_difference(before, after):
    lines = diff_lines(before, after)
    assert "\n".join(line.text for line in lines if line.kind != "added") == before
    assert "\n".join(line.text for line in lines if line.kind != "removed") == after
