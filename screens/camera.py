"""Takes the pictures: each screen once loaded, then seen at every width and in every light."""

from dataclasses import dataclass, field
from pathlib import Path

from playwright.sync_api import Browser, Error, Page

from prompts.demo import DEMO_PASSWORD
from screens.tour import PATIENCE, Screen, Tour

WIDTHS = {1440: 900, 1024: 768, 390: 844}
THEMES = ("light", "dark")
PEOPLE = {"owner": "alice@example.com", "viewer": "jory@example.com"}
# Beyond this a picture says no more than a shorter one.
TALLEST = 6_000


@dataclass
class Album:
    """What was taken, and what was wrong."""

    folder: Path
    pictures: list[tuple[str, int, str, str]] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


def look_around(browser: Browser, address: str, slug: str, screens: list[Screen], album: Album) -> None:
    """Each person signs in once and looks at all that is theirs to see."""
    for role in dict.fromkeys(screen.role for screen in screens):
        context = browser.new_context(base_url=address, reduced_motion="reduce")
        context.set_default_timeout(PATIENCE)
        tour = Tour(context.new_page(), slug)
        tour.watch(context)
        if role in PEOPLE:
            sign_in(tour.page, PEOPLE[role])
        for screen in screens:
            if screen.role == role:
                visit(tour, screen, slug, album)
        context.close()


def sign_in(page: Page, email: str) -> None:
    page.goto("/accounts/login/")
    page.fill("[name=login]", email)
    page.fill("[name=password]", DEMO_PASSWORD)
    page.press("[name=password]", "Enter")
    page.wait_for_url(lambda url: "/accounts/" not in url)


def visit(tour: Tour, screen: Screen, slug: str, album: Album) -> None:
    """A screen that fails is noted, and the walk goes on."""
    tour.slug = screen.slug or slug
    tour.page.set_viewport_size({"width": 1440, "height": 900})
    try:
        stand_before(tour, screen, album)
        photograph(tour.page, screen, album)
    except Error as error:
        album.faults.append(f"{screen.name}: {error.message.splitlines()[0]}")
    album.faults += [f"{screen.name}: {said}" for said in tour.complaints]
    tour.complaints.clear()


def stand_before(tour: Tour, screen: Screen, album: Album) -> None:
    where = screen.where if isinstance(screen.where, str) else screen.where(tour)
    if not where and not isinstance(screen.where, str):
        raise Error("there is nothing to show: the list before it holds no such link")
    answer = tour.go(where)
    status = answer.status if answer else 0
    if status != screen.status:
        album.faults.append(f"{screen.name}: {where} answered {status}, not {screen.status}")
    if screen.act:
        screen.act(tour.page)
    tour.page.wait_for_timeout(150)


def photograph(page: Page, screen: Screen, album: Album) -> None:
    for theme in THEMES if screen.media == "screen" else THEMES[:1]:
        page.emulate_media(color_scheme=theme, media=screen.media)  # type: ignore[arg-type]  # words it knows
        for width, height in WIDTHS.items() if screen.media == "screen" else ((1024, 768),):
            page.set_viewport_size({"width": width, "height": height})
            page.wait_for_timeout(60)
            name = f"{screen.name}-{width}-{theme}.png"
            tall = page.evaluate("document.documentElement.scrollHeight") if screen.is_whole else height
            clip = {"x": 0, "y": 0, "width": width, "height": min(max(tall, height), TALLEST)}
            page.screenshot(path=album.folder / name, full_page=screen.is_whole, clip=clip)  # type: ignore[arg-type]  # a box
            album.pictures.append((screen.name, width, theme, name))
    page.emulate_media(color_scheme="light", media="screen")
