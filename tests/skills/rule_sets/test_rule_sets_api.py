"""Discovery rules by API: read, replace, reset, restore, history; sources are refreshed as by the pages."""

import pytest

from personas.roles import Role
from skills.discovery.harnesses import HARNESSES
from skills.models import RefreshRun, RuleSet
from tests.factories import join, make_source, make_user
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

pytestmark = pytest.mark.django_db
RULES = {"rules": [{"kind": "context", "paths": ["NOTES.md"]}]}


def put(api, body, etag="*", harness="plain"):
    return api.call("PUT", f"rule-sets/{harness}", body, If_Match=etag)


def count_runs(workspace):
    return RefreshRun.objects.in_workspace(workspace).filter(cause="rules").count()


def test_every_harness_is_listed_with_its_built_in_rules(admin):
    items = admin.get("rule-sets").json()["items"]
    assert [item["harness"] for item in items] == list(HARNESSES)
    assert not any(item["is_custom"] for item in items)
    assert {item["etag"] for item in items} == {'"0"'}
    assert all(item["rules"] and item["caps"]["files"] for item in items)


def test_rules_are_replaced_reset_and_restored(admin, workspace):
    answer = put(admin, RULES, '"0"')
    assert answer.status_code == 200, answer.content
    assert answer.json()["is_custom"]
    assert answer.json()["rules"] == [{"kind": "context", "paths": ["NOTES.md"], "at": "each", "take": "all"}]
    assert put(admin, RULES, '"0"').status_code == 412
    assert admin.delete("rule-sets/plain", answer["ETag"]).status_code == 204
    reset = admin.get("rule-sets/plain")
    assert (reset.json()["is_custom"], reset.json()["revision"]) == (False, 1)
    assert admin.post("rule-sets/plain:restore").json()["is_custom"]
    assert RuleSet.objects.in_workspace(workspace).get().rules["rules"][0]["paths"] == ["NOTES.md"]


def test_what_was_read_can_be_written_back(admin):
    """Only the fields of the definition."""
    item = admin.get("rule-sets/opal").json()
    names = ("rules", "global_folder", "extra_skill_folders", "off", "skip_folders", "caps")
    answer = put(admin, {name: item[name] for name in names}, harness="opal")
    assert (answer.status_code, answer.json()["is_custom"]) == (200, False), answer.content


def test_a_revision_is_listed_and_restored(admin):
    put(admin, RULES)
    put(admin, {"rules": [{"kind": "context", "paths": ["OTHER.md"]}]})
    history = admin.get("rule-sets/plain/revisions").json()["items"]
    assert [row["revision"] for row in history] == [2, 1]
    answer = admin.call("POST", "rule-sets/plain/revisions/1:restore", If_Match='"2"')
    assert answer.json()["rules"][0]["paths"] == ["NOTES.md"], answer.content


def test_sources_that_use_the_rules_are_refreshed(admin, workspace, tmp_path):
    make_source(workspace, tmp_path, harnesses=["plain"])
    make_source(workspace, tmp_path, name="Other", harnesses=["opal"])
    etag = put(admin, RULES)["ETag"]
    assert count_runs(workspace) == 1
    put(admin, RULES, etag)
    assert count_runs(workspace) == 1


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, "/rules"),
        ({"rules": [{"kind": "context", "paths": ["../up.md"]}]}, "/rules/0/paths/0"),
        ({"rules": [{"kind": "poem", "paths": ["a.md"]}]}, "/rules/0/kind"),
        (RULES | {"caps": {"files": 10**9}}, "/caps/files"),
        (RULES | {"colour": "red"}, "/colour"),
    ],
)
def test_invalid_rules_are_rejected_with_their_place(body, pointer, admin, workspace):
    answer = put(admin, body)
    assert (answer.status_code, answer.json()["errors"][0].get("pointer")) == (422, pointer), answer.content
    assert not RuleSet.objects.in_workspace(workspace).exists()


def test_an_unknown_harness_and_rules_that_were_never_changed(admin):
    assert admin.get("rule-sets/no-such").status_code == 404
    assert put(admin, RULES, harness="no-such").status_code == 404
    assert admin.post("rule-sets/plain:restore").status_code == 404
    assert admin.get("rule-sets/plain/revisions").status_code == 404
    assert admin.delete("rule-sets/plain", "*").status_code == 204


def test_editors_read_rules_but_do_not_change_them(key_for, workspace):
    editor = make_user("Edda")
    join(workspace, editor, Role.EDITOR)
    key = key_for(workspace, editor)
    assert key.get("rule-sets/plain").status_code == 200
    assert put(key, RULES).status_code == 403
    assert key.delete("rule-sets/plain", "*").status_code == 403
