"""Rendering of file texts and diffs: hidden characters are visible, HTML is escaped, sizes are limited."""

import pytest
from django.template import Context, Template

from core.text.diff import diff_lines
from skills.models import FileStatus
from skills.scanning import scan_text
from skills.templatetags.context_files import (
    STATUS_TONES,
    file_status_badge,
    glyphs,
    kind_label,
    render_excerpt,
    short_digest,
)
from skills.templatetags.text_html import MAX_FOLD_LINES, MAX_LINES, render_diff_lines, render_text_lines
from tests.processor_time import measure_seconds

OVERRIDE = '<span class="dr-glyph" title="U+202E RIGHT-TO-LEFT OVERRIDE">U+202E</span>'


def render_diff(before: str, after: str) -> str:
    template = Template('{% include "components/differences.html" %}')
    return template.render(Context({"lines": diff_lines(before, after)}))


def test_a_hidden_character_is_rendered_as_a_glyph_with_its_code_point():
    assert glyphs("safe\u202eevil") == f"safe{OVERRIDE}evil"


def test_text_is_escaped_around_and_inside_glyphs():
    assert glyphs("<b>\u202e&") == f"&lt;b&gt;{OVERRIDE}&amp;"
    assert "<script>" not in render_diff("a", "<script>\u202ealert(1)</script>")


def test_text_that_looks_like_a_mark_is_not_a_glyph():
    assert glyphs("⟦U+202E⟧") == "⟦U+202E⟧"


@pytest.mark.parametrize(
    "text", ["👩\u200d🔬", "\ufeffA file with its mark", "می\u200cخواهم", "שלום \u200f!"]
)
def test_a_legitimate_invisible_character_is_kept(text):
    assert glyphs(text) == text


def test_repeated_hidden_characters_share_one_glyph():
    assert ">U+200B ×500</span>" in glyphs("a" + "\u200b" * 500)


def test_a_long_hidden_message_is_cut_and_counted():
    message = "".join(chr(0xE0041 + number % 26) for number in range(1_000))
    html = glyphs(message)
    assert html.count("dr-glyph") == 65
    assert "+936" in html


def test_a_control_character_without_a_name_has_a_title():
    assert 'title="U+0007 CONTROL CHARACTER"' in glyphs("bell \x07")


def test_a_scanner_excerpt_is_rendered_with_glyphs():
    [finding] = scan_text("a <b> \u202e")
    assert render_excerpt(finding.excerpt) == f"a &lt;b&gt; {OVERRIDE}"
    assert render_excerpt("⟦U+FFFFFF⟧") == "⟦U+FFFFFF⟧"


def test_statuses_kinds_and_digests_are_rendered():
    assert set(STATUS_TONES) == set(FileStatus.values)
    assert "Quarantined" in file_status_badge("quarantined")
    assert (kind_label("base"), kind_label("odd")) == ("System prompt", "odd")
    assert short_digest("a" * 64) == f'<span class="dr-mono" title="{"a" * 64}">{"a" * 12}</span>'


def test_a_line_of_very_many_chunks_is_cut_with_a_note():
    html = glyphs("a\u200b" * 5_000)
    assert html.count("dr-glyph") == 1_001
    assert "The rest of this line is not shown" in html


# --- one text ------------------------------------------------------------------------------------------


def test_lines_are_numbered_as_findings_count_them():
    text = "one\r\ntwo\rthree\nfour \u202e\n"
    [part] = render_text_lines(text, {4})
    assert [(line.after, line.is_flagged) for line in part.lines] == [
        (1, False),
        (2, False),
        (3, False),
        (4, True),
    ]
    [finding] = scan_text(text)
    assert part.lines[finding.line - 1].html == f"four {OVERRIDE}"


def test_an_empty_text_and_one_without_a_last_line_end_are_one_line():
    for text in ("", "one"):
        [part] = render_text_lines(text)
        assert [line.html for line in part.lines] == [text]


