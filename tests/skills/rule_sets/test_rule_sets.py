"""Rule sets: the custom copy of a workspace, validation, and refreshes after a change."""

import json

import pytest

from core.text.sizes import format_size
from personas.errors import EditConflict, InvalidInput
from personas.models import AuditEvent
from personas.roles import Role
from skills.discovery.harness_json import harness_to_json, parse_harness
from skills.discovery.harnesses import HARNESSES, PLAIN
from skills.models import ContextFile, RefreshRun, RuleSet
from skills.rule_sets.descriptions import describe_caps, describe_harness_files, describe_rules
from skills.rule_sets.effective import get_effective_harnesses
from skills.rule_sets.services import reset_rules, save_rules
from tests.factories import BY, join, make_source, make_user, refreshed, signed_in
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
from tests.skills.seeded_choice import SOME_OR_ALL

pytestmark = pytest.mark.django_db


@pytest.fixture
def source(workspace, tmp_path, settings):
    settings.DRAMATIS_SOURCE_ROOTS = [tmp_path]
    (tmp_path / "AGENTS.md").write_text("Be kind.\n")
    (tmp_path / "HOUSE.md").write_text("Wipe your feet.\n")
    return make_source(workspace, tmp_path, harnesses=["plain"])


def with_paths(*paths, **more):
    """The rules of the plain harness with these paths."""
    rules = [{"kind": "context", "paths": list(paths)}]
    return {key: value for key, value in harness_to_json(PLAIN).items() if key not in {"name", "off"}} | {
        "rules": rules,
        **more,
    }


def complete_rules(*paths, **more):
    return harness_to_json(parse_harness({"name": "plain"} | with_paths(*paths, **more)))


def address(workspace, page="", name="plain"):
    return f"/w/{workspace.slug}/rule-sets/{name}/{page}"


def save(browser, workspace, rules, *, revision=0, kinds=("context", "skill"), name="plain", **more):
    text = rules if isinstance(rules, str) else json.dumps(rules)
    body = {"revision": revision, "kinds": list(kinds), "rules": text} | more
    return browser.post(address(workspace, "edit/", name), body)


def copies(workspace):
    return RuleSet.objects.in_workspace(workspace)


def causes(source):
    runs = RefreshRun.objects.in_workspace(source.workspace_id).filter(source=source)
    return [run.cause for run in runs.order_by("pk")]


# --- services ------------------------------------------------------------------------------------------


def test_the_first_change_makes_a_copy(workspace):
    save_rules(workspace, "plain", complete_rules("HOUSE.md"), expected_revision=0, by=BY)
    copy = copies(workspace).get()
    assert (copy.harness, copy.revision) == ("plain", 1)
    assert get_effective_harnesses(workspace)["plain"].rules[0].paths == ("HOUSE.md",)
    assert AuditEvent.objects.in_workspace(workspace).latest("pk").kind == "rule_set"


def test_the_copy_of_one_workspace_is_not_anothers(workspace, elsewhere):
    save_rules(workspace, "plain", complete_rules("HOUSE.md"), expected_revision=0, by=BY)
    assert get_effective_harnesses(elsewhere)["plain"] == PLAIN


def test_the_built_in_rules_need_no_copy(workspace):
    assert save_rules(workspace, "plain", harness_to_json(PLAIN), expected_revision=0, by=BY) is None
    assert not copies(workspace).exists()


def test_a_reset_lays_the_copy_aside_and_an_edit_brings_it_back(workspace):
    save_rules(workspace, "plain", complete_rules("HOUSE.md"), expected_revision=0, by=BY)
    reset_rules(workspace, "plain", by=BY)
    assert get_effective_harnesses(workspace)["plain"] == PLAIN
    save_rules(workspace, "plain", complete_rules("ROOF.md"), expected_revision=1, by=BY)
    copy = copies(workspace).get()
    assert (copy.revision, copy.is_archived) == (2, False)
    assert get_effective_harnesses(workspace)["plain"].rules[0].paths == ("ROOF.md",)


def test_the_very_rules_that_were_laid_aside_come_back_too(workspace):
    save_rules(workspace, "plain", complete_rules("HOUSE.md"), expected_revision=0, by=BY)
    reset_rules(workspace, "plain", by=BY)
    save_rules(workspace, "plain", complete_rules("HOUSE.md"), expected_revision=1, by=BY)
    copy = copies(workspace).get()
    assert (copy.revision, copy.is_archived) == (1, False)


def test_who_comes_too_late_overwrites_nothing(workspace):
    save_rules(workspace, "plain", complete_rules("HOUSE.md"), expected_revision=0, by=BY)
    with pytest.raises(EditConflict):
        save_rules(workspace, "plain", complete_rules("ROOF.md"), expected_revision=0, by=BY)


