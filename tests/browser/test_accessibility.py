"""Accessibility of every page: no axe violations in the light and dark theme, no horizontal scrolling."""

import pytest

from personas.accounts.services import record_security_event
from personas.actors import Actor
from personas.models import SecurityEvent, SecurityEventKind, Soul
from personas.records.services import edit_record
from prompts.studio.demo import DEMO_PASSWORD
from tests.browser.page_checks import (
    ACCOUNT,
    ENTRANCE,
    axe_violations,
    find_overflows,
    form_urls,
    list_page_urls,
    record_urls,
    sample,
)
from tests.browser.users import Visit
from tests.factories import PASSWORD, make_soul

pytestmark = pytest.mark.slow


def check_pages(page, addresses):
    """Expect each page to load without axe violations or overflow."""
    problems = []
    for address in addresses:
        response = page.goto(address)
        assert response.status in {200, 410}, address
        problems += axe_violations(page) + find_overflows(page)
    assert not problems, "\n\n".join(problems)


# The kinds that differ most; the others have the same pages with fewer fields.
REPRESENTATIVE = ("agents", "memories")
REPRESENTATIVE_ACCOUNT = ("/profile/", "/accounts/2fa/totp/activate/")
REPRESENTATIVE_ENTRANCE = ("/accounts/login/", "/accounts/signup/", "/join/not-a-token/")


def of_representative_kinds(addresses):
    return [address for address in addresses if address.split("/")[3] in REPRESENTATIVE]


def representative_pages(demo):
    """Return page URLs of the demo; the last two need a recent password confirmation."""
    urls = [*list_page_urls(demo), *record_urls(demo, ""), *form_urls(demo)]
    others = [f"/w/{demo.slug}/{path}" for path in ("", "settings/", "tools/new/")]
    soul = Soul.objects.in_workspace(demo).order_by("-revision")[0]
    pages = [f"/w/{demo.slug}/souls/{soul.slug}/{path}" for path in ("edit/", "history/1/")]
    return [*sample([*others, *of_representative_kinds(urls), *pages]), *REPRESENTATIVE_ACCOUNT]


@pytest.mark.hard
def test_every_record_form_and_account_page_is_accessible(demo, demo_page):
    urls = [
        *list_page_urls(demo),
        *form_urls(demo),
        *record_urls(demo, "", "edit/", "history/", "history/1/"),
    ]
    page = demo_page()
    check_pages(page, urls)
    confirm_password(page)
    check_pages(page, ACCOUNT)
    page.context.clear_cookies()
    check_pages(page, ENTRANCE)


def confirm_password(page):
    """Check the confirmation page, then enter the password for the account pages that require it."""
    page.goto("/accounts/2fa/totp/activate/")
    assert not axe_violations(page)
    page.get_by_label("Password").fill(DEMO_PASSWORD)
    Visit(page).leave_by(page.get_by_role("button", name="Confirm"))


def test_an_empty_workspace_dialogs_and_sign_in_pages_are_accessible(alices, workspace):
    page = alices.page
    check_pages(page, sample([f"/w/{workspace.slug}/{path}" for path in ("", "agents/", "memories/")]))
    for opener in ("Control+k", "?"):
        dialog = page.get_by_role("dialog")
        # A key is lost while the focus still moves back from the dialog before.
        page.wait_for_function("!document.activeElement.closest('dialog, [role=dialog]')")
        page.keyboard.press(opener)
        dialog.wait_for()
        assert not axe_violations(page)
        page.keyboard.press("Escape")
        dialog.wait_for(state="hidden")
    page.context.clear_cookies()
    check_pages(page, sample(REPRESENTATIVE_ENTRANCE))


def test_security_events_are_in_the_account_menu_and_accessible(bobs, bob):
    operator = Actor(label="operator Otto")
    record_security_event(bob, SecurityEventKind.ACCOUNT_CHANGED, detail="name", by=operator)
    SecurityEvent.objects.create(user=bob, kind="sign_in_failed", network="192.0.2.0/24", count=12)
    page = bobs.page
    bobs.go("/profile/")
    page.locator("summary", has_text="Account: Bob").click()
    page.get_by_role("link", name="Security events").first.click()
    page.get_by_text("12 times").wait_for()
    check_pages(page, ["/profile/security/"])
    page.set_viewport_size({"width": 390, "height": 844})
    check_pages(page, ["/profile/security/"])


def test_error_pages_are_accessible(bobs, alice, workspace):
    problems = []
    soul = make_soul(workspace, "Calm", text="Be calm. " * 400)
    bobs.go("settings/")
    problems += axe_violations(bobs.page)
    assert bobs.go("no-such-page/") == 404
    problems += axe_violations(bobs.page)
    bobs.go("agents/new/")
    assert bobs.press("Create agent") == 422
    problems += axe_violations(bobs.page)
    bobs.go("souls/calm/edit/")
    edit_record(soul, {"text": "Be quick."}, expected=1, by=Actor.person(alice))
    bobs.fill(Text="Be slow. " * 400)
    assert bobs.press("Save") == 409
    problems += axe_violations(bobs.page)
    bobs.page.context.clear_cookies()
    bobs.go("/accounts/login/")
    bobs.fill(Email="bob@example.com", Password=PASSWORD)
    bobs.press("Sign in")
    problems += axe_violations(bobs.page)
    assert not problems, "\n\n".join(problems)


GREY = """<!doctype html><html lang="en"><head><title>Grey</title><style>
:root { color-scheme: light; background: #fff } p { color: %s }
@media (prefers-color-scheme: dark) { :root { color-scheme: dark; background: #111 } p { color: %s } }
</style></head><body><main><h1 class="grey">Grey</h1><p>Can this be read?</p></main></body></html>"""


@pytest.mark.planted
def test_low_contrast_is_found_on_a_page_that_passed_before(visitor):
    """Colours are checked once; the same text in other colours is checked again, in both themes.

    Unless it is one opaque colour on another, axe checks it, whatever the computed contrast.
    """
    page = visitor()
    page.goto("about:blank")
    for light, dark, themes in (
        ("#444", "#ccc", []),
        ("#444", "#ccc", []),
        ("#ccc", "#ccc", ["light"]),
        ("#444", "#333", ["dark"]),
        # The colours alone have enough contrast; with the opacity they do not.
        ("#444; opacity: 0.2", "#ccc; opacity: 1", ["light"]),
        ("rgb(0 0 0 / 20%)", "#ccc", ["light"]),
    ):
        page.set_content(GREY % (light, dark))
        problems = axe_violations(page)
        assert [line.split("(")[1].split(")")[0] for line in problems if "color-contrast" in line] == themes
        assert len(problems) == len(themes), problems
