"""The history of a record shows real differences, inline and side by side, between any two revisions."""

import pytest

from core.text.diff import diff_lines, pair_lines
from personas.records.services import edit_record
from tests.factories import BY, make_soul

pytestmark = pytest.mark.django_db
FIRST = "# Soul\n\nBe brave.\nBe kind.\n"
SECOND = "# Soul\n\nBe calm.\nBe kind.\n"
THIRD = "# Soul\n\nBe calm.\nBe kind.\nBe quick.\n"


@pytest.fixture
def history(workspace):
    """The address of the history of a soul with three revisions."""
    soul = make_soul(workspace, text=FIRST)
    edit_record(soul, {"text": SECOND}, expected=1, by=BY)
    edit_record(soul, {"text": THIRD}, expected=2, by=BY)
    return f"/w/{workspace.slug}/souls/{soul.slug}/history/"


def test_a_revision_shows_its_changed_lines(as_alice, history):
    html = as_alice.get(f"{history}2/").content.decode()
    assert html.count('dr-diff-line is-removed"') == html.count('dr-diff-line is-added"') == 1
    assert "dr-diff-line is-same" in html
    assert 'class="dr-old"' not in html


def test_both_texts_are_shown_side_by_side(as_alice, history):
    html = as_alice.get(f"{history}2/?view=split").content.decode()
    assert 'dr-diff-half is-removed"' in html
    assert 'dr-diff-half is-added"' in html


def test_any_two_revisions_are_compared(as_alice, history):
    html = as_alice.get(f"{history}3/?against=1").content.decode()
    assert "Compared with revision 1" in html
    assert html.count('dr-diff-line is-added"') == 2
    assert as_alice.get(f"{history}3/?against=99999999999").status_code == 200


def test_lines_stand_beside_those_they_replace():
    pairs = [
        (old and old.text, new and new.text) for old, new in pair_lines(diff_lines("a\nb\nc", "a\nx\ny\nc"))
    ]
    assert pairs == [("a", "a"), ("b", "x"), (None, "y"), ("c", "c")]
