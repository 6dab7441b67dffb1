"""Takes the screenshots: each screen is loaded once, then captured at every width and in both themes."""

from dataclasses import dataclass, field
from pathlib import Path

from playwright.sync_api import Browser, Error, Page

from prompts.studio.demo import DEMO_PASSWORD
from screens.session import TIMEOUT_MS, Screen, Session

WIDTHS = {1440: 900, 1024: 768, 390: 844}
THEMES = ("light", "dark")
USERS = {"owner": "alice@example.com", "viewer": "jory@example.com"}
# Longer pages are cut off.
MAX_HEIGHT = 6_000


@dataclass
class Album:
    """The screenshots taken and the problems found."""

    folder: Path
    pictures: list[tuple[str, int, str, str]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def capture_screens(browser: Browser, address: str, slug: str, screens: list[Screen], album: Album) -> None:
    """Sign in once per role and capture that role's screens."""
    for role in dict.fromkeys(screen.role for screen in screens):
        context = browser.new_context(base_url=address, reduced_motion="reduce")
        context.set_default_timeout(TIMEOUT_MS)
        session = Session(context.new_page(), slug)
        session.record_errors(context)
        if role in USERS:
            sign_in(session.page, USERS[role])
        for screen in screens:
            if screen.role == role:
                visit(session, screen, slug, album)
        context.close()


def sign_in(page: Page, email: str) -> None:
    page.goto("/accounts/login/")
    page.fill("[name=login]", email)
    page.fill("[name=password]", DEMO_PASSWORD)
    page.press("[name=password]", "Enter")
    page.wait_for_url(lambda url: "/accounts/" not in url)


def visit(session: Session, screen: Screen, slug: str, album: Album) -> None:
    """Capture one screen; a failure is recorded and does not stop the run."""
    session.slug = screen.slug or slug
    session.page.set_viewport_size({"width": 1440, "height": 900})
    try:
        open_screen(session, screen, album)
        take_screenshots(session.page, screen, album)
    except Error as error:
        album.problems.append(f"{screen.name}: {error.message.splitlines()[0]}")
    album.problems += [f"{screen.name}: {message}" for message in session.messages]
    session.messages.clear()


def open_screen(session: Session, screen: Screen, album: Album) -> None:
    url = screen.url if isinstance(screen.url, str) else screen.url(session)
    if not url and not isinstance(screen.url, str):
        raise Error("there is nothing to show: the list before it holds no such link")
    response = session.go(url)
    status = response.status if response else 0
    if status != screen.status:
        album.problems.append(f"{screen.name}: {url} answered {status}, not {screen.status}")
    if screen.action:
        screen.action(session.page)
    session.page.wait_for_timeout(150)


def take_screenshots(page: Page, screen: Screen, album: Album) -> None:
    for theme in THEMES if screen.media == "screen" else THEMES[:1]:
        page.emulate_media(color_scheme=theme, media=screen.media)  # type: ignore[arg-type]  # known values
        for width, height in WIDTHS.items() if screen.media == "screen" else ((1024, 768),):
            page.set_viewport_size({"width": width, "height": height})
            page.wait_for_timeout(60)
            name = f"{screen.name}-{width}-{theme}.png"
            page_height = (
                page.evaluate("document.documentElement.scrollHeight") if screen.is_full_page else height
            )
            clip = {"x": 0, "y": 0, "width": width, "height": min(max(page_height, height), MAX_HEIGHT)}
            page.screenshot(path=album.folder / name, full_page=screen.is_full_page, clip=clip)  # type: ignore[arg-type]  # a box
            album.pictures.append((screen.name, width, theme, name))
    page.emulate_media(color_scheme="light", media="screen")
