"""Invalid form input: an error on the field, status 422, the input kept, nothing saved."""

import pytest

from personas.models import Revision
from tests.factories import make_agent, make_tool
from tests.shared_cast import (  # noqa: F401  # fixtures
    shared_alice,
    shared_as_alice,
    shared_as_bob,
    shared_as_mallory,
    shared_bob,
    shared_cast,
    shared_elsewhere,
    shared_mallory,
    shared_workspace,
)

# Page, data, field and error message; the browser tests are in tests/browser/test_bad_input.py.
CASES = {
    "empty": ("agents", {"name": "", "slug": "pilot"}, "name", "This field is required."),
    "only spaces": ("souls", {"name": "   ", "text": "Be."}, "name", "This field is required."),
    "over-long line": ("agents", {"name": "n" * 81, "slug": "p"}, "name", "at most 80"),
    "two lines": ("souls", {"name": "two\nlines"}, "name", "single line"),
    "no such timezone": ("user-profiles", {"name": "P", "timezone": "Mars/Base"}, "timezone", ""),
    "reserved": ("agents", {"name": "N", "slug": "new"}, "slug", "reserved"),
    "over-long label": ("souls", {"name": "x" * 81}, "name", "at most 80 characters"),
    "control character in a text": ("souls", {"name": "Calm", "text": "bell \x07"}, "text", "U+0007"),
    "over-long text": ("souls", {"name": "Calm", "text": "word " * 12_001}, "text", "at most 60000"),
    "duplicate": ("agents", {"name": "Two", "slug": "keeper"}, "slug", "already"),
    "duplicate tool": (
        "tools",
        {"name": "read_tide"},
        "name",
        (
            "Another tool in this workspace, possibly archived, already has this value. "
            "Choose a different value."
        ),
    ),
    "bad address": ("agents", {"name": "P", "slug": "Ünfit!"}, "slug", "lowercase letters"),
    "control character": ("souls", {"name": "Be\x07ll"}, "name", "U+0007"),
    "NUL": ("souls", {"name": "Calm", "text": "Be\0 calm"}, "text", "Null characters are not allowed"),
    "bad JSON": ("tools", {"name": "x", "parameters": "{"}, "parameters", "JSON"),
    "bad front matter": ("identities", {"name": "F", "extra": "a: ["}, "extra", ""),
    "bad skill name": (
        "skills",
        {"name": "No Spaces", "description": "d", "body": "b"},
        "name",
        "lowercase",
    ),
    "bad pair": (
        "skills",
        {"name": "ok", "description": "d", "body": "b", "metadata": "x"},
        "metadata",
        "Line 1",
    ),
}


@pytest.mark.slow
def test_bad_input_is_refused_on_its_field_and_kept(as_bob, workspace):
    make_agent(workspace, "keeper")
    make_tool(workspace, "read_tide")
    before = Revision.unscoped.count()
    new = {path: f"/w/{workspace.slug}/{path}/new/" for path, *_ in CASES.values()}
    empty = {path: initial_data(as_bob.get(url).context["form"]) for path, url in new.items()}
    for case, (path, sent, name, message) in CASES.items():
        answer = as_bob.post(new[path], empty[path] | sent)
        assert answer.status_code == 422, case
        page, form = answer.content.decode(), answer.context["form"]
        assert "Fix these fields and save again" in page, case
        assert f'id="id_{name}_error"' in page, case
        assert message in " ".join(form.errors[name]), case
        assert {key: form[key].value() for key in sent} == sent, case
        assert Revision.unscoped.count() == before, case


def initial_data(form):
    """Return the data a browser sends for an unchanged form."""
    return {field.name: value for field in form if (value := field.value())}
