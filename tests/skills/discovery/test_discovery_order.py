"""Paths and order of each harness: one test per row of the tables in the seeds."""

from dataclasses import replace

import pytest

from skills.discovery import list_applicable_files
from skills.discovery.harnesses import (
    CLAUDE_CODE,
    HARNESSES,
    MOLTIS,
    OPAL,
    OPENCLAW,
    PI,
    PLAIN,
    DiscoveryRule,
)
from tests.skills.discovery.discovery_stage import Stage

SIX = ["AGENTS.md", ".agents/AGENTS.md", ".opal/AGENTS.md", "OPAL.md", ".agents/OPAL.md", ".opal/OPAL.md"]


@pytest.fixture
def stage(tmp_path):
    return Stage(tmp_path)


def files(result) -> list[str]:
    return [file.path for file in result.files]


def skills(result) -> list[str]:
    return [file.path for file in result.skills]


def kinds(result) -> dict[str, str]:
    return {file.path: file.kind for file in (*result.files, *result.skills)}


# --- opal ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SIX)
def test_opal_reads_each_of_its_six_variants(stage, name):
    (stage.inside / "OPAL.md").unlink()
    stage.write(name)
    assert files(stage.up()) == [name]


def test_opal_keeps_the_order_of_its_variants(stage):
    stage.write(*SIX)
    assert files(stage.up()) == SIX


def test_opal_puts_files_nearer_to_the_root_first(stage):
    stage.write("a/b/AGENTS.md", "AGENTS.md", "a/OPAL.md", "a/.opal/AGENTS.md")
    assert files(stage.up("a/b")) == [
        "AGENTS.md",
        "OPAL.md",
        "a/.opal/AGENTS.md",
        "a/OPAL.md",
        "a/b/AGENTS.md",
    ]


def test_opal_reads_neither_below_nor_next_to_the_working_directory(stage):
    stage.write("a/AGENTS.md", "a/below/AGENTS.md", "beside/AGENTS.md")
    assert files(stage.up("a")) == ["OPAL.md", "a/AGENTS.md"]


@pytest.mark.parametrize(
    ("name", "is_found"),
    [
        ("work/.agents/skills/x/SKILL.md", True),
        ("work/.github/skills/x/SKILL.md", True),
        (".agents/skills/x/SKILL.md", False),
        ("home/.agents/skills/x/SKILL.md", True),
        ("home/.opal/skills/x/SKILL.md", True),
        ("home/.github/skills/x/SKILL.md", False),
        ("shared/skills/x/SKILL.md", True),
    ],
)
def test_opal_reads_skills_of_the_project_the_user_and_extra_folders(stage, name, is_found):
    stage.write(name, "work/x")
    harness = replace(OPAL, global_folder="home", extra_skill_folders=("shared/skills",))
    assert skills(stage.up("work", harness)) == ([name] if is_found else [])


def test_opal_puts_the_first_location_of_a_skill_first(stage):
    names = [
        *("work/.agents/skills/x/SKILL.md", "work/.github/skills/x/SKILL.md"),
        *("home/.agents/skills/x/SKILL.md", "home/.opal/skills/x/SKILL.md", "extra/x/SKILL.md"),
    ]
    stage.write(*reversed(names))
    harness = replace(OPAL, global_folder="home", extra_skill_folders=("extra",))
    assert skills(stage.up("work", harness)) == names


def test_skills_come_in_the_order_of_their_names(stage):
    stage.write(*(f".agents/skills/{name}/SKILL.md" for name in ("b", "a", "c")))
    assert skills(stage.up()) == [f".agents/skills/{name}/SKILL.md" for name in "abc"]


@pytest.mark.parametrize(("off", "expected"), [("context", (0, 1)), ("skill", (1, 0))])
def test_opal_leaves_out_what_is_switched_off(stage, off, expected):
    stage.write(".agents/skills/x/SKILL.md")
    harness = replace(OPAL, off=(off,))
    for result in (stage.up("", harness), stage.tree(harness)):
        assert (len(result.files), len(result.skills)) == expected


