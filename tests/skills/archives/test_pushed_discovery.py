"""Discovery of pushed files: same rules as for a folder, and one message for all unmatched files."""

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


def paths(result: DiscoveryResult) -> list[str]:
    return [file.path for file in (*result.files, *result.skills)]


def rules(result: DiscoveryResult) -> dict[str, str]:
    return {refusal.path: refusal.rule for refusal in result.refusals}


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


@pytest.mark.slow
@given(TREES, st.sampled_from([[harness] for harness in ALL] + [ALL, []]), st.sampled_from([20, 2, 1, 0]))
@settings(max_examples=examples(50, hard=400), deadline=None)
def test_a_push_gives_what_a_folder_with_these_files_gives(tree, harnesses, depth):
    files = dict(bundle_files([(path, path.encode()) for path in tree]).files)
    caps = DiscoveryCaps(depth=depth)
    with tempfile.TemporaryDirectory() as folder:
        for path, content in files.items():
            target = Path(folder, path)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        on_disk = discover_tree(folder, harnesses, caps=caps)
    by_push = discover_pushed_files(files, harnesses, caps=caps)
    assert summarize_result(by_push) == summarize_result(on_disk)
    # On disk, folders below the depth limit are not listed; of a push all names are known.
    assert refused(by_push, "depth") <= refused(on_disk, "depth")
    assert refused(by_push, "folder") == refused(on_disk, "folder")
    assert by_push.is_complete


def summarize_result(result: DiscoveryResult) -> list[tuple]:
    """Summarize a result.

    The order is compared only above the depth limit; below it, disk search is by rule.
    """
    return sorted(
        [(file.path, file.kind, file.stamp.digest, file.content) for file in (*result.files, *result.skills)]
    )


def refused(result: DiscoveryResult, rule: str) -> set:
    return {refusal for refusal in result.refusals if refusal.rule == rule}


@pytest.mark.parametrize("harness", ALL, ids=lambda harness: harness.name)
def test_the_order_is_that_of_a_walk(harness, tmp_path):
    for path in FIXED:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(path.encode())
    assert paths(pushed(*reversed(FIXED), harnesses=[harness])) == paths(discover_tree(tmp_path, [harness]))


# --- stamps --------------------------------------------------------------------------------------------


def test_a_stamp_knows_no_time_and_no_place():
    (file,) = pushed("AGENTS.md").files
    assert file.stamp == FileStamp(9, 0, 0, 0, sha256(b"AGENTS.md").hexdigest()) == build_stamp(b"AGENTS.md")
    assert file.content == b"AGENTS.md"
    assert file.target == ""


def test_a_known_stamp_brings_no_content():
    result = pushed(
        "AGENTS.md",
        "OPAL.md",
        known_stamps={"AGENTS.md": build_stamp(b"AGENTS.md"), "OPAL.md": build_stamp(b"old")},
    )
    assert {file.path: file.content for file in result.files} == {"AGENTS.md": None, "OPAL.md": b"OPAL.md"}
    assert (result.seen_count, result.read_count) == (2, 1)


def test_what_was_stored_earlier_is_judged_by_its_stamp():
    stamp, large = build_stamp(b"words"), FileStamp(300 * 1024, 0, 0, 0, "f" * 64)
    result = discover_pushed_files({"AGENTS.md": stamp, "OPAL.md": large}, [OPAL])
    assert [(file.path, file.stamp, file.content) for file in result.files] == [("AGENTS.md", stamp, None)]
    assert rules(result) == {"OPAL.md": "size"}
    assert (result.seen_count, result.read_count) == (2, 0)


# --- unmatched files -----------------------------------------------------------------------------------


