"""Harnesses as JSON: round trip, and problems with JSON pointers."""

import json
from dataclasses import replace

import pytest

from skills.discovery.harness_json import InvalidHarness, harness_to_json, parse_harness
from skills.discovery.harnesses import HARNESSES, OPAL, PI, DiscoveryCaps, DiscoveryRule


def problems(**changes) -> dict[str, str]:
    with pytest.raises(InvalidHarness) as caught:
        parse_harness(harness_to_json(OPAL) | changes)
    return dict(caught.value.problems)


def rule(**changes) -> dict[str, object]:
    return {"rules": [{"kind": "context", "paths": ["AGENTS.md"]} | changes]}


def test_the_six_are_there():
    assert set(HARNESSES) == {"opal", "pi", "moltis", "openclaw", "claude-code", "plain"}


@pytest.mark.parametrize("harness", HARNESSES.values(), ids=HARNESSES)
def test_a_harness_survives_json(harness):
    assert parse_harness(json.loads(json.dumps(harness_to_json(harness)))) == harness


def test_an_edited_harness_survives_json():
    edited = replace(
        PI,
        name="ours",
        global_folder="home/x",
        extra_skill_folders=("lib/skills",),
        off=("base",),
        rules=(*PI.rules, DiscoveryRule("context", ("~/HOUSE*.md",), "project", "first")),
        caps=DiscoveryCaps(files=5, seconds=1.5),
    )
    assert parse_harness(json.loads(json.dumps(harness_to_json(edited)))) == edited


def test_what_is_left_out_has_its_default():
    assert parse_harness({"name": "small", "rules": []}).caps == DiscoveryCaps()


@pytest.mark.parametrize(
    "path",
    [
        *(
            "/etc/passwd",
            "../x",
            "a/../b",
            "a/./b",
            "a//b",
            "",
            "a/",
            "~root/x",
            "~",
            "~/",
            "~/../x",
            "~//etc/x",
        ),
        *("a\\b", "a\nb", "a\0b", "\u202ex", "x" * 201, "/".join("abcdefghi"), "**", "a*/x", "*/*", "a/**/b"),
        *("[a].md", "a?.md", 5, None, ["a"]),
    ],
)
def test_a_path_that_could_lead_elsewhere_or_means_nothing_is_refused(path):
    assert set(problems(**rule(paths=["AGENTS.md", path]))) == {"/rules/0/paths/1"}


@pytest.mark.parametrize(
    "path", ["AGENTS.md", "~/.sf/x.md", ".claude/rules/*.md", "skills/*/SKILL.md", "..a/b"]
)
def test_a_path_that_goes_down_is_taken(path):
    assert parse_harness(harness_to_json(OPAL) | rule(paths=[path])).rules[0].paths == (path,)


@pytest.mark.parametrize(
    ("changes", "pointer"),
    [
        ({"global_folder": "../home"}, "/global_folder"),
        ({"global_folder": "/home"}, "/global_folder"),
        ({"global_folder": "~"}, "/global_folder"),
        ({"extra_skill_folders": ["skills", "*"]}, "/extra_skill_folders/1"),
        ({"extra_skill_folders": [""]}, "/extra_skill_folders/0"),
        ({"extra_skill_folders": "skills"}, "/extra_skill_folders"),
        ({"off": ["everything"]}, "/off/0"),
        ({"off": [[]]}, "/off/0"),
        ({"skip_folders": ["a/b"]}, "/skip_folders/0"),
        ({"caps": {"files": 2_001}}, "/caps/files"),
        ({"caps": {"files": 0}}, "/caps/files"),
        ({"caps": {"files": True}}, "/caps/files"),
        ({"caps": {"files": 1.5}}, "/caps/files"),
        ({"caps": {"seconds": float("nan")}}, "/caps/seconds"),
        ({"caps": {"speed": 1}}, "/caps/speed"),
        ({"caps": []}, "/caps"),
        ({"name": ""}, "/name"),
        ({"name": 5}, "/name"),
        ({"rules": {}}, "/rules"),
        ({"rules": [5]}, "/rules/0"),
        ({"rules": [{}] * 31}, "/rules"),
        ({"rules": [{"kind": "context"}]}, "/rules/0/paths"),
        (rule(kind="song"), "/rules/0/kind"),
        (rule(at="everywhere"), "/rules/0/at"),
        (rule(take="last"), "/rules/0/take"),
        (rule(take=None), "/rules/0/take"),
        (rule(paths=["x"] * 21), "/rules/0/paths"),
        (rule(more=1), "/rules/0/more"),
        ({"colour": "red"}, "/colour"),
    ],
)
def test_a_problem_has_a_json_pointer(changes, pointer):
    messages = problems(**changes)
    assert set(messages) == {pointer}
    assert all(message.endswith(".") for message in messages.values())


def test_all_problems_are_reported_at_once():
    assert set(problems(name="", off=["x"], caps={"depth": 21})) == {"/name", "/off/0", "/caps/depth"}


@pytest.mark.parametrize("data", [None, [], "opal", 5, {}])
def test_something_else_is_no_harness(data):
    with pytest.raises(InvalidHarness):
        parse_harness(data)


def test_caps_are_only_ever_lowered():
    low = DiscoveryCaps(files=5).lowest_with(DiscoveryCaps(depth=3, files=9))
    assert (low.files, low.depth, low.seconds) == (5, 3, 20.0)
