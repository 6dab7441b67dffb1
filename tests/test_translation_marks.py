"""Every English text shown to users is marked for translation, in templates and in Python."""

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from django.test import Client
from django.utils.translation.template import templatize

from personas.models import Agent, Workspace
from prompts.assembly.report import OmissionReason
from prompts.publishing.builds.services import rebuild_agent
from prompts.publishing.provenance.omissions import OMISSION_TEXTS
from tests.factories import make_agent, make_channel, make_memory, make_soul
from tests.pseudo_language import english_left, in_brackets
from tests.untranslated_python import ROOT, find_unmarked_literals, find_user_errors, list_modules
from tests.untranslated_templates import (
    find_jinja_literals,
    find_lost_messages,
    find_lost_variables,
    find_unmarked_text,
)

TEMPLATES = Path(__file__).resolve().parent.parent / "templates"
# Pages for developers, never shown to users.
NOT_FOR_USERS = {"styleguide.html"}
FOLDERS = sorted(path.name for path in TEMPLATES.iterdir() if path.is_dir())


def _findings_in(paths: Iterable[Path], check: Callable[[str], list[str]]) -> list[str]:
    return [
        f"{path.relative_to(TEMPLATES)}, {finding}"
        for path in sorted(paths)
        if path.suffix in {".html", ".jinja", ".txt"} and path.name not in NOT_FOR_USERS
        for finding in check(path.read_text(encoding="utf-8"))
    ]


@pytest.mark.parametrize("folder", FOLDERS)
def test_all_text_in_a_template_folder_is_marked(folder: str) -> None:
    assert _findings_in((TEMPLATES / folder).rglob("*"), find_unmarked_text) == []


def test_all_text_in_the_base_templates_is_marked() -> None:
    assert _findings_in(TEMPLATES.glob("*"), find_unmarked_text) == []


@pytest.mark.parametrize(
    "planted",
    [
        "<p>Plain words</p>",
        "{% if one %}<b>words</b>{% endif %}",
        '<input placeholder="Words">',
        "<td data-label=\"{% if one %}Words{% else %}{% translate 'More' %}{% endif %}\">",
        "<button data-confirm='Really?'>{% translate \"Remove\" %}</button>",
        "<template data-offline='The server is away.'></template>",
        '{% badge "Archived" "warning" %}',
        '{% icon "x" label="Dismiss" %}',
        '{% column "name" "Channel" %}',
        '{% include "components/empty.html" with icon="key" title="No keys" %}',
        "<p>{{ name|default:'Nobody' }}</p>",
        '<p>{{ count }} {% translate "row" %}{{ count|pluralize }}</p>',
        "{% blocktranslate %}Marked{% endblocktranslate %} and not",
        "{% block shell_look %} is-wide{% endblock %}{% block lede %}words{% endblock %}",
        '<span class="dr-mono">{{ slug }}</span> words',
        "<pre><code>x</code></pre><p>words</p>",
    ],
)
def test_planted_unmarked_text_in_a_template_is_found(planted: str) -> None:
    assert find_unmarked_text(planted) != []


def test_text_planted_at_the_end_of_any_template_is_found() -> None:
    for path in TEMPLATES.rglob("*.html"):
        planted = path.read_text(encoding="utf-8") + "<p>planted</p>"
        assert find_unmarked_text(planted)[-1].endswith(": planted"), path


@pytest.mark.parametrize(
    "fine",
    [
        '<p title="{% translate \'More\' %}">{% translate "Words" %}</p>',
        "{% blocktranslate count n=n %}One <b>row</b>{% plural %}{{ n }} rows{% endblocktranslate %}",
        '{% badge _("Archived") "warning" %}{% icon "x" label=_("Dismiss") %}',
        '{% include "components/empty.html" with icon="key" title=_("No keys") look="dr-row" %}',
        '<p class="{{ look|default:\'plain\' }}">{{ name|default:"—" }} · 12 % r12 #{{ number }}</p>',
        "{# with title= : words #}{% comment %}words{% endcomment %}<!-- words -->",
        "<script>let words</script><kbd>Enter</kbd><code>SOUL.md</code><b>Dramatis</b> v{{ number }}",
        "{% block shell_look %}{% if wide %} is-wide{% endif %}{% endblock %}",
        '<span class="dr-mono">/where/it/lies <span>too</span></span>',
        '{% icon drawing|default:"plus" %}',
    ],
)
def test_marked_text_and_markup_pass(fine: str) -> None:
    assert find_unmarked_text(fine) == []


