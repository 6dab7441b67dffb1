"""Screenshots: the table of screens, selection by name, and the contact sheet."""

from screens.__main__ import main
from screens.contact_sheet import write_sheet
from screens.screen_list import SCREENS


def test_every_screen_has_a_name_of_its_own():
    names = [screen.name for screen in SCREENS]
    assert len(set(names)) == len(names)


def test_a_name_nobody_knows_stops_before_anything_starts(capsys):
    assert main(["fleet", "no-such"]) == 2
    assert "no screen named no-such. Known: fleet, " in capsys.readouterr().err


def test_the_sheet_shows_all_pictures_by_screen(tmp_path):
    pictures = [
        ("fleet", 390, "light", "a.png"),
        ("fleet", 390, "dark", "b.png"),
        ("<x>", 390, "light", "c.png"),
    ]
    page = write_sheet(tmp_path, pictures).read_text()
    assert page.count("<h2>") == 2
    assert page.count("<img ") == 3
    assert "&lt;x&gt;" in page