def test_unknown_harnesses_and_bad_rules_are_refused(workspace):
    with pytest.raises(InvalidInput, match="harness does not exist"):
        save_rules(workspace, "unheard-of", complete_rules("HOUSE.md"), expected_revision=0, by=BY)
    with pytest.raises(InvalidInput, match=r"/rules/0/paths/0"):
        save_rules(
            workspace, "plain", complete_rules("HOUSE.md") | bad_paths("../x"), expected_revision=0, by=BY
        )
    with pytest.raises(InvalidInput, match="Expected “plain”"):
        save_rules(workspace, "plain", harness_to_json(HARNESSES["opal"]), expected_revision=0, by=BY)


def bad_paths(*paths):
    return {"rules": [{"kind": "context", "paths": list(paths)}]}


# --- pages ---------------------------------------------------------------------------------------------


def test_the_list_shows_which_rules_are_custom(workspace, source, as_bob):
    save_rules(workspace, "plain", complete_rules("HOUSE.md"), expected_revision=0, by=BY)
    page = as_bob.get(f"/w/{workspace.slug}/rule-sets/").content.decode()
    assert all(name in page for name in HARNESSES)
    assert page.count("Built-in") == 5
    assert "Custom, revision 1" in page
    assert "House files" in page


@SOME_OR_ALL
def test_every_harness_has_a_description(workspace, as_bob, chosen):
    for name, harness in chosen(HARNESSES.items()):
        page = as_bob.get(address(workspace, name=name)).content.decode()
        paths = [path for rule in harness.rules for path in rule.paths]
        assert all(path in page for path in paths), name
        assert "256 KiB" in page, name
        assert "node_modules" in page, name


def test_there_are_no_other_harnesses(workspace, as_alice):
    assert as_alice.get(address(workspace, name="unheard-of")).status_code == 404
    assert as_alice.get(address(workspace, "edit/", "unheard-of")).status_code == 404
    assert as_alice.post(address(workspace, "reset/", "unheard-of")).status_code == 404
    assert as_alice.get(address(workspace, "history/")).status_code == 404


def test_a_change_is_saved_and_requests_a_refresh(workspace, source, as_alice):
    refreshed(source)
    assert save(as_alice, workspace, with_paths("HOUSE.md")).status_code == 302
    assert causes(source) == ["person", "rules"]
    refreshed(source)
    rows = ContextFile.objects.in_workspace(workspace)
    assert {row.path: row.exists for row in rows} == {"AGENTS.md": False, "HOUSE.md": True}


def test_sources_that_use_other_rules_are_left_alone(workspace, source, as_alice):
    save(as_alice, workspace, with_paths("HOUSE.md"), name="opal")
    assert causes(source) == []


def test_saving_what_is_there_already_changes_nothing(workspace, source, as_alice):
    form = as_alice.get(address(workspace, "edit/")).context["form"]
    answer = save(as_alice, workspace, form["rules"].value())
    assert answer.status_code == 302
    assert not copies(workspace).exists()
    assert causes(source) == []


@pytest.mark.slow
def test_a_kind_is_switched_off_and_on(workspace, source, as_alice):
    rules = as_alice.get(address(workspace, "edit/")).context["form"]["rules"].value()
    save(as_alice, workspace, rules, kinds=["context"])
    assert get_effective_harnesses(workspace)["plain"].off == ("skill",)
    page = as_alice.get(address(workspace)).content.decode()
    assert "Off" in page
    assert as_alice.get(address(workspace, "edit/")).context["form"]["kinds"].value() == ["context"]
    save(as_alice, workspace, rules, revision=1)
    assert get_effective_harnesses(workspace)["plain"].off == ()


FAULTS = [
    ("{", "Line 1, column 2: invalid JSON."),
    ("[]", "/: Expected an object."),
    ("{}", "/rules: This key is required."),
    (
        '{"rules": [], "rules": []}',
        "The key “rules” appears more than once in the same object. Remove the duplicates.",
    ),
    ('{"rules": NaN}', "invalid number"),
    ("[" * 50_000, "nested too deeply"),
    (json.dumps({"rules": [{"kind": "magic", "paths": []}]}), "/rules/0/kind: Expected one of base"),
    (json.dumps(bad_paths("/etc/passwd")), "/rules/0/paths/0: Expected a path below"),
    (json.dumps(bad_paths("a", "../b")), "/rules/0/paths/1: Names in a path must not be empty"),
    (json.dumps({"rules": [], "caps": {"files": 2001}}), "/caps/files: Expected a number up to 2,000."),
    (json.dumps({"rules": [], "caps": {"seconds": True}}), "/caps/seconds: Expected a number"),
    (json.dumps({"rules": [], "toggle": 1}), "/toggle: Unknown key."),
    (json.dumps({"rules": [], "off": ["skill"]}), "/off: Unknown field."),
    (json.dumps({"rules": [], "name": "opal"}), "/name: Unknown field."),
    ("", "This field is required."),
    (" " * 60_001, "at most 60000 characters"),
]