def test_no_marked_text_drops_a_variable() -> None:
    assert _findings_in(TEMPLATES.rglob("*"), find_lost_variables) == []


@pytest.mark.parametrize("value", ["agent.name", "name|lower"])
def test_a_planted_dropped_variable_is_found(value: str) -> None:
    assert find_lost_variables(
        f"{{{{ {value} }}}}{{% blocktranslate %}}By {{{{ {value} }}}}{{% endblocktranslate %}}"
    ) == [f"line 1: {value}"]


def test_makemessages_can_parse_every_template() -> None:
    for path in TEMPLATES.rglob("*.*"):
        templatize(path.read_text(encoding="utf-8"), origin=str(path))


def test_makemessages_finds_every_message_of_the_jinja_templates() -> None:
    templates = list(TEMPLATES.rglob("*.jinja"))
    assert templates
    for path in templates:
        assert find_lost_messages(path.read_text(encoding="utf-8")) == [], path
        assert find_jinja_literals(path.read_text(encoding="utf-8")) == [], path


@pytest.mark.parametrize(
    "planted",
    [
        '{{ badge(_("Archived")) }}',
        '{{ ngettext("one row", "%(n)s rows", n) }}',
        "{{ name or _('Nobody') }}",
        '{% set words = _("Saved" ~ name) %}',
    ],
)
def test_a_planted_message_that_makemessages_does_not_find_is_found(planted: str) -> None:
    assert find_lost_messages(planted) != []


@pytest.mark.parametrize("planted", ['{{ badge("Archived") }}', '{% set words = "not here" %}{{ words }}'])
def test_a_planted_literal_in_a_jinja_template_is_found(planted: str) -> None:
    assert find_jinja_literals(planted) != []


def test_marked_text_in_a_jinja_template_passes() -> None:
    fine = '{% set archived, url = badge(_("Archived"), "warning"), url_format("memories:detail", slug) %}'
    fine += '{{ _("Every agent") }}{% if state == "proposed" %}{{ archived }}{% endif %}'
    assert find_lost_messages(fine) == find_jinja_literals(fine) == []


# --- text in Python ------------------------------------------------------------------------------------


def test_all_text_that_python_shows_to_users_is_marked() -> None:
    sources = {path: path.read_text(encoding="utf-8") for path in list_modules()}
    errors = find_user_errors(sources.values())
    finding = [
        f"{path.relative_to(ROOT)}, {one}"
        for path, source in sources.items()
        for one in find_unmarked_literals(source, errors)
    ]
    assert finding == []


@pytest.mark.parametrize(
    "planted",
    [
        'messages.success(request, "Saved.")',
        'messages.error(request, f"“{name}” is gone.")',
        'messages.info(request, _("Saved.") if fine else "Not saved.")',
        'add_toast(request, "Archived.", undo_url="")',
        'form.add_error("name", "Choose a name.")',
        'raise Invalid.on("name", "Choose a name.")',
        'raise DomainError("That cannot be.")',
        'raise ValidationError({"name": "Choose a name."})',
        'name = forms.CharField(label="Name of it")',
        'name = forms.CharField(error_messages={"required": "Say why."})',
        'class Pages:\n    name, one = "souls", "Soul"',
        'class AgentForm:\n    fieldsets = (("Agent", _("Who it is."), ("name",)),)',
        'class Role(models.TextChoices):\n    OWNER = "owner", "Owner"',
        'STATE_REASONS: dict[str, str] = {"new": "Nobody has looked yet."}',
        'STATUS_FILTERS = [("", _("In use")), ("all", "All")]',
    ],
)
def test_planted_unmarked_text_in_python_is_found(planted: str) -> None:
    assert len(find_unmarked_literals(planted)) == 1