def test_a_repository_gives_one_line_for_all_that_no_rule_names():
    data = archive(*[Part(f"src/{at}.py") for at in range(2_998)], Part("AGENTS.md"), Part("docs/CLAUDE.md"))
    bundle = read_zip(data)
    result = discover_pushed_files(dict(bundle.files), ALL, refusals=bundle.refusals)
    assert paths(result) == ["AGENTS.md", "docs/CLAUDE.md"]
    (line,) = result.refusals
    assert line[:2] == (".", "unnamed")
    assert line.reason == (
        "No rule matches 2,998 of the 3,000 files, for example src/0.py, so no prompt uses them."
    )
    assert (result.seen_count, result.read_count, result.is_complete) == (2, 2, True)


def test_a_lone_file_that_no_rule_names_is_named_in_the_reason():
    (line,) = pushed("agents.md").refusals
    assert line.reason == "No rule matches agents.md, so no prompt uses it."


def test_the_line_hides_no_file_that_is_gone():
    assert pushed("README.md").list_missing_paths(["AGENTS.md"]) == ["AGENTS.md"]


def test_what_lies_in_a_skills_folder_belongs_to_the_skill():
    result = pushed(SKILL, ".agents/skills/a-b/scripts/run.py", ".agents/skills/a-b/references/deep/a.md")
    assert paths(result) == [SKILL]
    assert result.refusals == ()
    assert result.seen_count == 1
    beside = pushed(SKILL, ".agents/skills/a-b2/run.py", ".agents/skills/note.md")
    assert "2 of the 3 files" in beside.refusals[0].reason


def test_a_skill_at_the_top_owns_the_push():
    lone = Harness("lone", (DiscoveryRule("skill", ("SKILL.md",)),))
    assert pushed("SKILL.md", "scripts/run.py", harnesses=[lone]).refusals == ()


def test_nothing_pushed_is_nothing_found():
    assert discover_pushed_files({}, ALL) == DiscoveryResult(
        (), (), (), 0, 0, is_complete=True, is_empty=True
    )


# --- unreadable files ----------------------------------------------------------------------------------


def discover_archive(*parts: Part, caps: DiscoveryCaps | None = None) -> DiscoveryResult:
    bundle = read_zip(archive(*parts), caps=caps or DiscoveryCaps())
    return discover_pushed_files(dict(bundle.files), [OPAL], refusals=bundle.refusals, caps=caps)


def test_a_refused_file_that_a_rule_names_is_shown_and_not_gone():
    result = discover_archive(Part("AGENTS.md", mode=0o120777), Part("OPAL.md"))
    assert rules(result) == {"AGENTS.md": "link"}
    assert result.list_missing_paths(["AGENTS.md", "OPAL.md"]) == []
    assert (result.seen_count, result.read_count) == (2, 1)


def test_a_refused_file_in_a_skills_folder_is_shown():
    script = ".agents/skills/a-b/scripts/run.py"
    assert rules(discover_archive(Part(SKILL), Part(script, flags=1))) == {script: "encrypted"}


def test_a_refused_skill_still_owns_its_folder():
    result = discover_archive(Part("x"), Part(SKILL, flags=1), Part(".agents/skills/a-b/run.py"))
    assert rules(result) == {SKILL: "encrypted", ".": "unnamed"}
    assert "1 of the 3 files" in result.refusals[-1].reason


def test_refused_files_that_no_rule_names_are_in_the_line():
    result = discover_archive(Part("AGENTS.md"), Part("a.png", bytes(300 * 1024)), Part("b.py"), Part("B.py"))
    (line,) = result.refusals
    assert line.rule == "unnamed"
    assert "3 of the 4 files, for example B.py" in line.reason
    assert line.reason.endswith(" 3 of them were rejected, for example B.py.")


def test_a_path_that_leads_out_is_always_shown():
    result = discover_archive(Part("../x"), Part("a\nb"), Part(""), Part("a\\b"), Part("OPAL.md"))
    assert rules(result) == {"../x": "outside", "a\\nb": "name", "(no name)": "name", "a\\b": "path"}
    assert paths(result) == ["OPAL.md"]


