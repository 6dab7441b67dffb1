"""The command palette finds pages by everyday words."""

from types import SimpleNamespace

import pytest

from personas.ui.navigation import list_page_entries

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("words", "label"),
    [
        ("invite", "Members"),
        ("api key", "API keys"),
        ("approve", "Releases"),
        ("rollback", "Fleet"),
        ("erase", "Erasures"),
    ],
)
def test_a_page_is_found_by_everyday_words(workspace, words, label):
    can = SimpleNamespace(edit=True, manage_keys=True)
    found = {
        entry["label"]
        for entry in list_page_entries(workspace, can)
        if words in entry.get("words", "").lower()
    }
    assert label in found
