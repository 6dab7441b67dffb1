"""Write screenshots of every screen to shots/; exit with 1 if a page had problems."""

import sys
import time
from pathlib import Path

import django
from playwright.sync_api import sync_playwright

from screens.contact_sheet import write_sheet
from screens.screen_list import SCREENS
from screens.server import StartError, run_server
from screens.session import Screen
from tests.pytest_servers import launch_arguments

FOLDER = Path(__file__).resolve().parent.parent / "shots"


def main(names: list[str]) -> int:
    selected = [one for one in SCREENS if not names or any(one.name.startswith(name) for name in names)]
    unknown = [name for name in names if not any(one.name.startswith(name) for one in SCREENS)]
    if unknown:
        known = ", ".join(one.name for one in SCREENS)
        print(f"There is no screen named {', '.join(unknown)}. Known: {known}.", file=sys.stderr)
        return 2
    try:
        return capture(selected)
    except StartError as error:
        print(f"The product did not start:\n{error}", file=sys.stderr)
        return 1


def capture(screens: list[Screen]) -> int:
    started_at = time.monotonic()
    FOLDER.mkdir(exist_ok=True)
    with run_server() as address, sync_playwright() as playwright:
        django.setup()
        # Imported late: their models need the settings of the temporary directory.
        from screens.capture import Album, capture_screens
        from screens.sample_data import add_sample_data

        album = Album(FOLDER)
        slug = add_sample_data(address)
        browser = playwright.chromium.launch(**launch_arguments(headed=False))  # type: ignore[arg-type]  # known arguments
        capture_screens(browser, address, slug, screens, album)
        browser.close()
    sheet = write_sheet(FOLDER, album.pictures)
    duration = f"{time.monotonic() - started_at:.0f} s"
    print(f"{len(album.pictures)} pictures of {len(screens)} screens in {duration}: {sheet}")
    print("\n".join(album.problems) or "Every page was well.")
    return 1 if album.problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
