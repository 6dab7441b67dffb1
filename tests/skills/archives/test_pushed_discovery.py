"""Pushed files are looked through as a folder is, by the same rules, and with one line for all the rest."""

import tempfile
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skills.archives import build_stamp, bundle_files, discover_pushed_files, read_zip
from skills.discovery import DiscoveryResult, discover_tree
from skills.discovery.filesystem import FileStamp
from skills.discovery.harnesses import (
    CLAUDE_CODE,
    HARNESSES,
    MOLTIS,
    OPAL,
    OPENCLAW,
    DiscoveryCaps,
    DiscoveryRule,
    Harness,
)
from tests.example_counts import examples
from tests.skills.archives.zip_builder import Part, archive

ALL = list(HARNESSES.values())
SKILL = ".agents/skills/a-b/SKILL.md"


def pushed(*paths: str, harnesses=(OPAL,), **more) -> DiscoveryResult:
    return discover_pushed_files({path: path.encode() for path in paths}, harnesses, **more)


def paths(found: DiscoveryResult) -> list[str]:
    return [file.path for file in (*found.files, *found.skills)]


def rules(found: DiscoveryResult) -> dict[str, str]:
    return {refusal.path: refusal.rule for refusal in found.refusals}


# --- as on disk ----------------------------------------------------------------------------------------

NAMES = st.sampled_from(
    [
        *("AGENTS.md", "CLAUDE.md", "SOUL.md", "SKILL.md", "README.md", "x.md", ".x.md", "a", "b", "skills"),
        *(".agents", ".claude", ".github", ".moltis", ".openclaw", ".sf", "agent", "rules", "workspace"),
        *("node_modules", ".git", "agents.md", "OPAL.md", ".opal"),
    ]
)
FIXED = [
    *("AGENTS.md", ".agents/AGENTS.md", "a/b/CLAUDE.md", "a/.claude/rules/x.md", ".claude/rules/.hidden.md"),
    *(SKILL, "a/.agents/skills/x/SKILL.md", ".agents/skills/.x/SKILL.md", ".sf/agent/SYSTEM.md"),
    *(
        "node_modules/AGENTS.md",
        ".git/AGENTS.md",
        "skills/x/SKILL.md",
        ".moltis/SOUL.md",
        "a/.moltis/SOUL.md",
    ),
]
TREES = st.sets(
    st.one_of(st.sampled_from(FIXED), st.lists(NAMES, min_size=1, max_size=6).map("/".join)), max_size=14
)


@given(TREES, st.sampled_from([[harness] for harness in ALL] + [ALL, []]), st.sampled_from([20, 2, 1, 0]))
@settings(max_examples=examples(50, hard=400), deadline=None)
def test_a_push_gives_what_a_folder_with_these_files_gives(tree, harnesses, depth):
    files = dict(bundle_files([(path, path.encode()) for path in tree]).files)
    caps = DiscoveryCaps(depth=depth)
    with tempfile.TemporaryDirectory() as folder:
        for path, content in files.items():
            place = Path(folder, path)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
        on_disk = discover_tree(folder, harnesses, caps=caps)
    by_push = discover_pushed_files(files, harnesses, caps=caps)
    assert told(by_push) == told(on_disk)
    # A disk is not looked into where it is too deep; of a push all names are known.
    assert refused(by_push, "depth") <= refused(on_disk, "depth")
    assert refused(by_push, "folder") == refused(on_disk, "folder")
    assert by_push.is_complete


def told(found: DiscoveryResult) -> list[tuple]:
    """In order where it is the order of the walk; below its depth a disk is asked rule by rule."""
    return sorted(
        [(file.path, file.kind, file.stamp.digest, file.content) for file in (*found.files, *found.skills)]
    )


def refused(found: DiscoveryResult, rule: str) -> set:
    return {refusal for refusal in found.refusals if refusal.rule == rule}


@pytest.mark.parametrize("harness", ALL, ids=lambda harness: harness.name)
def test_the_order_is_that_of_a_walk(harness, tmp_path):
    for path in FIXED:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(path.encode())
    assert paths(pushed(*reversed(FIXED), harnesses=[harness])) == paths(discover_tree(tmp_path, [harness]))


# --- stamps --------------------------------------------------------------------------------------------


def test_a_stamp_knows_no_time_and_no_place():
    (file,) = pushed("AGENTS.md").files
    assert file.stamp == FileStamp(9, 0, 0, sha256(b"AGENTS.md").hexdigest()) == build_stamp(b"AGENTS.md")
    assert file.content == b"AGENTS.md"
    assert file.target == ""


