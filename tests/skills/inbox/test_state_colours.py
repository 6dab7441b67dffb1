"""A status has the same colour on every page, and quarantine says what to do."""

import re

import pytest

from tests.skills.files.file_samples import file_at, make_source_in_every_status

pytestmark = pytest.mark.django_db

BADGE = re.compile(r'dr-badge dr-badge-(\w+)">(New|Changed|Quarantined|Invalid|Missing)<')


@pytest.fixture
def source(workspace, tmp_path, settings):
    settings.DRAMATIS_SOURCE_ROOTS = [tmp_path]
    return make_source_in_every_status(workspace, tmp_path)


def test_inbox_source_and_file_pages_use_the_same_colours(as_alice, workspace, source):
    pages = ["inbox/", f"sources/{source.slug}/"]
    pages += [
        f"files/{file_at(source, f'{name}/AGENTS.md').pk}/" for name in ("changed", "quarantined", "new")
    ]
    colours: dict[str, set[str]] = {}
    for page in pages:
        html = as_alice.get(f"/w/{workspace.slug}/{page}").content.decode()
        for tone, status in BADGE.findall(html):
            colours.setdefault(status, set()).add(tone)
    assert {"New", "Changed", "Quarantined"} <= set(colours)
    assert all(len(tones) == 1 for tones in colours.values()), colours


def test_a_file_in_quarantine_says_why_it_is_dangerous_and_how_to_fix_it(as_alice, workspace, source):
    file = file_at(source, "quarantined/AGENTS.md")
    page = as_alice.get(f"/w/{workspace.slug}/files/{file.pk}/").content.decode()
    assert "can give a model instructions that people do not see" in page
    assert "To fix this, edit the file and remove the text that is marked below." in page
    assert "ZERO WIDTH SPACE" in page
