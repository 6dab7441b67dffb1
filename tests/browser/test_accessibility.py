"""Every page: axe finds nothing in light or in dark, and no screen is too narrow for it."""

import pytest

from personas.actors import Actor
from personas.models import Soul
from personas.records.services import edit_record
from prompts.demo import DEMO_PASSWORD
from tests.browser.looking import ACCOUNT, ENTRANCE, complaints, forms, in_turn, lists, overflows, records
from tests.factories import PASSWORD, make_soul


def look_at(page, addresses):
    """Open each page and collect what axe says; a page that is not there is a fault of the test."""
    said = []
    for address in addresses:
        answer = page.goto(address)
        assert answer.status in {200, 410}, address
        said += complaints(page) + overflows(page)
    assert not said, "\n\n".join(said)


# These differ most; the other kinds have the same pages with fewer fields.
TELLING = ("agents", "memories")
TELLING_ACCOUNT = ("/profile/", "/accounts/2fa/totp/activate/")
TELLING_ENTRANCE = ("/accounts/login/", "/accounts/signup/", "/join/not-a-token/")


def of_telling_kinds(addresses):
    return [address for address in addresses if address.split("/")[3] in TELLING]


def telling_pages(demo):
    """Of the demo; whoever asks for the last two has just given the password."""
    some = [*lists(demo), *records(demo, ""), *forms(demo)]
    others = [f"/w/{demo.slug}/{path}" for path in ("", "settings/", "tools/new/")]
    soul = Soul.objects.in_workspace(demo).order_by("-revision")[0]
    pages = [f"/w/{demo.slug}/souls/{soul.slug}/{path}" for path in ("edit/", "history/1/")]
    return [*in_turn([*others, *of_telling_kinds(some), *pages]), *TELLING_ACCOUNT]


@pytest.mark.hard
def test_every_kind_of_record_and_every_account_page_suits_everyone(demo, demo_page):
    everything = [*lists(demo), *forms(demo), *records(demo, "", "edit/", "history/", "history/1/")]
    page = demo_page()
    look_at(page, everything)
    give_the_password_again(page)
    look_at(page, ACCOUNT)
    page.context.clear_cookies()
    look_at(page, ENTRANCE)


def give_the_password_again(page):
    """Some account pages ask for it; that page is looked at on the way."""
    page.goto("/accounts/2fa/totp/activate/")
    assert not complaints(page)
    page.get_by_label("Password").fill(DEMO_PASSWORD)
    page.get_by_role("button", name="Confirm").click()
    page.wait_for_url("**/totp/activate/")


def test_an_empty_workspace_its_dialogs_and_the_ways_in_suit_everyone(alices, workspace):
    page = alices.page
    look_at(page, in_turn([f"/w/{workspace.slug}/{path}" for path in ("", "agents/", "memories/")]))
    for opener in ("Control+k", "?"):
        page.keyboard.press(opener)
        dialog = page.get_by_role("dialog")
        dialog.wait_for()
        assert not complaints(page)
        page.keyboard.press("Escape")
        dialog.wait_for(state="hidden")
    page.context.clear_cookies()
    look_at(page, in_turn(TELLING_ENTRANCE))


def test_refusals_are_accessible(bobs, alice, workspace):
    said = []
    soul = make_soul(workspace, "Calm", text="Be calm. " * 400)
    bobs.go("settings/")
    said += complaints(bobs.page)
    assert bobs.go("no-such-page/") == 404
    said += complaints(bobs.page)
    bobs.go("agents/new/")
    assert bobs.press("Create agent") == 422
    said += complaints(bobs.page)
    bobs.go("souls/calm/edit/")
    edit_record(soul, {"text": "Be quick."}, expected=1, by=Actor.person(alice))
    bobs.fill(Text="Be slow. " * 400)
    assert bobs.press("Save") == 409
    said += complaints(bobs.page)
    bobs.page.context.clear_cookies()
    bobs.go("/accounts/login/")
    bobs.fill(Email="bob@example.com", Password=PASSWORD)
    bobs.press("Sign in")
    said += complaints(bobs.page)
    assert not said, "\n\n".join(said)


GREY = """<!doctype html><html lang="en"><head><title>Grey</title><style>
:root { color-scheme: light; background: #fff } p { color: %s }
@media (prefers-color-scheme: dark) { :root { color-scheme: dark; background: #111 } p { color: %s } }
</style></head><body><main><h1 class="grey">Grey</h1><p>Can this be read?</p></main></body></html>"""


@pytest.mark.planted
def test_a_faint_colour_is_found_although_its_page_was_looked_at_before(visitor):
    """Colours are judged once; the same text in others is judged again, in light and in dark.

    Whatever is not plainly one colour on another is judged by axe, however good the sum.
    """
    page = visitor()
    page.goto("about:blank")
    for light, dark, themes in (
        ("#444", "#ccc", []),
        ("#444", "#ccc", []),
        ("#ccc", "#ccc", ["light"]),
        ("#444", "#333", ["dark"]),
        # As colours these would do; what is seen of them would not.
        ("#444; opacity: 0.2", "#ccc; opacity: 1", ["light"]),
        ("rgb(0 0 0 / 20%)", "#ccc", ["light"]),
    ):
        page.set_content(GREY % (light, dark))
        said = complaints(page)
        assert [line.split("(")[1].split(")")[0] for line in said if "color-contrast" in line] == themes
        assert len(said) == len(themes), said