@SOME_OR_ALL
def test_every_fault_is_named_by_its_place_under_the_field(workspace, as_alice, chosen):
    for rules, message in chosen(FAULTS):
        answer = save(as_alice, workspace, rules)
        assert answer.status_code == 422, message
        assert message in " ".join(answer.context["form"].errors["rules"]), message
        assert not copies(workspace).exists(), message


def test_all_problems_are_reported_at_once(workspace, as_alice):
    rules = {"rules": [{"kind": "magic", "paths": ["../x"]}], "skip_folders": ["a/b"]}
    errors = save(as_alice, workspace, rules).context["form"].errors["rules"]
    places = [error.partition(":")[0] for error in errors]
    assert places == ["/rules/0/kind", "/rules/0/paths/0", "/skip_folders/0"]


def test_someone_elses_change_is_shown_before_it_is_overwritten(workspace, as_alice):
    save_rules(workspace, "plain", complete_rules("HOUSE.md"), expected_revision=0, by=BY)
    answer = save(as_alice, workspace, with_paths("ROOF.md"), revision=0)
    assert answer.status_code == 409
    assert "HOUSE.md" in answer.content.decode()
    save(as_alice, workspace, with_paths("ROOF.md"), revision=0, overwrite="1")
    assert get_effective_harnesses(workspace)["plain"].rules[0].paths == ("ROOF.md",)


def test_a_reset_and_its_undo_request_refreshes(workspace, source, as_alice):
    save(as_alice, workspace, with_paths("HOUSE.md"))
    refreshed(source)
    as_alice.post(address(workspace, "reset/"))
    assert get_effective_harnesses(workspace)["plain"] == PLAIN
    refreshed(source)
    as_alice.post(address(workspace, "restore/"))
    assert get_effective_harnesses(workspace)["plain"].rules[0].paths == ("HOUSE.md",)
    assert causes(source) == ["rules", "rules", "rules"]


@pytest.mark.slow
def test_history_shows_json_and_an_old_revision_comes_back(workspace, source, as_alice):
    save(as_alice, workspace, with_paths("HOUSE.md"))
    save(as_alice, workspace, with_paths("ROOF.md"), revision=1)
    page = as_alice.get(address(workspace, "history/2/")).content.decode()
    assert "HOUSE.md" in page
    assert "ROOF.md" in page
    refreshed(source)
    as_alice.post(address(workspace, "history/1/restore/"))
    assert get_effective_harnesses(workspace)["plain"].rules[0].paths == ("HOUSE.md",)
    assert causes(source)[-1] == "rules"


def test_editors_read_the_rules_and_admins_write_them(workspace, as_bob):
    admin = make_user("Ada")
    join(workspace, admin, Role.ADMIN)
    save_rules(workspace, "plain", complete_rules("HOUSE.md"), expected_revision=0, by=BY)
    assert as_bob.get(address(workspace)).status_code == 200
    assert as_bob.get(address(workspace, "edit/")).status_code == 403
    assert save(as_bob, workspace, with_paths("ROOF.md"), revision=1).status_code == 403
    assert as_bob.post(address(workspace, "reset/")).status_code == 403
    assert "edit/" not in as_bob.get(address(workspace)).content.decode()
    assert save(signed_in(admin), workspace, with_paths("ROOF.md"), revision=1).status_code == 302


# --- descriptions --------------------------------------------------------------------------------------


def test_rules_have_descriptions():
    persona, *_ = describe_rules(HARNESSES["openclaw"])
    assert (persona.kind, persona.match_mode) == ("Persona file", "The first that exists")
    assert persona.location == "Only in the working directory, or in the global folder"
    own = describe_rules(parse_harness(complete_rules("A.md", extra_skill_folders=["shared"], off=["skill"])))
    assert own[-1].paths == ("shared/*/SKILL.md",)
    assert [row.is_off for row in own] == [False, True]
    assert own[0].match_mode == ""
    assert (
        describe_harness_files(HARNESSES["claude-code"]) == "CLAUDE.md, rules/*.md, CLAUDE.local.md, skills"
    )


def test_limits_have_units():
    caps = {cap.label: cap.value for cap in describe_caps(HARNESSES["claude-code"].caps)}
    assert caps["Size of one file"] == "256 KiB"
    assert caps["Size of all files"] == "16 MiB"
    assert caps["Search duration"].endswith(" seconds")


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (1023, "1,023 bytes"),
        (262_144, "256 KiB"),
        (1536, "1.5 KiB"),
        (1 << 24, "16 MiB"),
        (5 << 30, "5 GiB"),
    ],
)
def test_sizes_are_formatted_with_binary_units(size, text):
    assert format_size(size) == text


def test_a_lowered_cap_is_marked():
    lowered = parse_harness(complete_rules("A.md", caps={"files": 10})).caps
    assert [cap.label for cap in describe_caps(lowered) if cap.is_lowered] == ["Files"]
