"""Invalid input: a clear message on the field, status 422, the input kept, nothing saved."""

from dataclasses import dataclass

import pytest
from playwright.sync_api import expect

from personas.models import Agent, Revision, Soul, UserProfile
from tests.browser.page_checks import sample
from tests.browser.users import field, value_of
from tests.factories import make_agent

pytestmark = pytest.mark.slow

FAMILY = "👨‍👩‍👧‍👦"
RTL = "سفينة الميناء"
LONG = "word " * 12_001


@dataclass(frozen=True)
class Case:
    """A form, its input, and the expected error on one field."""

    name: str
    path: str
    button: str
    typed: dict[str, str]
    label: str
    error: str


# One for each kind of field; tests/personas/records/test_bad_input.py covers the other cases.
CASES = [
    Case("empty", "agents", "agent", {"Name": "", "Slug": "pilot"}, "Name", "This field is required."),
    Case("over-long text", "souls", "soul", {"Name": "Calm", "Text": LONG}, "Text", "at most 60000"),
    Case("control character", "souls", "soul", {"Name": "Be\x07ll"}, "Name", "U+0007"),
    Case(
        "bad JSON",
        "tools",
        "tool",
        {"Name": "x", "Parameters (JSON Schema)": "{"},
        "Parameters (JSON Schema)",
        "",
    ),
]


def test_bad_input_is_refused_on_its_field_and_kept(bobs, workspace, subtests):
    before = Revision.unscoped.count()
    for case in sample(CASES):
        with subtests.test(case.name):
            bobs.go(f"{case.path}/new/")
            remove_maxlength(bobs.page)
            bobs.fill(**case.typed)
            assert bobs.press(f"Create {case.button}") == 422
            bobs.sees_field_error(case.label, case.error)
            expect(bobs.page.get_by_role("alert")).to_contain_text("Fix these fields and save again")
            for label, text in case.typed.items():
                assert value_of(field(bobs.page, label)) == text
    assert Revision.unscoped.count() == before


def remove_maxlength(page):
    """Remove the browser's length limit: other clients have none, so the server must validate too."""
    page.evaluate("document.querySelectorAll('[maxlength]').forEach(e => e.removeAttribute('maxlength'))")


@pytest.mark.hard
def test_values_that_no_field_offers_are_rejected(bobs, workspace, elsewhere):
    # A text box cannot hold a NUL, so a script adds it to the form data.
    bobs.go("souls/new/")
    bobs.fill(Name="Calm", Text="Be")
    bobs.page.evaluate(
        "document.querySelector('form[method=post].dr-stack').addEventListener("
        "'formdata', event => event.formData.set('text', 'Be\\u0000 calm'))"
    )
    assert bobs.press("Create soul") == 422
    bobs.sees_field_error("Text", "Null characters are not allowed")
    assert not Soul.objects.in_workspace(workspace).exists()

    # An unknown timezone and an agent of another workspace are not valid choices.
    foreign = make_agent(elsewhere, "spy")
    bobs.go("user-profiles/new/")
    bobs.fill(Name="Guest")
    choose(bobs, "Time zone", "Mars/Olympus")
    assert bobs.press("Create user profile") == 422
    bobs.sees_field_error("Time zone", "not one of the available choices")
    expect(field(bobs.page, "Name")).to_have_value("Guest")
    assert not UserProfile.objects.in_workspace(workspace).exists()
    bobs.go("memories/new/")
    bobs.fill(Text="High water is at six.")
    choose(bobs, "Visible to", str(foreign.pk))
    assert bobs.press("Create memory") == 422
    bobs.sees_field_error("Visible to", "not one of the available choices")


def choose(visit, label, value):
    """Select a value that the list does not offer."""
    control = field(visit.page, label)
    control.evaluate("(element, value) => element.options[0].value = value", value)
    control.select_option(value)


@pytest.mark.hard
def test_any_unicode_script_is_kept_and_markup_is_escaped(bobs, workspace):
    bobs.go("identities/new/")
    bobs.fill(**{"Name": RTL, "Emoji": FAMILY, "Display name": f"Mira {FAMILY}", "Vibe": "Żółć, naïve, 東京"})
    bobs.press("Create identity")
    bobs.sees_message(RTL)
    bobs.sees(FAMILY)
    bobs.follow("Edit")
    for label, text in {"Name": RTL, "Emoji": FAMILY, "Display name": f"Mira {FAMILY}"}.items():
        expect(field(bobs.page, label)).to_have_value(text)
    bobs.press("Save")
    bobs.sees_message("Nothing changed")
    bobs.go("identities/")
    heading = bobs.page.get_by_role("link", name=RTL)
    assert heading.evaluate("element => getComputedStyle(element).direction") == "rtl"

    # Markup never runs.
    bobs.go("agents/new/")
    trap = "<img src=x onerror=document.title='owned'><b>Bold</b>"
    bobs.fill(Name=trap[:80], Slug="trap", Instructions=trap)
    bobs.press("Create agent")
    bobs.sees(trap)
    expect(bobs.page).not_to_have_title("owned")
    assert Agent.objects.in_workspace(workspace).get(slug="trap").instructions == trap
