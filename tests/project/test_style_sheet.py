"""The built style sheet has no selectors that make every recalculation of styles slow."""

import re
from pathlib import Path

import pytest
from django.conf import settings

# A root element that is asked for its descendants: `html:has(…)`, `.dr-js:not(:has(…))`.
ROOT_WITH_HAS = re.compile(r"(?:^|[{},\s])(?:html|:root|\.dr-js)(?:[.:\[][^\s{},>+~]*)?:(?:has|not\(:has)\(")
STYLE_SHEET = Path(settings.BASE_DIR) / "static" / "css" / "app.css"


def test_no_selector_asks_the_root_element_for_its_descendants():
    assert ROOT_WITH_HAS.findall(STYLE_SHEET.read_text()) == []


@pytest.mark.planted
@pytest.mark.parametrize(
    "selector",
    [
        "html:has(.dr-bulk.is-on){",
        "a{} :root:has(input.theme-controller[value=dark]:checked),[data-theme=dark]{",
        ".dr-js:not(:has(.dr-bulk.is-on,.dr-pickbar.is-up)) .dr-skip{",
    ],
)
def test_such_a_selector_is_noticed(selector):
    assert ROOT_WITH_HAS.search(selector)
