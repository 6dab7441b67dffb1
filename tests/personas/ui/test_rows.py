"""Rows that Jinja2 renders: escaping, missing values, and the fast helpers compared with Django's."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast
from zoneinfo import ZoneInfo

import pytest
from django.contrib.humanize.templatetags.humanize import intcomma
from django.template import engines
from django.template.backends.jinja2 import Jinja2
from django.urls import reverse
from django.utils.formats import date_format
from django.utils.safestring import SafeString
from django.utils.translation import override
from jinja2 import UndefinedError

from personas.templatetags.ui import format_count, format_exact_time, render_rows
from personas.ui.navigation import build_url_format

TEMPLATES = Path(__file__).resolve().parents[3] / "templates"
ROW_TEMPLATES = sorted(str(path.relative_to(TEMPLATES)) for path in TEMPLATES.rglob("*.jinja"))


def test_rows_are_escaped_as_django_does() -> None:
    options = [("<b>", "<script>alert('x')</script>"), ("&", SafeString("<i>safe</i>"))]
    html = render_rows("components/_options.jinja", options=options, value="&")
    assert isinstance(html, SafeString)
    assert "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;" in html
    assert '<option value="&lt;b&gt;">' in html
    assert '<option value="&amp;" selected><i>safe</i></option>' in html


@pytest.mark.parametrize("name", ROW_TEMPLATES)
def test_every_row_template_compiles_and_escapes(name: str) -> None:
    environment = cast("Jinja2", engines["jinja2"]).env
    assert environment.get_template(name).environment.autoescape is True


def test_a_missing_value_is_an_error() -> None:
    with pytest.raises(UndefinedError, match="options"):
        render_rows("components/_options.jinja", value="")


@pytest.mark.parametrize("slug", ["harbour", "0", "versions"])
def test_a_url_format_gives_the_urls_of_reverse(slug: str) -> None:
    one = build_url_format("memories:detail", slug)
    assert one(7) == reverse("memories:detail", args=[slug, 7])
    assert build_url_format("agents:edit", slug)("pilot") == reverse("agents:edit", args=[slug, "pilot"])
    two = build_url_format("versions:detail", slug, count=2)
    assert two(0, 12) == reverse("versions:detail", args=[slug, 0, 12])
    three = build_url_format("versions:diff", slug, count=3)
    assert three(5, 1, 2) == reverse("versions:diff", args=[slug, 5, 1, 2])


@pytest.mark.parametrize("language", ["en", "de", "ja"])
@pytest.mark.parametrize("zone", [UTC, ZoneInfo("Asia/Kolkata"), ZoneInfo("America/New_York")])
def test_exact_times_are_those_of_date_format(language: str, zone: ZoneInfo) -> None:
    with override(language):
        for days in range(0, 700, 29):
            at = (datetime(2025, 1, 3, 4, 5, 6, tzinfo=UTC) + timedelta(days=days)).astimezone(zone)
            assert format_exact_time(at) == date_format(at, "d M Y, H:i:s T")


@pytest.mark.parametrize("number", [0, 1, 999, 1_000, 1_234_567])
def test_counts_are_those_of_intcomma(number: int) -> None:
    for language in ("en", "de"):
        with override(language):
            assert format_count(number) == intcomma(number)
