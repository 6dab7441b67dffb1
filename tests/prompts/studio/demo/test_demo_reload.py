"""First run of the demo with existing files, with a new database, and without an allowed folder."""

from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import transaction

from prompts.studio.demo.load import load_demo
from skills.models import Source
from tests.prompts.studio.demo.demo_stage import SILENT, SUPPORT, WINTERS, file_at, files_below, states

pytestmark = pytest.mark.django_db


@pytest.fixture
def sources(tmp_path, settings):
    """A separate folder for the demo's files."""
    for name, value in files_below(tmp_path).items():
        setattr(settings, name, value)
    return tmp_path / "larkfell"


def test_production_refuses_the_demo(settings):
    settings.PRODUCTION = True
    with pytest.raises(CommandError, match="Do not use it in production"):
        call_command("load_demo")


@pytest.mark.hard
def test_existing_files_are_not_overwritten_and_missing_ones_are_restored(sources):
    mine = {"AGENTS.md": "Mine.\n", SILENT: "Mine too.\n", SUPPORT: "And mine.\n"}
    for path, text in mine.items():
        (sources / path).parent.mkdir(parents=True, exist_ok=True)
        (sources / path).write_text(text)
    workspace = load_demo()
    assert {path: (sources / path).read_text() for path in mine} == mine
    assert file_at(workspace, SUPPORT).status == "current"
    before = (sources / WINTERS).read_bytes()
    (sources / WINTERS).unlink()
    load_demo()
    assert {path: (sources / path).read_text() for path in mine} == mine
    assert (sources / WINTERS).read_bytes() == before


@pytest.mark.hard
def test_a_new_database_gets_the_full_history_from_the_same_folder(sources):
    """The transaction rolls back the rows, but the files stay."""
    with transaction.atomic():
        first = states(load_demo())
        transaction.set_rollback(True)
    assert not Source.unscoped.exists()
    assert (sources / SUPPORT).exists()
    assert states(load_demo()) == first


@pytest.mark.hard
def test_a_folder_that_is_not_allowed_loads_no_files(sources, settings):
    settings.DRAMATIS_SOURCE_ROOTS = []
    output = StringIO()
    call_command("load_demo", stdout=output)
    assert not Source.unscoped.exists()
    assert not sources.exists()
    assert "DRAMATIS_SOURCE_ROOTS" in output.getvalue()