@pytest.mark.parametrize(
    "fine",
    [
        'messages.success(request, _("“%(name)s” saved.") % {"name": name})',
        "messages.error(request, error.message)",
        'raise DomainError(ngettext("One.", "%(n)s of them.", n) % {"n": n})',
        'raise Invalid.on("name", _("Choose a name."))',
        'class Pages:\n    name, one = "souls", _("soul")',
        'class Role(models.TextChoices):\n    OWNER = "owner", _("Owner")',
        'logger.info("Saved it for good.")',
    ],
)
def test_marked_text_and_internal_text_pass(fine: str) -> None:
    assert find_unmarked_literals(fine) == []


def test_subclasses_of_user_errors_are_user_errors() -> None:
    assert "Deeper" in find_user_errors(["class Deep(DomainError): ...", "class Deeper(Deep): ..."])


def test_every_omission_reason_has_a_label() -> None:
    assert set(OMISSION_TEXTS) == set(OmissionReason)


# --- pages in another language -------------------------------------------------------------------------

# Names of test data; the built-in channels are records like any other.
NAMES = {"alice", "bob", "harbour", "example", "com", "org", "pilot", "deck", "calm", "test"}
NAMES |= {"telegram", "slack", "discord", "whatsapp", "email", "web", "command", "line"}
PAGES = [
    "",
    "agents/?q=nothing-like-it",
    "agents/pilot/",
    "agents/pilot/edit/",
    "agents/pilot/history/1/",
    "agents/pilot/memory/",
    "agents/pilot/tools/",
    "agents/pilot/context/",
    "agents/pilot/channels/",
    "agents/pilot/activity/",
    "agents/pilot/versions/",
    "studio/pilot/",
    "memories/",
    "tasks/new/",
    "souls/calm/",
    "skills/",
    "sources/new/",
    "rule-sets/",
    "releases/new/",
    "ledger/",
    "time-machine/",
    "audit/",
    "members/",
    "keys/",
    "settings/",
]


@pytest.fixture
def pilot(workspace: Workspace) -> Agent:
    agent = make_agent(
        workspace,
        "pilot",
        soul=make_soul(workspace, text="Ηρεμία."),
        channels=[make_channel(workspace, "deck")],
    )
    make_memory(workspace, "Ευθεία.", agent=agent)
    rebuild_agent(agent)
    return agent


@pytest.mark.parametrize(
    "pages",
    [
        pytest.param(PAGES[::3], id="every third"),
        pytest.param(
            [page for place, page in enumerate(PAGES) if place % 3], id="others", marks=pytest.mark.hard
        ),
    ],
)
def test_pages_in_another_language_show_no_english(as_alice: Client, pilot: Agent, pages: list[str]) -> None:
    with in_brackets():
        answers = {page: as_alice.get(f"/w/harbour/{page}") for page in pages}
        answers["a form with errors"] = as_alice.post(
            "/w/harbour/agents/new/", {"name": "", "layout": "moon"}
        )
    assert {page: answer.status_code for page, answer in answers.items()} == {
        **dict.fromkeys(pages, 200),
        "a form with errors": 422,
    }
    assert '<html lang="xx"' in answers[pages[0]].text
    unmarked = {page: english_left(answer.text, NAMES) for page, answer in answers.items()}
    assert {page: finding for page, finding in unmarked.items() if finding} == {}


@pytest.mark.parametrize(
    ("page", "unmarked"),
    [
        ("<p>⟦Marked⟧ and not</p>", ["and not"]),
        ('<b title="Bare">⟦Marked <i>inside</i> too⟧</b>', ["Bare"]),
        ("<p>⟦Cut sho</p><p>then bare</p>", ["then bare"]),
        ("<p>⟦By ⟦whom⟧ and⟧ <code>when</code> Alice</p>", []),
    ],
)
def test_english_outside_brackets_is_found(page: str, unmarked: list[str]) -> None:
    assert [
        finding.split(": ", 1)[1].split(" (in")[0] for finding in english_left(page, ["alice"])
    ] == unmarked
