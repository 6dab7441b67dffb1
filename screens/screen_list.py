"""The list of all screens, one line each."""

from playwright.sync_api import Page

from screens.session import Action, Screen, first_link_on

# Slug of an empty workspace.
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
LISTS = (
    "releases",
    "inbox",
    "sources",
    "rule-sets",
    "ledger",
    "verify",
    "members",
    "keys",
    "audit",
    "events",
    "notifications",
    "notifications/preferences",
    "webhooks",
)
MORE = (
    *("labels", "prompt-settings", "erasures", "settings", "rebuilding", "time-machine"),
    *("ledger/outdated", "bots"),
)
FORMS = (
    "agents/new",
    "quick-start",
    f"{SOUL}edit",
    "memories/new",
    "memories/import",
    "agents/import",
    "skills/new",
    "skills/import",
    "sources/new",
    "keys/new",
    "webhooks/new",
)


def press(key: str, wait_for: str) -> Action:
    def action(page: Page) -> None:
        page.keyboard.press(key)
        page.locator(wait_for).wait_for()

    return action


def search(text: str) -> Action:
    def action(page: Page) -> None:
        press("Control+k", "#dr-palette[open]")(page)
        page.keyboard.type(text)
        page.wait_for_timeout(600)

    return action


def submit_empty_form(page: Page) -> None:
    page.get_by_role("main").locator("form[method=post] button[type=submit]").first.click()
    page.locator("[role=alert]").first.wait_for()


def archive_and_wait_for_toast(page: Page) -> None:
    """Archive a responsibility, and confirm the review if that changes production."""
    page.get_by_role("main").get_by_role("button", name="Archive").click()
    undo = page.locator("#dr-alerts [data-key=u]")
    confirm = page.locator("#dr-review .dr-review-confirm button[type=submit]")
    undo.or_(confirm).first.wait_for()
    if confirm.is_visible():
        confirm.click()
    undo.wait_for()


def open_comment_form(page: Page) -> None:
    """Comment on the line that has comments already."""
    with page.expect_navigation():
        page.locator(".dr-comment-link.has-comments").first.click()
    page.locator("#comments [name=line]").wait_for()


def open_sidebar(page: Page) -> None:
    """Open the sidebar, which only narrow screens hide behind a button."""
    page.set_viewport_size({"width": 390, "height": 844})
    page.get_by_role("button", name="Open navigation").click()


def screen_name(path: str) -> str:
    return path.strip("/").replace("/", "-")


VERSION = first_link_on(f"{AGENT}versions/?channel=telegram", "main a[href*='/versions/2/']")
DIFF = first_link_on(f"{AGENT}versions/?channel=telegram", "main a[href*='/diff/1/2/']")
FETCH = first_link_on("ledger/", "main a[href*='/fetches/']")

SCREENS: tuple[Screen, ...] = (
    Screen("fleet", ""),
    Screen("fleet-viewer", "", role="viewer"),
    Screen("fleet-empty", "", slug=EMPTY),
    Screen("quick-start-connect", "quick-start/field-research/slack/"),
    Screen("quick-start-waiting", "quick-start/hut-support/email/"),
    Screen("agents", "agents/"),
    Screen("agents-empty", "agents/", slug=EMPTY),
    Screen("agent", AGENT),
    Screen("agent-viewer", AGENT, role="viewer"),
    *(Screen(f"agent-{tab}", f"{AGENT}{tab}/") for tab in TABS),
    Screen("studio", "studio/hut-support/"),
    Screen("studio-viewer", "studio/hut-support/", role="viewer"),
    *(Screen(name, f"{name}/") for name in FAMILIES),
    *(Screen(f"{name}-one", first_link_on(f"{name}/")) for name in FAMILIES),
    Screen("memory-board", "memories/board/"),
    Screen("memory-board-empty", "memories/board/", slug=EMPTY),
    *(Screen(screen_name(path), f"{path}/") for path in (*LISTS, *MORE)),
    *(Screen(f"{name}-empty", f"{name}/", slug=EMPTY) for name in ("inbox", "releases", "ledger")),
    *(Screen(screen_name(path), f"{path}/") for path in FORMS),
    Screen("webhooks-one", first_link_on("webhooks/")),
    Screen("inbox-file", first_link_on("inbox/", "main a[href*='/files/']")),
    Screen("source-one", first_link_on("sources/")),
    Screen("rule-set-one", "rule-sets/claude-code/"),
    Screen("history", f"{SOUL}history/"),
    Screen("revision", f"{SOUL}history/2/"),
    Screen("version", VERSION),
    Screen("version-comment", VERSION, action=open_comment_form),
    Screen("diff", DIFF),
    Screen("release", "releases/1/"),
    Screen("release-viewer", "releases/1/", role="viewer"),
    Screen("release-new", "releases/new/"),
    Screen("replay", FETCH),
    Screen("profile", "/profile/"),
    Screen("security-events", "/profile/security/"),
    Screen("confirm-sign-in", "/accounts/reauthenticate/?next=/w/larkfell/keys/new/"),
    Screen("second-factor", "/accounts/2fa/"),
    Screen("log-in", "/accounts/login/", role="nobody"),
    Screen("sign-up", "/accounts/signup/", role="nobody"),
    Screen("not-found", "no-such-page/", status=404),
    Screen("not-allowed", "settings/", role="viewer", status=403),
    Screen("form-refused", "agents/new/", action=submit_empty_form),
    Screen("palette", "agents/", action=search("hut"), is_full_page=False),
    Screen("shortcuts", "agents/", action=press("?", "#dr-help[open]"), is_full_page=False),
    Screen("sidebar", "agents/", action=open_sidebar, is_full_page=False),
    Screen(
        "toast", first_link_on("responsibilities/"), action=archive_and_wait_for_toast, is_full_page=False
    ),
    *(
        Screen(f"print-{name}", url, media="print")
        for name, url in (
            ("version", VERSION),
            ("diff", DIFF),
            ("replay", FETCH),
            ("audit", "audit/"),
            ("ledger", "ledger/"),
        )
    ),
)
