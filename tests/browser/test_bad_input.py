"""Whatever is typed: a clear message on the field, a 4xx, the text kept, nothing half-saved."""

from dataclasses import dataclass

import pytest
from playwright.sync_api import expect

from personas.models import Agent, Revision, Soul, UserProfile
from tests.browser.people import field, value_of
from tests.factories import make_agent, make_tool

FAMILY = "👨‍👩‍👧‍👦"
RTL = "سفينة الميناء"
LONG = "word " * 12_001


@dataclass(frozen=True)
class Case:
    """A form, what is typed into it, and which field says what."""

    name: str
    path: str
    button: str
    typed: dict[str, str]
    label: str
    words: str

    def __str__(self) -> str:
        return self.name


CASES = [
    Case("empty", "agents", "agent", {"Name": "", "Address": "pilot"}, "Name", "This field is required."),
    Case("only spaces", "souls", "soul", {"Label": "   ", "Text": "Be."}, "Label", "This field is required."),
    Case("over-long line", "agents", "agent", {"Name": "n" * 81, "Address": "p"}, "Name", "at most 80"),
    Case("over-long text", "souls", "soul", {"Label": "Calm", "Text": LONG}, "Text", "at most 60000"),
    Case("duplicate", "agents", "agent", {"Name": "Two", "Address": "keeper"}, "Address", "already"),
    Case("duplicate tool", "tools", "tool", {"Name": "read_tide"}, "Name", "already"),
    Case(
        "bad address", "agents", "agent", {"Name": "P", "Address": "Ünfit!"}, "Address", "lower-case letters"
    ),
    Case("control character", "souls", "soul", {"Label": "Be\x07ll"}, "Label", "U+0007"),
    Case(
        "bad JSON",
        "tools",
        "tool",
        {"Name": "x", "Parameters (JSON Schema)": "{"},
        "Parameters (JSON Schema)",
        "",
    ),
    Case(
        "bad front matter",
        "identities",
        "identity",
        {"Label": "F", "Other front matter": "a: ["},
        "Other front matter",
        "",
    ),
    Case(
        "bad skill name",
        "skills",
        "skill",
        {"Name": "No Spaces", "Description": "d", "Instructions": "b"},
        "Name",
        "",
    ),
    Case(
        "bad pair",
        "skills",
        "skill",
        {"Name": "ok", "Description": "d", "Instructions": "b", "Metadata": "x"},
        "Metadata",
        "Line 1",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_bad_input_is_refused_on_its_field_and_kept(case, bobs, workspace):
    make_agent(workspace, "keeper")
    make_tool(workspace, "read_tide")
    before = Revision.unscoped.count()
    bobs.go(f"{case.path}/new/")
    lift_limits(bobs.page)
    bobs.fill(**case.typed)
    assert bobs.press(f"Create {case.button}") == 422
    bobs.is_refused(case.label, case.words)
    expect(bobs.page.get_by_role("alert")).to_contain_text("Nothing was saved yet")
    for label, text in case.typed.items():
        assert value_of(field(bobs.page, label)) == text
    assert Revision.unscoped.count() == before


def lift_limits(page):
    """What the browser forbids, a program would send: so the server must refuse it too."""
    page.evaluate("document.querySelectorAll('[maxlength]').forEach(e => e.removeAttribute('maxlength'))")


def test_a_nul_is_refused_like_any_other_unwritable_character(bobs, workspace):
    """A text box cannot hold one, so the form is given it by script."""
    bobs.go("souls/new/")
    bobs.fill(Label="Calm", Text="Be")
    bobs.page.evaluate(
        "document.querySelector('form[method=post].dr-stack').addEventListener("
        "'formdata', event => event.formData.set('text', 'Be\\u0000 calm'))"
    )
    assert bobs.press("Create soul") == 422
    bobs.is_refused("Text", "Null characters are not allowed")
    assert not Soul.objects.in_workspace(workspace).exists()


def test_an_unknown_timezone_and_a_foreign_id_are_no_choice(bobs, workspace, elsewhere):
    foreign = make_agent(elsewhere, "spy")
    bobs.go("user-profiles/new/")
    bobs.fill(Label="Guest")
    choose(bobs, "Timezone", "Mars/Olympus")
    assert bobs.press("Create user profile") == 422
    bobs.is_refused("Timezone", "not one of the available choices")
    expect(field(bobs.page, "Label")).to_have_value("Guest")
    assert not UserProfile.objects.in_workspace(workspace).exists()
    bobs.go("memories/new/")
    bobs.fill(Text="High water is at six.")
    choose(bobs, "Known to", str(foreign.pk))
    assert bobs.press("Create memory") == 422
    bobs.is_refused("Known to", "not one of the available choices")


def choose(visit, label, value):
    """Choose what the list does not offer."""
    control = field(visit.page, label)
    control.evaluate("(element, value) => element.options[0].value = value", value)
    control.select_option(value)


def test_emoji_sequences_and_right_to_left_text_come_back_as_typed(bobs, workspace):
    bobs.go("identities/new/")
    bobs.fill(Label=RTL, Emoji=FAMILY, Name=f"Mira {FAMILY}", Vibe="Żółć, naïve, 東京")
    bobs.press("Create identity")
    bobs.is_told(RTL)
    bobs.sees(FAMILY)
    bobs.follow("Edit")
    for label, text in {"Label": RTL, "Emoji": FAMILY, "Name": f"Mira {FAMILY}"}.items():
        expect(field(bobs.page, label)).to_have_value(text)
    bobs.press("Save")
    bobs.is_told("Nothing had changed")
    bobs.go("identities/")
    heading = bobs.page.get_by_role("link", name=RTL)
    assert heading.evaluate("element => getComputedStyle(element).direction") == "rtl"


def test_markup_is_shown_as_text_and_never_runs(bobs, workspace):
    bobs.go("agents/new/")
    trap = "<img src=x onerror=document.title='owned'><b>Bold</b>"
    bobs.fill(Name=trap[:80], Address="trap", Instructions=trap)
    bobs.press("Create agent")
    bobs.sees(trap)
    expect(bobs.page).not_to_have_title("owned")
    assert Agent.objects.in_workspace(workspace).get(slug="trap").instructions == trap
