"""Guard: every English word a template shows is marked for translation."""

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from django.utils.translation.template import templatize

from tests.unmarked_words import lost, unmarked

TEMPLATES = Path(__file__).resolve().parent.parent / "templates"
# Pages for those who build the product, never shown to those who use it.
NOT_FOR_PEOPLE = {"styleguide.html"}
FOLDERS = sorted(path.name for path in TEMPLATES.iterdir() if path.is_dir())


def _found_in(paths: Iterable[Path], look: Callable[[str], list[str]]) -> list[str]:
    return [
        f"{path.relative_to(TEMPLATES)}, {found}"
        for path in sorted(paths)
        if path.suffix in {".html", ".txt"} and path.name not in NOT_FOR_PEOPLE
        for found in look(path.read_text(encoding="utf-8"))
    ]


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_word_a_folder_of_templates_shows_is_marked(folder: str) -> None:
    assert _found_in((TEMPLATES / folder).rglob("*"), unmarked) == []


def test_every_word_the_frame_of_the_pages_shows_is_marked() -> None:
    assert _found_in(TEMPLATES.glob("*"), unmarked) == []


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
def test_a_planted_word_without_a_mark_is_found(planted: str) -> None:
    assert unmarked(planted) != []


def test_a_word_planted_at_the_end_of_any_template_is_found() -> None:
    for path in TEMPLATES.rglob("*.html"):
        planted = path.read_text(encoding="utf-8") + "<p>planted</p>"
        assert unmarked(planted)[-1].endswith(": planted"), path


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
    ],
)
def test_marked_words_and_what_is_no_word_pass(fine: str) -> None:
    assert unmarked(fine) == []


def test_no_marked_text_loses_a_variable() -> None:
    assert _found_in(TEMPLATES.rglob("*"), lost) == []


@pytest.mark.parametrize("value", ["agent.name", "name|lower"])
def test_a_planted_variable_that_would_be_lost_is_found(value: str) -> None:
    assert lost(f"{{{{ {value} }}}}{{% blocktranslate %}}By {{{{ {value} }}}}{{% endblocktranslate %}}") == [
        f"line 1: {value}"
    ]


def test_the_tool_that_gathers_marked_texts_can_read_every_template() -> None:
    for path in TEMPLATES.rglob("*.*"):
        templatize(path.read_text(encoding="utf-8"), origin=str(path))