def test_a_known_stamp_brings_no_content():
    found = pushed(
        "AGENTS.md",
        "OPAL.md",
        known_stamps={"AGENTS.md": build_stamp(b"AGENTS.md"), "OPAL.md": build_stamp(b"old")},
    )
    assert {file.path: file.content for file in found.files} == {"AGENTS.md": None, "OPAL.md": b"OPAL.md"}
    assert (found.seen_count, found.read_count) == (2, 1)


def test_what_was_stored_earlier_is_judged_by_its_stamp():
    stamp, large = build_stamp(b"words"), FileStamp(300 * 1024, 0, 0, "f" * 64)
    found = discover_pushed_files({"AGENTS.md": stamp, "OPAL.md": large}, [OPAL])
    assert [(file.path, file.stamp, file.content) for file in found.files] == [("AGENTS.md", stamp, None)]
    assert rules(found) == {"OPAL.md": "size"}
    assert (found.seen_count, found.read_count) == (2, 0)


# --- what no rule names --------------------------------------------------------------------------------


def test_a_repository_gives_one_line_for_all_that_no_rule_names():
    data = archive(*[Part(f"src/{at}.py") for at in range(2_998)], Part("AGENTS.md"), Part("docs/CLAUDE.md"))
    bundle = read_zip(data)
    found = discover_pushed_files(dict(bundle.files), ALL, refusals=bundle.refusals)
    assert paths(found) == ["AGENTS.md", "docs/CLAUDE.md"]
    (line,) = found.refusals
    assert line[:2] == (".", "unnamed")
    assert line.reason == "No rule names 2,998 of the 3,000 files, such as src/0.py; no prompt uses them."
    assert (found.seen_count, found.read_count, found.is_complete) == (2, 2, True)


def test_a_lone_file_that_no_rule_names_is_named_in_the_reason():
    (line,) = pushed("agents.md").refusals
    assert line.reason == "No rule names agents.md; no prompt uses it."


def test_the_line_hides_no_file_that_is_gone():
    assert pushed("README.md").list_missing_paths(["AGENTS.md"]) == ["AGENTS.md"]


def test_what_lies_in_a_skills_folder_belongs_to_the_skill():
    found = pushed(SKILL, ".agents/skills/a-b/scripts/run.py", ".agents/skills/a-b/references/deep/a.md")
    assert paths(found) == [SKILL]
    assert found.refusals == ()
    assert found.seen_count == 1
    beside = pushed(SKILL, ".agents/skills/a-b2/run.py", ".agents/skills/note.md")
    assert "2 of the 3 files" in beside.refusals[0].reason


def test_a_skill_at_the_top_owns_the_push():
    lone = Harness("lone", (DiscoveryRule("skill", ("SKILL.md",)),))
    assert pushed("SKILL.md", "scripts/run.py", harnesses=[lone]).refusals == ()


def test_nothing_pushed_is_nothing_found():
    assert discover_pushed_files({}, ALL) == DiscoveryResult((), (), (), 0, 0, is_complete=True)


# --- what could not be read ----------------------------------------------------------------------------


def looked_through(*parts: Part, caps: DiscoveryCaps | None = None) -> DiscoveryResult:
    bundle = read_zip(archive(*parts), caps=caps or DiscoveryCaps())
    return discover_pushed_files(dict(bundle.files), [OPAL], refusals=bundle.refusals, caps=caps)


def test_a_refused_file_that_a_rule_names_is_shown_and_not_gone():
    found = looked_through(Part("AGENTS.md", mode=0o120777), Part("OPAL.md"))
    assert rules(found) == {"AGENTS.md": "link"}
    assert found.list_missing_paths(["AGENTS.md", "OPAL.md"]) == []
    assert (found.seen_count, found.read_count) == (2, 1)


def test_a_refused_file_in_a_skills_folder_is_shown():
    script = ".agents/skills/a-b/scripts/run.py"
    assert rules(looked_through(Part(SKILL), Part(script, flags=1))) == {script: "encrypted"}


def test_a_refused_skill_still_owns_its_folder():
    found = looked_through(Part("x"), Part(SKILL, flags=1), Part(".agents/skills/a-b/run.py"))
    assert rules(found) == {SKILL: "encrypted", ".": "unnamed"}
    assert "1 of the 3 files" in found.refusals[-1].reason


def test_refused_files_that_no_rule_names_are_in_the_line():
    found = looked_through(Part("AGENTS.md"), Part("a.png", bytes(300 * 1024)), Part("b.py"), Part("B.py"))
    (line,) = found.refusals
    assert line.rule == "unnamed"
    assert "3 of the 4 files, such as B.py" in line.reason
    assert line.reason.endswith(" 3 of them could not be kept, such as B.py.")


