"""Every screen there is to look at: one line each."""

from playwright.sync_api import Page

from screens.tour import Act, Screen, link_on

# The workspace in which nothing has been made yet.
EMPTY = "quiet-bay"
AGENT, SOUL = "agents/hut-support/", "souls/hut-table/"
FAMILIES = (
    "identities",
    "souls",
    "user-profiles",
    "memories",
    "responsibilities",
    "tasks",
    "skills",
    "tools",
    "channels",
)
TABS = ("memory", "skills", "tools", "context", "channels", "versions", "activity")
LISTS = ("releases", "inbox", "sources", "rule-sets", "ledger", "verify", "members", "keys", "audit")
MORE = ("labels", "prompt-settings", "erasures", "settings", "rebuilding", "time-machine", "ledger/stale")
FORMS = (
    "agents/new",
    f"{SOUL}edit",
    "memories/new",
    "skills/new",
    "skills/import",
    "sources/new",
    "keys/new",
)


def press(key: str, wait_for: str) -> Act:
    def act(page: Page) -> None:
        page.keyboard.press(key)
        page.locator(wait_for).wait_for()

    return act


def search(words: str) -> Act:
    def act(page: Page) -> None:
        press("Control+k", "#dr-palette[open]")(page)
        page.keyboard.type(words)
        page.wait_for_timeout(600)

    return act


def submit_nothing(page: Page) -> None:
    page.get_by_role("main").locator("form[method=post] button[type=submit]").first.click()
    page.locator("[role=alert]").first.wait_for()


def archive_and_see_the_toast(page: Page) -> None:
    page.get_by_role("main").get_by_role("button", name="Archive").click()
    page.locator("#dr-alerts [data-key=u]").wait_for()


def open_sidebar(page: Page) -> None:
    """Only a phone hides it behind a button."""
    page.set_viewport_size({"width": 390, "height": 844})
    page.get_by_role("button", name="Open navigation").click()


def named(path: str) -> str:
    return path.strip("/").replace("/", "-")


VERSION = link_on(f"{AGENT}versions/?channel=telegram", "main a[href*='/versions/2/']")
DIFF = "prompts/1/diff/1/2/"
FETCH = link_on("ledger/", "main a[href*='/fetches/']")

SCREENS: tuple[Screen, ...] = (
    Screen("fleet", ""),
    Screen("fleet-viewer", "", role="viewer"),
    Screen("fleet-empty", "", slug=EMPTY),
    Screen("agents", "agents/"),
    Screen("agents-empty", "agents/", slug=EMPTY),
    Screen("agent", AGENT),
    Screen("agent-viewer", AGENT, role="viewer"),
    *(Screen(f"agent-{tab}", f"{AGENT}{tab}/") for tab in TABS),
    Screen("studio", "studio/hut-support/"),
    Screen("studio-viewer", "studio/hut-support/", role="viewer"),
    *(Screen(name, f"{name}/") for name in FAMILIES),
    *(Screen(f"{name}-one", link_on(f"{name}/")) for name in FAMILIES),
    Screen("memory-board", "memories/board/"),
    Screen("memory-board-empty", "memories/board/", slug=EMPTY),
    *(Screen(named(path), f"{path}/") for path in (*LISTS, *MORE)),
    *(Screen(f"{name}-empty", f"{name}/", slug=EMPTY) for name in ("inbox", "releases", "ledger")),
    *(Screen(named(path), f"{path}/") for path in FORMS),
    Screen("inbox-file", link_on("inbox/", "main a[href*='/files/']")),
    Screen("source-one", link_on("sources/")),
    Screen("history", f"{SOUL}history/"),
    Screen("revision", f"{SOUL}history/2/"),
    Screen("version", VERSION),
    Screen("diff", DIFF),
    Screen("release", "releases/1/"),
    Screen("release-viewer", "releases/1/", role="viewer"),
    Screen("release-new", "releases/new/"),
    Screen("replay", FETCH),
    Screen("profile", "/profile/"),
    Screen("second-factor", "/accounts/2fa/"),
    Screen("log-in", "/accounts/login/", role="nobody"),
    Screen("sign-up", "/accounts/signup/", role="nobody"),
    Screen("not-found", "no-such-page/", status=404),
    Screen("not-allowed", "settings/", role="viewer", status=403),
    Screen("form-refused", "agents/new/", act=submit_nothing),
    Screen("palette", "agents/", act=search("hut"), is_whole=False),
    Screen("shortcuts", "agents/", act=press("?", "#dr-help[open]"), is_whole=False),
    Screen("sidebar", "agents/", act=open_sidebar, is_whole=False),
    Screen("toast", link_on("responsibilities/"), act=archive_and_see_the_toast, is_whole=False),
    *(
        Screen(f"print-{name}", where, media="print")
        for name, where in (("version", VERSION), ("diff", DIFF), ("replay", FETCH), ("audit", "audit/"))
    ),
)
