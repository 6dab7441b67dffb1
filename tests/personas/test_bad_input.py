"""Whatever is sent to a form: a clear message at the field, a 422, the text kept, nothing half-saved."""

import pytest

from personas.models import Revision
from tests.factories import make_agent, make_tool

# The pages, what is sent, and which field says what; in the browser, tests/browser/test_bad_input.py.
CASES = {
    "empty": ("agents", {"name": "", "slug": "pilot"}, "name", "This field is required."),
    "only spaces": ("souls", {"label": "   ", "text": "Be."}, "label", "This field is required."),
    "over-long line": ("agents", {"name": "n" * 81, "slug": "p"}, "name", "at most 80"),
    "over-long text": ("souls", {"label": "Calm", "text": "word " * 12_001}, "text", "at most 60000"),
    "duplicate": ("agents", {"name": "Two", "slug": "keeper"}, "slug", "already"),
    "duplicate tool": ("tools", {"name": "read_tide"}, "name", "already"),
    "bad address": ("agents", {"name": "P", "slug": "Ünfit!"}, "slug", "lower-case letters"),
    "control character": ("souls", {"label": "Be\x07ll"}, "label", "U+0007"),
    "NUL": ("souls", {"label": "Calm", "text": "Be\0 calm"}, "text", "Null characters are not allowed"),
    "bad JSON": ("tools", {"name": "x", "parameters": "{"}, "parameters", "JSON"),
    "bad front matter": ("identities", {"label": "F", "extra": "a: ["}, "extra", ""),
    "bad skill name": (
        "skills",
        {"name": "No Spaces", "description": "d", "body": "b"},
        "name",
        "lower-case",
    ),
    "bad pair": (
        "skills",
        {"name": "ok", "description": "d", "body": "b", "metadata": "x"},
        "metadata",
        "Line 1",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_bad_input_is_refused_on_its_field_and_kept(case, as_bob, workspace):
    path, sent, name, words = CASES[case]
    make_agent(workspace, "keeper")
    make_tool(workspace, "read_tide")
    before = Revision.unscoped.count()
    address = f"/w/{workspace.slug}/{path}/new/"
    answer = as_bob.post(address, offered(as_bob.get(address).context["form"]) | sent)
    assert answer.status_code == 422
    page, form = answer.content.decode(), answer.context["form"]
    assert "Nothing was saved yet" in page
    assert f'id="id_{name}_error"' in page
    assert words in " ".join(form.errors[name])
    assert {key: form[key].value() for key in sent} == sent
    assert Revision.unscoped.count() == before


def offered(form):
    """What a browser sends when nobody has touched the form."""
    return {field.name: value for field in form if (value := field.value())}
