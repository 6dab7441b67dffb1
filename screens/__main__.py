"""Walks through every screen and leaves the pictures in shots/; ends with 1 if a page was not well."""

import sys
import time
from pathlib import Path

import django
from playwright.sync_api import sync_playwright

from screens.sheet import write_sheet
from screens.stage import NotReady, product
from screens.table import SCREENS
from screens.tour import Screen
from tests.pytest_servers import launch_arguments

FOLDER = Path(__file__).resolve().parent.parent / "shots"


def main(names: list[str]) -> int:
    chosen = [one for one in SCREENS if not names or any(one.name.startswith(name) for name in names)]
    strange = [name for name in names if not any(one.name.startswith(name) for one in SCREENS)]
    if strange:
        known = ", ".join(one.name for one in SCREENS)
        print(f"There is no screen named {', '.join(strange)}. Known: {known}.", file=sys.stderr)
        return 2
    try:
        return walk(chosen)
    except NotReady as error:
        print(f"The product did not start:\n{error}", file=sys.stderr)
        return 1


def walk(screens: list[Screen]) -> int:
    began = time.monotonic()
    FOLDER.mkdir(exist_ok=True)
    with product() as address, sync_playwright() as play:
        django.setup()
        # Only now: their models need the settings of the scratch directory.
        from screens.camera import Album, look_around
        from screens.props import set_up

        album = Album(FOLDER)
        slug = set_up(address)
        browser = play.chromium.launch(**launch_arguments(headed=False))  # type: ignore[arg-type]  # known words
        look_around(browser, address, slug, screens, album)
        browser.close()
    sheet = write_sheet(FOLDER, album.pictures)
    took = f"{time.monotonic() - began:.0f} s"
    print(f"{len(album.pictures)} pictures of {len(screens)} screens in {took}: {sheet}")
    print("\n".join(album.faults) or "Every page was well.")
    return 1 if album.faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