def test_opal_takes_other_file_names_from_a_workspace(stage):
    stage.write("HOUSE.md")
    assert files(stage.up("", replace(OPAL, rules=(DiscoveryRule("context", ("HOUSE.md",)),)))) == [
        "HOUSE.md"
    ]


# --- pi ------------------------------------------------------------------------------------------------


def test_pi_puts_the_global_file_first_then_ancestors_then_the_working_directory(stage):
    stage.write("home/.sf/agent/AGENTS.md", "AGENTS.md", "a/CLAUDE.md", "a/b/AGENTS.md")
    result = stage.up("a/b", replace(PI, global_folder="home"))
    assert files(result) == ["home/.sf/agent/AGENTS.md", "AGENTS.md", "a/CLAUDE.md", "a/b/AGENTS.md"]


def test_pi_skips_claude_where_agents_is(stage):
    stage.write("AGENTS.md", "CLAUDE.md", "a/CLAUDE.md")
    assert files(stage.up("a", PI)) == ["AGENTS.md", "a/CLAUDE.md"]


def test_pi_skips_claude_even_where_agents_is_refused(stage):
    stage.link("AGENTS.md", stage.outside / "secret.md")
    stage.write("CLAUDE.md")
    result = stage.up("", PI)
    assert (files(result), [refusal.path for refusal in result.refusals]) == ([], ["AGENTS.md"])


@pytest.mark.parametrize(("name", "kind"), [("SYSTEM.md", "base"), ("APPEND_SYSTEM.md", "append")])
def test_pi_prefers_the_projects_base_to_the_global_one(stage, name, kind):
    stage.write(f"a/.sf/{name}", f"home/.sf/agent/{name}", "b/x")
    harness = replace(PI, global_folder="home")
    assert kinds(stage.up("a", harness)) == {f"a/.sf/{name}": kind}
    assert kinds(stage.up("b", harness)) == {f"home/.sf/agent/{name}": kind}


@pytest.mark.parametrize("name", ["SYSTEM.md", "APPEND_SYSTEM.md"])
def test_pi_never_reads_its_base_from_parents(stage, name):
    stage.write(f".sf/{name}", f"a/.sf/{name}", "a/b/x")
    assert files(stage.up("a/b", PI)) == []


def test_pi_uses_the_global_base_when_the_projects_folder_is_refused(stage):
    stage.link("a/.sf", stage.outside)
    stage.write("home/.sf/agent/SYSTEM.md")
    result = stage.up("a", replace(PI, global_folder="home"))
    assert files(result) == ["home/.sf/agent/SYSTEM.md"]
    assert [(refusal.path, refusal.rule) for refusal in result.refusals] == [("a/.sf", "link-out")]


# --- moltis --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["CLAUDE.md", "CLAUDE.local.md", ".claude/rules/tests.md", "AGENTS.md"])
def test_moltis_collects_its_four_on_the_way_up(stage, name):
    stage.write(name, f"a/{name}")
    assert files(stage.up("a", MOLTIS)) == [name, f"a/{name}"]


def test_moltis_merges_outermost_first(stage):
    names = ["CLAUDE.md", "CLAUDE.local.md", ".claude/rules/a.md", ".claude/rules/b.md", "AGENTS.md"]
    stage.write(*reversed(names), *(f"a/{name}" for name in names))
    assert files(stage.up("a", MOLTIS)) == [*names, *(f"a/{name}" for name in names)]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *(("IDENTITY.md", "persona"), ("SOUL.md", "persona"), ("USER.md", "persona")),
        *(("AGENTS.md", "workspace"), ("TOOLS.md", "workspace")),
    ],
)
def test_moltis_reads_persona_and_workspace_from_its_data_folder_only(stage, name, kind):
    stage.write(f"home/.moltis/{name}", "work/x")
    assert kinds(stage.up("work", replace(MOLTIS, global_folder="home"))) == {f"home/.moltis/{name}": kind}
    assert files(stage.up("work", MOLTIS)) == []