def test_a_text_of_very_many_lines_is_cut_and_the_rest_counted():
    visible, rest = render_text_lines("x\n" * (MAX_LINES + 7))
    assert (visible.size, rest.kind, rest.size) == (MAX_LINES, "rest", 7)


# --- two texts -----------------------------------------------------------------------------------------


def test_changed_words_are_marked_in_both_lines():
    page = render_diff("Call me Ishmael.\n", "Call me Queequeg.\n")
    assert '<del class="dr-diff-word">Ishmael</del>' in page
    assert '<ins class="dr-diff-word">Queequeg</ins>' in page


def test_a_line_added_entirely_has_no_word_marks():
    page = render_diff("a\n", "a\nb\n")
    assert "<ins" not in page
    assert "Added: " in page


def test_added_and_removed_lines_have_labels_for_screen_readers():
    page = render_diff("a\nb\n", "a\nc\n")
    assert page.count('<span class="sr-only">Removed: </span>') == 1
    assert page.count('<span class="sr-only">Added: </span>') == 1


def test_a_glyph_appears_once_in_a_word_diff():
    page = render_diff("Never promise a date.", "Never promise a \u202edate.")
    assert page.count(OVERRIDE) == 1


def test_neighbouring_characters_count_across_the_chunks_of_a_line():
    # Without its neighbours each would be flagged: a byte order mark inside a line, a joiner next to nothing.
    page = render_diff("x 👩 y", "x 👩\u200d🔬 y")
    assert "dr-glyph" not in page
    assert render_diff("a b", "a \ufeffb").count("U+FEFF") == 2


def test_a_changed_line_end_is_visible():
    page = render_diff("one\ntwo\n", "one\r\ntwo\n")
    assert "U+000D" in page
    assert "U+000D" not in render_diff("one\r\ntwo\n", "one\r\nthree\n")


def test_unchanged_spans_are_folded_and_long_ones_counted():
    lines = [f"line {number}" for number in range(40)]
    later = [*lines[:20], "changed", *lines[21:]]
    parts = render_diff_lines(diff_lines("\n".join(lines), "\n".join(later)))
    assert [(part.kind, part.size) for part in parts] == [("fold", 17), ("lines", 8), ("fold", 16)]
    many = [f"line {number}" for number in range(10_000)]
    parts = render_diff_lines(diff_lines("\n".join(many), "\n".join([*many, "at the end"])))
    assert [(part.kind, part.size) for part in parts] == [("gap", 9_997), ("lines", 4)]
    assert MAX_FOLD_LINES < 9_997


def test_a_flood_of_changes_is_cut_and_the_rest_counted():
    parts = render_diff_lines(diff_lines("", "\n".join(f"new {number}" for number in range(MAX_LINES + 50))))
    assert (parts[-1].kind, parts[0].size + parts[-1].size) == ("rest", MAX_LINES + 51)


def test_equal_texts_have_no_changed_line():
    text = "a\nb\nc\nd\ne\n"
    [part] = render_diff_lines(diff_lines(text, text))
    assert (part.kind, part.size) == ("fold", 5)


@pytest.mark.slow
@pytest.mark.parametrize(
    "text", ["\u200b" * 85_000, "a\u200b" * 60_000, "\u202e\n" * 20_000, "\n" * 20_000, "<" * 250_000]
)
@pytest.mark.parametrize("part", [4, pytest.param(1, marks=pytest.mark.hard)], ids=["a quarter", "whole"])
def test_hostile_texts_are_rendered_fast_and_small(text, part):
    text = text[: len(text) // part]
    limit = 4 / part
    assert measure_seconds(lambda: (render_diff("", text), render_text_lines(text)), limit) < limit
    page, parts = render_diff("", text), render_text_lines(text)
    assert len(page) + sum(len(line.html) for part in parts for line in part.lines) < 3_000_000