def test_a_path_that_leads_out_is_always_shown():
    found = looked_through(Part("../x"), Part("a\nb"), Part(""), Part("a\\b"), Part("OPAL.md"))
    assert rules(found) == {"../x": "outside", "a\\nb": "name", "(no name)": "name", "a\\b": "path"}
    assert paths(found) == ["OPAL.md"]


def test_an_archive_that_cannot_be_read_leaves_nothing_gone():
    bundle = read_zip(b"no archive")
    found = discover_pushed_files(dict(bundle.files), [OPAL], refusals=bundle.refusals)
    assert rules(found) == {".": "not-zip"}
    assert not found.is_complete
    assert found.list_missing_paths(["AGENTS.md"]) == []


def test_paths_that_were_never_checked_are_checked():
    found = pushed("../AGENTS.md", "/AGENTS.md", "a/../AGENTS.md", "AGENTS.md\n", ".", "OPAL.md")
    assert paths(found) == ["OPAL.md"]
    assert set(rules(found).values()) == {"outside", "name", "path"}
    assert "." not in rules(found)
    assert all(refusal.path.isprintable() for refusal in found.refusals)


# --- caps ----------------------------------------------------------------------------------------------


def test_more_files_than_allowed_end_the_look():
    found = pushed("AGENTS.md", "OPAL.md", "a/AGENTS.md", caps=DiscoveryCaps(files=2))
    assert paths(found) == ["AGENTS.md", "OPAL.md"]
    assert rules(found) == {".": "files"}
    assert not found.is_complete


def test_unnamed_files_do_not_count_against_the_files():
    found = pushed("AGENTS.md", *[f"{at}.py" for at in range(9)], caps=DiscoveryCaps(files=2))
    assert paths(found) == ["AGENTS.md"]
    assert found.is_complete


def test_more_names_than_allowed_end_the_look():
    found = pushed("AGENTS.md", "OPAL.md", caps=DiscoveryCaps(entries=1))
    assert (paths(found), rules(found), found.is_complete) == ([], {".": "entries"}, False)


def test_sizes_are_bounded_as_on_disk():
    files = {"AGENTS.md": b"x" * 60, "OPAL.md": b"x" * 50, "a/AGENTS.md": b"x" * 70, "b/AGENTS.md": b"x" * 40}
    found = discover_pushed_files(files, [OPAL], caps=DiscoveryCaps(file_bytes=60, total_bytes=100))
    assert paths(found) == ["AGENTS.md", "b/AGENTS.md"]
    assert rules(found) == {"OPAL.md": "total", "a/AGENTS.md": "size"}


def test_a_harness_lowers_the_caps():
    small = replace(OPAL, caps=DiscoveryCaps(file_bytes=5))
    assert rules(pushed("AGENTS.md", harnesses=[small, MOLTIS])) == {"AGENTS.md": "size"}


def test_what_lies_too_deep_is_refused_with_its_folder():
    deep = "/".join("d" * 21)
    found = pushed("/".join("d" * 20) + "/AGENTS.md", f"{deep}/AGENTS.md", f"{deep}/e/OPAL.md")
    assert paths(found) == ["/".join("d" * 20) + "/AGENTS.md"]
    assert rules(found) == {deep: "depth"}
    assert found.list_missing_paths([f"{deep}/AGENTS.md"]) == []


def test_depth_is_no_matter_to_what_no_rule_names():
    (line,) = pushed("AGENTS.md", "/".join("d" * 40) + "/x.js").refusals
    assert line.rule == "unnamed"


def test_a_skill_of_the_deepest_working_directory_is_found():
    path = "/".join("d" * 20) + f"/{SKILL}"
    assert paths(pushed(path)) == [path]


def test_a_folder_named_like_a_file_is_refused():
    found = pushed("AGENTS.md/x.md", "AGENTS.md/AGENTS.md", "OPAL.md")
    assert paths(found) == ["OPAL.md"]
    assert rules(found) == {"AGENTS.md": "folder"}


def test_the_same_path_has_one_kind_for_all_harnesses_together():
    found = pushed("AGENTS.md", ".claude/rules/x.md", "SOUL.md", harnesses=[OPENCLAW, CLAUDE_CODE, OPAL])
    assert {file.path: file.kind for file in found.files} == {
        "AGENTS.md": "workspace",
        ".claude/rules/x.md": "context",
        "SOUL.md": "persona",
    }
