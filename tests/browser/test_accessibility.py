"""Every page: axe finds nothing in light or in dark, and no screen is too narrow for it."""

import pytest

from prompts.demo import DEMO_PASSWORD
from tests.browser.looking import ACCOUNT, ENTRANCE, complaints, forms, lists, overflows, records
from tests.browser.people import Visit
from tests.factories import PASSWORD


def look_at(page, addresses):
    """Open each page and collect what axe says; a page that is not there is a fault of the test."""
    said = []
    for address in addresses:
        answer = page.goto(address)
        assert answer.status in {200, 410}, address
        said += complaints(page) + overflows(page)
    assert not said, "\n\n".join(said)


def test_lists_records_and_histories_suit_everyone(demo, demo_page):
    histories = records(demo, "history/", "history/1/")[:4]
    look_at(demo_page(), [*lists(demo), *records(demo, ""), *histories])


def test_forms_and_account_pages_suit_everyone(demo, demo_page):
    page = demo_page()
    look_at(page, [*forms(demo), *records(demo, "edit/")[:2]])
    # Some account pages ask for the password once more; that page is looked at on the way.
    page.goto("/accounts/2fa/totp/activate/")
    assert not complaints(page)
    page.get_by_label("Password").fill(DEMO_PASSWORD)
    page.get_by_role("button", name="Confirm").click()
    page.wait_for_url("**/totp/activate/")
    look_at(page, ACCOUNT)


def test_an_empty_workspace_suits_everyone(alices, workspace):
    look_at(alices.page, [f"/w/{workspace.slug}/{path}" for path in ("", "agents/", "memories/", "members/")])


def test_the_ways_in_suit_everyone(visitor):
    look_at(visitor(), ENTRANCE)


def test_refusals_are_accessible(alices, bobs, visitor):
    said = []
    bobs.go("settings/")
    said += complaints(bobs.page)
    assert bobs.go("no-such-page/") == 404
    said += complaints(bobs.page)
    alices.go("agents/new/")
    assert alices.press("Create agent") == 422
    said += complaints(alices.page)
    alices.go("souls/new/")
    alices.fill(Label="Calm", Text="Be calm. " * 400)
    alices.press("Create soul")
    for visit, text in ((bobs, "Be quick."), (alices, "Be slow. " * 400)):
        visit.go("souls/calm/edit/")
        visit.fill(Text=text)
    bobs.press("Save")
    bobs.is_told("saved")
    assert alices.press("Save") == 409
    said += complaints(alices.page)
    outside = Visit(visitor())
    outside.go("/accounts/login/")
    outside.fill(Email="alice@example.com", Password=PASSWORD)
    outside.press("Sign in")
    said += complaints(outside.page)
    assert not said, "\n\n".join(said)


@pytest.mark.parametrize("opener", ["Control+k", "?"])
def test_dialogs_are_accessible(bobs, opener):
    bobs.go()
    bobs.page.keyboard.press(opener)
    bobs.page.get_by_role("dialog").wait_for()
    assert not complaints(bobs.page)


GREY = """<!doctype html><html lang="en"><head><title>Grey</title><style>
:root { color-scheme: light; background: #fff } p { color: %s }
@media (prefers-color-scheme: dark) { :root { color-scheme: dark; background: #111 } p { color: %s } }
</style></head><body><main><h1 class="grey">Grey</h1><p>Can this be read?</p></main></body></html>"""


@pytest.mark.planted
def test_a_faint_colour_is_found_although_its_page_was_looked_at_before(visitor):
    """Colours are judged once; the same text in others is judged again, in light and in dark."""
    page = visitor()
    for light, dark, themes in (
        ("#444", "#ccc", []),
        ("#444", "#ccc", []),
        ("#ccc", "#ccc", ["light"]),
        ("#444", "#333", ["dark"]),
    ):
        page.set_content(GREY % (light, dark))
        said = complaints(page)
        assert [line.split("(")[1].split(")")[0] for line in said if "color-contrast" in line] == themes
        assert len(said) == len(themes), said