# --- the others ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["IDENTITY.md", "SOUL.md", "USER.md", "AGENTS.md", "TOOLS.md"])
def test_openclaw_prefers_the_working_directory_to_its_usual_workspace(stage, name):
    stage.write(f"work/{name}", f".openclaw/workspace/{name}", "other/x", name)
    assert files(stage.up("work", OPENCLAW)) == [f"work/{name}"]
    assert files(stage.up("other", OPENCLAW)) == [f".openclaw/workspace/{name}"]


def test_openclaw_puts_skills_of_the_workspace_first(stage):
    names = [
        *("work/skills/x/SKILL.md", "work/.agents/skills/x/SKILL.md"),
        *(".agents/skills/x/SKILL.md", ".openclaw/skills/x/SKILL.md"),
    ]
    stage.write(*names)
    assert skills(stage.up("work", OPENCLAW)) == names


def test_claude_code_reads_the_users_files_first_and_personal_skills_win(stage):
    harness = replace(CLAUDE_CODE, global_folder="home")
    names = ["home/.claude/CLAUDE.md", "home/.claude/rules/a.md", "CLAUDE.md", ".claude/CLAUDE.md"]
    names += [".claude/rules/a.md", "CLAUDE.local.md", "a/CLAUDE.md"]
    own = ["home/.claude/skills/x/SKILL.md", "a/.claude/skills/x/SKILL.md"]
    stage.write(*names, *own)
    result = stage.up("a", harness)
    assert (files(result), skills(result)) == (names, own)


def test_plain_reads_agents_and_the_standard_skills(stage):
    stage.write("AGENTS.md", "CLAUDE.md", ".agents/skills/x/SKILL.md")
    result = stage.up("", PLAIN)
    assert (files(result), skills(result)) == (["AGENTS.md"], [".agents/skills/x/SKILL.md"])


# --- a whole source ------------------------------------------------------------------------------------

EVERYTHING = [
    *(*SIX, "CLAUDE.md", "CLAUDE.local.md", ".claude/rules/a.md", ".claude/CLAUDE.md", ".sf/SYSTEM.md"),
    *(".sf/APPEND_SYSTEM.md", ".sf/agent/AGENTS.md", ".sf/agent/SYSTEM.md", ".moltis/SOUL.md", "SOUL.md"),
    *(".moltis/AGENTS.md", "TOOLS.md", "skills/s/SKILL.md", ".claude/skills/s/SKILL.md", "notes.md"),
    *(".agents/skills/s/SKILL.md", ".github/skills/s/SKILL.md", ".opal/skills/s/SKILL.md"),
]


@pytest.mark.parametrize("harness", HARNESSES.values(), ids=HARNESSES)
@pytest.mark.parametrize("working_directory", ["", "a", "a/b", "home"])
def test_what_a_tree_holds_is_enough_to_know_what_an_agent_reads(stage, harness, working_directory):
    """A refresh searches the source once; the files of each agent are selected from stored paths."""
    stage.write(*(f"{folder}{name}" for folder in ("", "a/", "a/b/", "home/", "c/") for name in EVERYTHING))
    harness = replace(harness, global_folder="home", extra_skill_folders=("c/skills",))
    up, tree = stage.up(working_directory, harness), stage.tree(*HARNESSES.values(), harness)
    stored = {file.path for file in (*tree.files, *tree.skills)}
    chosen = list_applicable_files(harness, working_directory, stored)
    assert [path for kind, path in chosen if kind != "skill"] == files(up)
    assert [path for kind, path in chosen if kind == "skill"] == skills(up)
    assert {path: kind for kind, path in chosen} == kinds(up)