def test_an_archive_that_cannot_be_read_leaves_nothing_gone():
    bundle = read_zip(b"no archive")
    result = discover_pushed_files(dict(bundle.files), [OPAL], refusals=bundle.refusals)
    assert rules(result) == {".": "not-zip"}
    assert not result.is_complete
    assert result.list_missing_paths(["AGENTS.md"]) == []


def test_paths_that_were_never_checked_are_checked():
    result = pushed("../AGENTS.md", "/AGENTS.md", "a/../AGENTS.md", "AGENTS.md\n", ".", "OPAL.md")
    assert paths(result) == ["OPAL.md"]
    assert set(rules(result).values()) == {"outside", "name", "path"}
    assert "." not in rules(result)
    assert all(refusal.path.isprintable() for refusal in result.refusals)


# --- caps ----------------------------------------------------------------------------------------------


def test_folders_share_the_number_of_files_that_are_allowed():
    result = pushed("AGENTS.md", "OPAL.md", "a/AGENTS.md", caps=DiscoveryCaps(files=2))
    assert paths(result) == ["AGENTS.md", "a/AGENTS.md"]
    assert rules(result) == {".": "files"}
    assert not result.is_complete


def test_unnamed_files_do_not_count_against_the_files():
    result = pushed("AGENTS.md", *[f"{at}.py" for at in range(9)], caps=DiscoveryCaps(files=2))
    assert paths(result) == ["AGENTS.md"]
    assert result.is_complete


def test_more_names_than_allowed_stop_the_search():
    result = pushed("AGENTS.md", "OPAL.md", caps=DiscoveryCaps(entries=1))
    assert (paths(result), rules(result), result.is_complete) == ([], {".": "entries"}, False)


def test_sizes_are_bounded_as_on_disk():
    files = {"AGENTS.md": b"x" * 60, "OPAL.md": b"x" * 50, "a/AGENTS.md": b"x" * 70, "b/AGENTS.md": b"x" * 40}
    result = discover_pushed_files(files, [OPAL], caps=DiscoveryCaps(file_bytes=60, total_bytes=100))
    assert paths(result) == ["AGENTS.md", "b/AGENTS.md"]
    assert rules(result) == {"OPAL.md": "total", "a/AGENTS.md": "size"}


def test_a_harness_lowers_the_caps():
    small = replace(OPAL, caps=DiscoveryCaps(file_bytes=5))
    assert rules(pushed("AGENTS.md", harnesses=[small, MOLTIS])) == {"AGENTS.md": "size"}


def test_what_lies_too_deep_is_refused_with_its_folder():
    deep = "/".join("d" * 21)
    result = pushed("/".join("d" * 20) + "/AGENTS.md", f"{deep}/AGENTS.md", f"{deep}/e/OPAL.md")
    assert paths(result) == ["/".join("d" * 20) + "/AGENTS.md"]
    assert rules(result) == {deep: "depth"}
    assert result.list_missing_paths([f"{deep}/AGENTS.md"]) == []


def test_depth_is_no_matter_to_what_no_rule_names():
    (line,) = pushed("AGENTS.md", "/".join("d" * 40) + "/x.js").refusals
    assert line.rule == "unnamed"


def test_a_skill_of_the_deepest_working_directory_is_found():
    path = "/".join("d" * 20) + f"/{SKILL}"
    assert paths(pushed(path)) == [path]


def test_a_folder_named_like_a_file_is_refused():
    result = pushed("AGENTS.md/x.md", "AGENTS.md/AGENTS.md", "OPAL.md")
    assert paths(result) == ["OPAL.md"]
    assert rules(result) == {"AGENTS.md": "folder"}


def test_the_same_path_has_one_kind_for_all_harnesses_together():
    result = pushed("AGENTS.md", ".claude/rules/x.md", "SOUL.md", harnesses=[OPENCLAW, CLAUDE_CODE, OPAL])
    assert {file.path: file.kind for file in result.files} == {
        "AGENTS.md": "workspace",
        ".claude/rules/x.md": "context",
        "SOUL.md": "persona",
    }
