"""Numbers and dates look the same with translations switched on."""

from datetime import UTC, datetime

import pytest
from django.template import Context, Template
from django.test import Client

WHEN = datetime(2026, 3, 4, 15, 6, tzinfo=UTC)


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{{ many|intcomma }}", "1,234,567"),
        ("{{ many }}", "1234567"),
        ("{{ share }}", "0.5"),
        ("{{ share|floatformat:2 }}", "0.50"),
        ('{{ when|date:"j M Y, H:i T" }}', "4 Mar 2026, 15:06 UTC"),
        ('{{ when|date:"j F Y, H:i" }}', "4 March 2026, 15:06"),
        (
            "{% blocktranslate count n=many %}{{ n }} row{% plural %}{{ n }} rows{% endblocktranslate %}",
            "1234567 rows",
        ),
    ],
)
def test_a_value_is_shown_as_english_readers_know_it(template: str, text: str) -> None:
    values = Context({"many": 1_234_567, "share": 0.5, "when": WHEN})
    assert Template("{% load humanize i18n %}" + template).render(values) == text


def test_every_page_is_english_whatever_the_browser_asks_for(client: Client) -> None:
    page = client.get("/accounts/login/", headers={"accept-language": "de"})
    assert "Password" in page.text
    assert "Passwort" not in page.text
