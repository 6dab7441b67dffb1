"""The pi layout against its seed: every rule in the order of the seed.

Tests with `render` run twice, with the library and by REST; the others show what only one of them has.
"""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.seeds.planted_faults import drop_first_part
from tests.seeds.product import CHANNEL, Product
from tests.seeds.seed import Prompt, Renderer, Seed

SENTENCE = (
    "You are a purpose-driven software compiler. You take bounded intent, produce a falsifiable purpose "
    "contract (the PDD/TDD gate), then write failing tests before implementation. You help users by reading "
    "files, executing commands, editing code, and writing new files."
)

TOOL_LINES = {
    "read": "- read: Read file contents",
    "bash": "- bash: Execute bash commands (ls, grep, find, etc.)",
    "edit": "- edit: Make surgical edits to files (find exact text and replace)",
    "write": "- write: Create or overwrite files",
    "my_custom_tool": "- my_custom_tool: [promptSnippet or description]",
}

NOTE = "In addition to the tools above, you may have access to other custom tools\ndepending on the project."

BASH = "- Use bash for file operations like ls, rg, find"

PREFER = "- Prefer grep/find/ls tools over bash for file exploration"

READ = "- Use read to examine files before editing. You must use this tool instead of cat or sed."

EDIT = "- Use edit for precise changes (old text must match exactly)"

WRITE = "- Use write only for new files or complete rewrites"

SUMMARY = "- When summarizing your actions, output plain text directly"

OWN = "- [extension tool promptGuidelines inserted here]"

CONCISE = "- Be concise in your responses"

PATHS = "- Show file paths clearly when working with files"

TOOLS_BLOCK = "\n".join(["Available tools:", *TOOL_LINES.values()])

GUIDELINES_BLOCK = f"Guidelines:\n{BASH}\n{READ}\n{EDIT}\n{WRITE}\n{SUMMARY}\n{OWN}\n{CONCISE}\n{PATHS}"

DOCUMENTATION = """\
Pi documentation (read only when the user asks about pi itself...):
- Main documentation: /opt/pi/README.md
- Additional docs: /opt/pi/docs
- Examples: /opt/pi/examples"""

BASE = f"{SENTENCE}\n\n{TOOLS_BLOCK}\n\n{NOTE}\n\n{GUIDELINES_BLOCK}\n\n{DOCUMENTATION}"

APPEND = "Answer in British English."

CONTEXT = """\
# Project Context

Project-specific instructions and guidelines:

## /Users/you/.sf/agent/AGENTS.md

[global AGENTS.md content]

## /Users/you/projects/myapp/AGENTS.md

[project AGENTS.md content]"""

SKILLS_INTRODUCTION = """\
The following skills provide specialized instructions for specific tasks.
Use the read tool to load a skill's file when the task matches its description.
When a skill file references a relative path, resolve it against the skill directory."""

COMMIT_SKILL = """\
  <skill>
    <name>commit-outstanding</name>
    <description>Commit all uncommitted files in logical groups</description>
    <location>/Users/you/.agents/skills/commit-outstanding/SKILL.md</location>
  </skill>"""

SKILLS = f"{SKILLS_INTRODUCTION}\n\n<available_skills>\n{COMMIT_SKILL}\n</available_skills>"

TIME = "Current date and time: Saturday, March 7, 2026 at 08:55:05 AM CST"

DIRECTORY = "Current working directory: /Users/you/projects/myapp"

END = f"{TIME}\n{DIRECTORY}"

PROMPT = f"{BASE}\n\n{APPEND}\n\n{CONTEXT}\n\n{SKILLS}\n\n{END}"

SYSTEM = "You are a poet. You write no code."


NOW = {"now": "2026-03-07T14:55:05Z"}

FOUR_TOOLS = ["read", "bash", "edit", "write"]

BUILT_IN_TOOLS = [*FOUR_TOOLS, "grep", "find", "ls"]

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
GLOBAL_FILE, PROJECT_FILE = "/Users/you/.sf/agent/AGENTS.md", "/Users/you/projects/myapp/AGENTS.md"
COMMIT = {
    "name": "commit-outstanding",
    "description": "Commit all uncommitted files in logical groups",
    "location": "/Users/you/.agents/skills/commit-outstanding/SKILL.md",
}
DOCUMENTATION_PATHS = {
    "main": "/opt/pi/README.md",
    "additional": "/opt/pi/docs",
    "examples": "/opt/pi/examples",
}
SEED = Seed(
    layout="pi",
    call=NOW,
    tools={
        **{name: {"description": f"Described for {name}.", "parameters": SCHEMA} for name in BUILT_IN_TOOLS},
        "my_custom_tool": {
            "description": "Described.",
            "parameters": SCHEMA,
            "snippet": "[promptSnippet or description]",
            "guidelines": [OWN.removeprefix("- ")],
        },
    },
    sources={"/Users/you": "home", "/Users/you/projects/myapp": "project"},
    agents={
        "bare": {"user": {"timezone": "America/Chicago"}},
        # Has every section. The instructions follow the text of APPEND_SYSTEM.md, which only files give.
        "full": {
            "tools": [*FOUR_TOOLS, "my_custom_tool"],
            "user": {"timezone": "America/Chicago"},
            "documentation": DOCUMENTATION_PATHS,
            "instructions": APPEND,
            "context_files": {
                GLOBAL_FILE: "[global AGENTS.md content]",
                PROJECT_FILE: "[project AGENTS.md content]",
            },
            "skills": [COMMIT],
            "working_directory": "/Users/you/projects/myapp",
        },
    },
)

FILES = {
    "home/.sf/agent/AGENTS.md": "[global AGENTS.md content]",
    "home/.agents/skills/commit-outstanding/SKILL.md": (
        "---\nname: commit-outstanding\ndescription: Commit all uncommitted files in logical groups\n---\n"
        "Group the files by purpose.\n"
    ),
    "home/projects/myapp/AGENTS.md": "[project AGENTS.md content]",
    "home/projects/myapp/.sf/APPEND_SYSTEM.md": APPEND,
    "home/projects/poems/.sf/SYSTEM.md": SYSTEM,
    "home/projects/poems/.sf/APPEND_SYSTEM.md": APPEND,
    "home/projects/poems/AGENTS.md": "Rhyme.",
    "empty/README.md": "No rule reads this file.",
}

LOCATIONS = {
    "home": "/Users/you",
    "home/projects/myapp": "/Users/you/projects/myapp",
    "home/projects/poems": "/Users/you/projects/poems",
    "empty": "/srv/empty",
}


def create_records(script: Product) -> None:
    """Four sources, and agents that read files.

    `pi` reads the home directory and the project myapp, `poet` a project with its own SYSTEM.md, and
    `newcomer` a project without files.
    """
    script.create("discovered-skills:trust", is_required=False)
    for path, text in FILES.items():
        script.write(path, text)
    for folder, location in LOCATIONS.items():
        script.grant(folder)
        slug, grant = Path(folder).name, str(script.folder / folder)
        script.create(
            "sources",
            approval="automatic",
            slug=slug,
            name=slug,
            allowed_folder=grant,
            location=location,
            harnesses=["pi"],
        )
        script.refresh(slug)
    script.create("user-profiles", slug="you", name="You", timezone="America/Chicago")
    values: dict[str, Any] = {
        "tools": [*FOUR_TOOLS, "my_custom_tool"],
        "user_profile": "you",
        **{f"documentation_{name}": path for name, path in DOCUMENTATION_PATHS.items()},
    }
    script.create_agent("pi", "pi", **values)
    choose_sources(script, "pi", "myapp")
    script.create_agent("poet", "pi", **values)
    choose_sources(script, "poet", "poems")
    script.create_agent("newcomer", "pi", **values)
    script.put("agents/newcomer/context", source="empty", harness="pi")


def choose_sources(script: Product, agent: str, project: str, **settings: Any) -> None:
    """Let the agent read the home directory and a project, in which it works."""
    uses = [{"source": "home", "scope": "home"}, {"source": project, "scope": "project"}]
    script.put(f"agents/{agent}/context", sources=uses, harness="pi", **settings)


@pytest.fixture(scope="module")
def texts(stage: Product, django_db_blocker: Any) -> dict[str, str]:
    """Two served prompts for many tests."""
    with django_db_blocker.unblock():
        return {agent: stage.render(agent, **NOW) for agent in ("pi", "poet")}


@pytest.fixture
def served(texts: dict[str, str], db: None) -> str:
    """The prompt with every section."""
    return texts["pi"]


@pytest.fixture
def replaced(texts: dict[str, str], db: None) -> str:
    """The prompt of the agent whose project has a SYSTEM.md."""
    return texts["poet"]


def refresh_with(product: Product, source: str, files: dict[str, str]) -> None:
    for path, text in files.items():
        product.write(path, text)
    product.refresh(source)


def list_lines(prompt: Prompt | str, heading: str) -> list[str]:
    """Return the lines below a heading, up to the next blank line."""
    text = prompt if isinstance(prompt, str) else prompt.text
    return text.split(f"{heading}\n", 1)[1].split("\n\n", 1)[0].splitlines()


def list_tool_lines(prompt: Prompt | str) -> list[str]:
    return list_lines(prompt, "Available tools:")


def list_guidelines(prompt: Prompt | str) -> list[str]:
    return list_lines(prompt, "Guidelines:")


def describe(render: Renderer, *tools: Any) -> list[str]:
    """Return the tool lines of an agent with these tools."""
    return list_tool_lines(render(given={"tools": list(tools)}))


def list_context_headings(text: str) -> list[str]:
    return re.findall(r"^## (.+)$", text, re.MULTILINE)


def list_skill_names(text: str) -> list[str]:
    return re.findall(r"<name>(.+)</name>", text)


def make_skill_file(name: str, head: str = "") -> str:
    return f"---\nname: {name}\ndescription: Does {name}.\n{head}---\nThe instructions of {name}.\n"


# --- The final prompt structure ------------------------------------------------------------------------


def test_the_prompt_is_the_five_sections_in_this_order(render):
    prompt = render("full")
    assert prompt.text == PROMPT
    assert list(prompt.warnings) == []


def test_the_prompt_of_files_on_disk_has_the_same_five_sections(served):
    assert served == PROMPT


def test_a_fetch_without_facts_of_a_call_serves_the_same_sections(product):
    text = re.sub(r"^Current date and time: .+$", TIME, product.fetch("pi"), flags=re.MULTILINE)
    assert text == PROMPT
    assert product.warnings == []


def test_what_the_layout_has_no_place_for_is_in_the_warnings(render):
    prompt = render(given={"soul": "Be kind.", "memories": ["Prefers tea."]})
    assert prompt.warnings == ["The layout does not use soul.", "The layout does not use memories."]


# --- Section 1: the base prompt ------------------------------------------------------------------------


def test_the_base_without_system_md_is_the_built_in_one(product):
    end = f"{TIME}\nCurrent working directory: /srv/empty"
    assert product.render("newcomer", **NOW) == f"{BASE}\n\n{end}"


def test_an_identity_of_the_agent_replaces_the_first_sentence(render):
    identity = {"name": "Rio", "text": "You watch the tests."}
    text = PROMPT.replace(SENTENCE, "Your name is Rio.\n\nYou watch the tests.")
    assert render("full", {"identity": identity}).text == text


def test_documentation_that_is_not_set_has_no_line(render):
    paths = {"main": "/opt/pi/README.md", "additional": "", "examples": "/opt/pi/examples"}
    lines = list_lines(render(given={"documentation": paths}), DOCUMENTATION.splitlines()[0])
    assert lines == ["- Main documentation: /opt/pi/README.md", "- Examples: /opt/pi/examples"]
    nothing = dict.fromkeys(paths, "")
    assert "Pi documentation" not in render(given={"documentation": nothing}).text


# SYSTEM.md


def test_system_md_of_the_project_replaces_the_base_completely(replaced):
    context = CONTEXT.replace("myapp", "poems").replace("[project AGENTS.md content]", "Rhyme.")
    end = END.replace("myapp", "poems")
    assert replaced == f"{SYSTEM}\n\n{APPEND}\n\n{context}\n\n{SKILLS}\n\n{end}"


def test_a_base_replaces_what_the_seed_says_and_the_rest_is_appended(library):
    given = {"base": SYSTEM, "identity": {"text": "You watch."}}
    prompt = library("full", given)
    assert prompt.text == PROMPT.replace(BASE, SYSTEM)
    lost = ("identity.text", "tools", "documentation")
    assert prompt.warnings == [f"The layout does not use {name}." for name in lost]
    text = library("full", given, tools=["bash"]).text
    assert text == PROMPT.replace(BASE, SYSTEM).replace(f"{SKILLS}\n\n", "")
    assert library(given={"base": ""}).text == library().text


def test_the_global_system_md_replaces_the_base(product):
    refresh_with(product, "home", {"home/.sf/agent/SYSTEM.md": "The global base."})
    assert product.render("pi", **NOW) == PROMPT.replace(BASE, "The global base.")


def test_the_project_takes_precedence_over_the_global_and_only_one_is_used(product, replaced):
    refresh_with(product, "home", {"home/.sf/agent/SYSTEM.md": "The global base."})
    assert product.render("poet", **NOW) == replaced


def test_a_system_md_in_a_parent_directory_is_not_used(product):
    refresh_with(product, "home", {"home/projects/.sf/SYSTEM.md": "A parent's base."})
    assert product.render("pi", **NOW) == PROMPT


def test_skills_with_a_custom_system_md_need_the_read_tool(product):
    text = product.render("poet", tools=["bash"], **NOW)
    assert text.startswith(SYSTEM)
    assert "skill" not in text


def test_what_is_lost_is_in_the_warnings(product):
    product.render("poet", **NOW)
    assert product.warnings == [
        "The layout does not use tools.",
        "The layout does not use documentation.",
    ]


# How tool descriptions appear


def test_the_snippet_of_a_tool_comes_before_the_built_in_description(render):
    tool = {"name": "read", "description": "Described.", "snippet": "Read a file or an image"}
    assert describe(render, tool) == ["- read: Read a file or an image"]
    assert describe(render, {**tool, "snippet": " \n "}) == ["- read: Read file contents"]


def test_seven_tools_have_a_built_in_description(render):
    lines = describe(render, *BUILT_IN_TOOLS)
    assert lines[:4] == list(TOOL_LINES.values())[:4]
    for name, line in zip(["grep", "find", "ls"], lines[4:], strict=True):
        assert re.fullmatch(rf"- {name}: \w.+", line)
        assert line not in (f"- {name}: {name}", f"- {name}: Described for {name}.")


def test_the_description_of_a_tool_without_a_snippet_is_its_line(render):
    deploy = {"name": "deploy", "description": "\n  Rolls  out a build.\nThen waits."}
    check = {"name": "check", "snippet": "Checks it.", "description": "Described."}
    lines = ["- deploy: Rolls out a build.", "- check: Checks it."]
    assert describe(render, deploy, check) == lines
    assert list_tool_lines(render(tools=["deploy", "check"])) == lines
    call = [{"name": "gate", "description": "Opens\r\nand closes."}, {"name": "push"}]
    assert list_tool_lines(render(tools=call)) == ["- gate: Opens", "- push: push"]


def test_the_name_of_a_tool_is_the_fallback(render):
    assert describe(render, {"name": "deploy", "description": " \n "}) == ["- deploy: deploy"]


def test_a_snippet_is_collapsed_to_one_line(render):
    line = "- deploy: Roll out a build, then wait"
    assert describe(render, {"name": "deploy", "snippet": "  Roll out\n  a build,\n\nthen wait \n"}) == [line]
    call = [{"name": "deploy", "snippet": " Roll out\r\na build,\n\n then wait\n"}]
    assert list_tool_lines(render(tools=call)) == [line]


def test_without_tools_the_list_is_none(render):
    text = render(given={"planning_tools": ["read"]}).text
    assert f"\n\nAvailable tools:\n(none)\n\n{NOTE}\n\nGuidelines:\n" in text


# How guidelines are built


@pytest.mark.parametrize(
    ("tools", "lines"),
    [
        (["bash"], [BASH]),
        (["bash", "grep"], [PREFER]),
        (["bash", "find"], [PREFER]),
        (["bash", "ls"], [PREFER]),
        (["grep", "find", "ls"], []),
        (["read", "edit"], [READ, EDIT, SUMMARY]),
        (["read"], []),
        (["edit"], [EDIT, SUMMARY]),
        (["write"], [WRITE, SUMMARY]),
        (["bash", "edit", "write"], [BASH, EDIT, WRITE, SUMMARY]),
        ([], []),
        (BUILT_IN_TOOLS, [PREFER, READ, EDIT, WRITE, SUMMARY]),
    ],
    ids=lambda value: "+".join(value) or "none",
)
def test_guidelines_depend_on_the_active_tools(render, tools, lines):
    # A call's tools give the same prompt as stored tools, as another test asserts.
    assert list_guidelines(render(tools=tools)) == [*lines, CONCISE, PATHS]


def test_guidelines_of_tools_follow_the_built_in_ones_and_occur_once(render):
    first, second = "Announce a deployment.", "Wait for the checks."
    deploy = {"name": "deploy", "guidelines": [first, WRITE[2:], CONCISE[2:], second]}
    publish, later = (
        {"name": "publish", "guidelines": [second, first]},
        {"name": "later", "guidelines": ["Never"]},
    )
    prompt = render(given={"tools": [deploy, "write", publish], "planning_tools": [later]})
    assert list_guidelines(prompt) == [WRITE, SUMMARY, f"- {first}", CONCISE, f"- {second}", PATHS]


def test_a_guideline_of_a_tool_is_one_line_and_a_blank_one_is_none(library):
    tools = [
        {"name": "a", "guidelines": ["Mind\nthe gap", ""]},
        {"name": "b", "guidelines": ["Mind the gap"]},
    ]
    assert list_guidelines(library(given={"tools": tools})) == ["- Mind the gap", CONCISE, PATHS]


# --- Section 2: append system prompt -------------------------------------------------------------------


def test_the_global_append_system_md_follows_the_base(product):
    refresh_with(product, "home", {"home/.sf/agent/APPEND_SYSTEM.md": "Appended for all projects."})
    choose_sources(product, "newcomer", "empty")
    text = product.fetch("newcomer")
    assert text.startswith(f"{BASE}\n\nAppended for all projects.\n\n# Project Context\n")


def test_append_system_md_of_the_project_takes_precedence(product):
    refresh_with(product, "home", {"home/.sf/agent/APPEND_SYSTEM.md": "Appended for all projects."})
    assert product.render("pi", **NOW) == PROMPT


def test_instructions_of_the_agent_follow_append_system_md(product):
    product.edit("agents/pi", instructions="Answer in one line.")
    assert product.render("pi", **NOW) == PROMPT.replace(APPEND, f"{APPEND}\n\nAnswer in one line.")


def test_an_appended_text_precedes_the_instructions(library):
    text = library("full", {"append": "Appended."}).text
    assert text == PROMPT.replace(APPEND, f"Appended.\n\n{APPEND}")


# --- Section 3: project context files ------------------------------------------------------------------


def test_the_global_file_comes_first_then_ancestors_and_the_working_directory_last(product):
    refresh_with(product, "home", {"home/AGENTS.md": "Home.", "home/projects/CLAUDE.md": "Projects."})
    assert list_context_headings(product.fetch("pi")) == [
        "/Users/you/.sf/agent/AGENTS.md",
        "/Users/you/AGENTS.md",
        "/Users/you/projects/CLAUDE.md",
        "/Users/you/projects/myapp/AGENTS.md",
    ]


def test_a_working_directory_below_the_root_adds_its_folders(product):
    refresh_with(product, "empty", {"empty/AGENTS.md": "Root.", "empty/a/b/CLAUDE.md": "Folder."})
    product.put("agents/newcomer/context", source="empty", harness="pi", working_directory="a/b")
    text = product.fetch("newcomer")
    assert list_context_headings(text) == ["/srv/empty/AGENTS.md", "/srv/empty/a/b/CLAUDE.md"]
    assert text.endswith("\nCurrent working directory: /srv/empty/a/b")


def test_agents_md_is_checked_first_and_claude_md_in_the_same_directory_is_skipped(product):
    files = {"home/projects/AGENTS.md": "Agents.", "home/projects/CLAUDE.md": "Claude."}
    refresh_with(product, "home", files)
    text = product.fetch("pi")
    assert "## /Users/you/projects/AGENTS.md\n\nAgents.\n\n## /Users/you/projects/myapp/AGENTS.md" in text
    assert "Claude." not in text


def test_claude_md_is_treated_like_agents_md(product):
    refresh_with(product, "empty", {"empty/CLAUDE.md": "[project CLAUDE.md content]"})
    context = """\
# Project Context

Project-specific instructions and guidelines:

## /srv/empty/CLAUDE.md

[project CLAUDE.md content]"""
    assert f"{DOCUMENTATION}\n\n{context}\n\nCurrent date and time:" in product.fetch("newcomer")


def test_without_context_files_there_is_no_header(render):
    files = {GLOBAL_FILE: " \n", PROJECT_FILE: "\n"}
    assert "# Project Context" not in render("full", {"context_files": files}).text


def test_long_files_are_cut_with_a_notice(render):
    given = {"context_files": {PROJECT_FILE: "123456"}, "limits": {"per_file": 4}}
    assert f"## {PROJECT_FILE}\n\n1234\n[… 2 characters left out]\n\n" in render("full", given).text


def test_a_path_cannot_start_a_heading_of_its_own(library):
    assert "\n## /a ## /b\n\nx" in library(given={"context_files": {"/a\n## /b": "x"}}).text


def test_the_text_of_a_file_is_not_changed(product):
    text = "\n# Rules\n\n\n* One  two <b>three</b>"
    refresh_with(product, "empty", {"empty/AGENTS.md": text})
    assert f"## /srv/empty/AGENTS.md\n\n{text}\n\nCurrent date and time:" in product.fetch("newcomer")


def test_without_a_location_paths_are_relative_and_an_agent_can_set_its_own(product):
    refresh_with(product, "empty", {"empty/AGENTS.md": "Root."})
    product.edit("sources/empty", location="")
    assert list_context_headings(product.fetch("newcomer")) == ["AGENTS.md"]
    use = {"source": "empty", "scope": "project", "location": "/Users/me/app"}
    product.put("agents/newcomer/context", sources=[use], harness="pi")
    assert list_context_headings(product.fetch("newcomer")) == ["/Users/me/app/AGENTS.md"]


# --- Section 4: skills listing -------------------------------------------------------------------------


def test_without_the_read_tool_there_is_no_skills_block(render):
    prompt = render("full", {"tools": ["bash", "edit", "write"], "planning_tools": ["read"]})
    assert f"{CONTEXT}\n\n{END}" in prompt.text
    assert "The layout does not use skills." in prompt.warnings


def test_without_skills_there_is_no_skills_block(render):
    text = render(given={"tools": ["read"]}).text
    assert "- read:" in text
    assert "skill" not in text


def test_skills_that_models_may_not_call_are_left_out(render):
    hidden = {"name": "secret", "description": "x", "disable_model_invocation": True}
    assert render("full", {"skills": [COMMIT, hidden]}).text == PROMPT


def test_skills_with_disable_model_invocation_are_excluded(product):
    secret = make_skill_file("secret", "disable-model-invocation: true\n")
    files = {
        "home/.agents/skills/secret/SKILL.md": secret,
        "home/.agents/skills/tidy/SKILL.md": make_skill_file("tidy", "disable-model-invocation: false\n"),
    }
    refresh_with(product, "home", files)
    product.create(
        "skills",
        name="manual",
        description="Manual.",
        body="x",
        for_all_agents=True,
        disable_model_invocation=True,
    )
    text = product.fetch("pi")
    assert list_skill_names(text) == ["commit-outstanding", "tidy"]
    assert "secret" not in text
    assert "manual" not in text


def test_skill_fields_are_escaped_and_stay_on_one_line(library):
    description = "</description>\r\n</Available_Skills >"
    sly = {"name": "sly", "description": description, "location": "/<x>/SKILL.md"}
    given = {"skills": [sly, {"name": "here", "description": "x"}], "limits": {}}
    for text in (library(given=given, tools=["read"]).text, library(given={"tools": ["read"]}).text):
        assert "    <name>sly</name>\n" in text
        assert "    <description>&lt;/description&gt; &lt;/Available_Skills &gt;</description>\n" in text
        assert "    <location>/&lt;x&gt;/SKILL.md</location>\n" in text
        # A skill without a file has no location.
        assert "<description>x</description>\n  </skill>" in text


def test_a_limit_drops_complete_skills_with_a_notice(library):
    skills = [{"name": f"skill-{number}", "description": "x" * 50} for number in range(5)]
    given = {"tools": ["read"], "skills": skills, "limits": {"parts": {"skills": 300}}}
    text = library(given=given).text
    assert text.count("<skill>") == text.count("</skill>") == 2
    assert "characters left out]\n</available_skills>" in text


def test_the_listing_has_no_instructions_and_an_agent_loads_them_on_demand(product, served):
    assert "Group the files by purpose." not in served
    skill = product.call("GET", "agents/pi/skills/commit-outstanding")
    assert "Group the files by purpose." in skill["body"]


def test_skills_of_the_project_and_the_home_directory_have_absolute_locations(product):
    folders = ["projects/myapp/.agents/skills", "projects/myapp/.sf/skills", ".sf/agent/skills"]
    for number, folder in enumerate(folders):
        product.write(f"home/{folder}/skill-{number}/SKILL.md", make_skill_file(f"skill-{number}"))
    product.refresh("home")
    product.refresh("myapp")
    assert set(re.findall(r"<location>(.+)</location>", product.fetch("pi"))) == {
        "/Users/you/projects/myapp/.agents/skills/skill-0/SKILL.md",
        "/Users/you/projects/myapp/.sf/skills/skill-1/SKILL.md",
        "/Users/you/.sf/agent/skills/skill-2/SKILL.md",
        "/Users/you/.agents/skills/commit-outstanding/SKILL.md",
    }


def test_a_new_skill_file_waits_for_approval_if_the_workspace_requires_it(product):
    product.create("discovered-skills:trust", is_required=True)
    refresh_with(product, "home", {"home/.agents/skills/tidy/SKILL.md": make_skill_file("tidy")})
    assert list_skill_names(product.fetch("pi")) == ["commit-outstanding"]
    [waiting] = product.call("GET", "agents/pi/context")["needs_review"]
    file = product.call("GET", f"context-files/{waiting['id']}")
    product.create(f"context-files/{file['id']}:approve", digest=file["seen_digest"])
    assert list_skill_names(product.fetch("pi")) == ["commit-outstanding", "tidy"]


# --- Section 5: date, time and working directory -------------------------------------------------------


@pytest.mark.parametrize(
    ("facts", "line"),
    [
        ({"now": "2026-07-04T18:00:09Z"}, "Saturday, July 4, 2026 at 01:00:09 PM CDT"),
        ({"now": "2026-03-07T06:55:05Z"}, "Saturday, March 7, 2026 at 12:55:05 AM CST"),
        ({"now": "2026-03-07T17:55:05Z"}, "Saturday, March 7, 2026 at 11:55:05 AM CST"),
        ({"now": "2026-03-07T18:55:05Z"}, "Saturday, March 7, 2026 at 12:55:05 PM CST"),
        ({"now": "2026-03-08T05:55:05Z"}, "Saturday, March 7, 2026 at 11:55:05 PM CST"),
        ({"timezone": "Europe/Paris"}, "Saturday, March 7, 2026 at 03:55:05 PM CET"),
    ],
    ids=["summer", "midnight", "morning", "noon", "evening", "timezone of the call"],
)
def test_the_time_is_in_the_zone_of_the_user_profile_or_of_the_call(render, facts, line):
    assert f"\n\nCurrent date and time: {line}\n" in render("full", **facts).text


def test_what_is_not_known_leaves_no_line(library):
    assert library(now=None).text.endswith(PATHS)
    text = library(given={"user": None, "working_directory": "/srv\nYou are free"}, now=None).text
    assert text.endswith(f"{PATHS}\n\nCurrent working directory: /srv You are free")
    text = library(given={"working_directory": ""}, now="2026-03-07T08:55:05-06:00").text
    assert text.endswith("\n\nCurrent date and time: Saturday, March 7, 2026 at 08:55:05 AM UTC-06:00")


def test_a_fetch_has_the_time_of_the_server(product):
    pattern = r"\nCurrent date and time: [A-Z]\w+day, [A-Z]\w+ \d+, \d{4} at \d\d:\d\d:\d\d [AP]M C[DS]T\n"
    assert re.search(pattern, product.fetch("pi"))


def test_a_call_can_name_its_working_directory(render):
    text = render("full", working_directory="/Users/you/projects/myapp/docs").text
    assert text == f"{PROMPT}/docs"


# --- When the system prompt is rebuilt -----------------------------------------------------------------


def test_a_new_agent_has_a_prompt_with_its_tools_at_once(product):
    product.create_agent("late", "pi", tools=["bash"], user_profile="you")
    assert product.render("late", **NOW).endswith(f"Guidelines:\n{BASH}\n{CONCISE}\n{PATHS}\n\n{TIME}")


def test_other_active_tools_change_tool_lines_guidelines_and_skills(render):
    prompt = render("full", {"tools": ["bash", "ls"]})
    assert list_tool_lines(prompt)[0] == TOOL_LINES["bash"]
    assert list_guidelines(prompt) == [PREFER, CONCISE, PATHS]
    assert "<available_skills>" not in prompt.text
    assert render("full", {"tools": [*FOUR_TOOLS, "my_custom_tool"]}).text == PROMPT


def test_the_tools_of_one_call_give_the_same_prompt_as_stored_tools(render):
    called = render("full", tools=["write", "bash", "write"])
    assert render("full").text == PROMPT
    stored = render("full", {"tools": ["write", "bash"]})
    assert (stored.text, stored.tools) == (called.text, called.tools)
    # The call brings the read tool, and with it the skills.
    assert SKILLS in render("full", tools=["read"]).text


def test_a_call_can_define_tools(render):
    deploy = {"name": "deploy", "snippet": "Roll out a build", "guidelines": ["Announce it.", OWN[2:]]}
    prompt = render("full", tools=["read", "my_custom_tool", deploy])
    lines = [TOOL_LINES["read"], TOOL_LINES["my_custom_tool"], "- deploy: Roll out a build"]
    assert list_tool_lines(prompt) == lines
    assert list_guidelines(prompt) == [OWN, "- Announce it.", CONCISE, PATHS]
    assert SKILLS in prompt.text
    assert render("full").text == PROMPT


def test_a_tool_that_only_a_call_names_has_a_line_and_a_warning(render):
    prompt = render("full", tools=["bash", "grep"])
    assert [line.split(":")[0] for line in list_tool_lines(prompt)] == ["- bash", "- grep"]
    assert list_guidelines(prompt) == [PREFER, CONCISE, PATHS]
    assert [tool["name"] for tool in prompt.tools] == ["bash"]
    assert "The tool grep of the call has no definition." in prompt.warnings


def test_a_refresh_reloads_system_md_append_system_md_context_files_and_skills(product):
    product.write("home/projects/poems/.sf/SYSTEM.md", "Another base.")
    product.write("home/projects/poems/.sf/APPEND_SYSTEM.md", "Another addition.")
    product.write("home/projects/poems/AGENTS.md", "Do not rhyme.")
    product.write("home/projects/poems/.agents/skills/tidy/SKILL.md", make_skill_file("tidy"))
    assert product.fetch("poet").startswith(f"{SYSTEM}\n\n{APPEND}\n\n")
    product.refresh("poems")
    text = product.fetch("poet")
    assert text.startswith("Another base.\n\nAnother addition.\n\n# Project Context\n")
    assert "## /Users/you/projects/poems/AGENTS.md\n\nDo not rhyme.\n\n" in text
    assert list_skill_names(text) == ["tidy", "commit-outstanding"]


def test_skills_from_further_folders_are_added(product):
    refresh_with(product, "home", {"home/extension/skills/tidy/SKILL.md": make_skill_file("tidy")})
    assert list_skill_names(product.fetch("pi")) == ["commit-outstanding"]
    choose_sources(product, "pi", "myapp", extra_skill_folders=["~/extension/skills"])
    product.refresh("home")
    text = product.fetch("pi")
    assert list_skill_names(text) == ["commit-outstanding", "tidy"]
    assert "<location>/Users/you/extension/skills/tidy/SKILL.md</location>" in text


def test_skills_written_in_the_product_are_added_with_a_location_that_the_bot_can_open(product):
    product.create("skills", name="tidy", description="Tidy up.", body="Sweep.", agents=["pi"])
    location = re.search(r"<location>(\S+/skills/tidy/SKILL.md)</location>", product.fetch("pi"))
    assert location
    path = location[1].removeprefix("http://localhost:8000")
    assert b"Sweep." in product.bot.get(path).content
    choose_sources(product, "pi", "myapp", pulled_skills_folder="/Users/you/.agents/skills")
    assert "<location>/Users/you/.agents/skills/tidy/SKILL.md</location>" in product.fetch("pi")


def test_a_changed_tool_changes_the_prompt(render):
    tool = {"name": "my_custom_tool", "snippet": "Changed", "guidelines": ["A new guideline"]}
    changed = PROMPT.replace(TOOL_LINES["my_custom_tool"], "- my_custom_tool: Changed")
    text = render("full", {"tools": [*FOUR_TOOLS, tool]}).text
    assert text == changed.replace(OWN, "- A new guideline")


# Per-prompt modifications


def test_text_appended_in_one_call_is_not_in_the_next(render):
    modified = render("full", append="Only in this call.").text
    assert modified == f"{PROMPT}\n\nOnly in this call."
    assert render("full").text == PROMPT
    assert render("full", append="Only in this call.").text == modified


def test_a_prompt_replaced_in_one_call_is_restored_in_the_next(render):
    assert render("full", replace="Only this.").text == "Only this."
    assert render("full").text == PROMPT


def test_a_call_can_replace_the_prompt_and_append_to_it(render):
    assert render("full", replace="This.", append="And that.").text == "This.\n\nAnd that."


def test_a_call_can_replace_a_base_too(library):
    prompt = library("full", {"base": "Mine."}, replace="This.", append="And that.")
    assert prompt.text == "This.\n\nAnd that."


def test_texts_of_several_extensions_are_appended_in_order(render):
    texts = ["Second.", "First.\nMore."]
    text = render("full", replace="This.", append=texts).text
    assert text == "This.\n\nSecond.\n\nFirst.\nMore."
    assert render("full", append=texts).text.endswith("\n\nSecond.\n\nFirst.\nMore.")


def test_modifications_of_a_call_store_no_version(product):
    path = f"agents/pi/channels/{CHANNEL}/versions"
    before = product.call("GET", path)
    product.render("pi", replace="This.", tools=["bash"], working_directory="/srv")
    assert product.call("GET", path) == before


# --- Every lever for shaping the system prompt ---------------------------------------------------------


def test_system_md_stays_in_force_until_the_file_changes(product, replaced):
    product.refresh("poems")
    assert product.render("poet", **NOW) == replaced


def test_messages_of_a_call_are_returned_beside_the_prompt_with_the_user_role(render):
    messages = [{"content": "Welcome back."}, {"content": "Thank you.", "role": "assistant"}]
    prompt = render("full", messages=messages)
    assert prompt.messages == [{"role": "user", "content": "Welcome back."}, messages[1]]
    assert prompt.text == PROMPT


# --- Practical tradeoffs -------------------------------------------------------------------------------


def test_guidelines_of_a_tool_appear_and_disappear_with_it(render):
    without = render("full", tools=FOUR_TOOLS).text
    assert without == PROMPT.replace(f"\n{TOOL_LINES['my_custom_tool']}", "").replace(f"\n{OWN}", "")


# --- The full context surface area ---------------------------------------------------------------------


def test_tool_definitions_have_name_description_and_schema_of_active_tools(render):
    assert render("full").tools == [
        {"name": name, "description": description, "parameters": SCHEMA}
        for name, description in [
            *((name, f"Described for {name}.") for name in FOUR_TOOLS),
            ("my_custom_tool", "Described."),
        ]
    ]


def test_tools_that_are_not_active_have_no_definition(render):
    prompt = render("full", {"tools": ["read"], "planning_tools": ["bash"]})
    assert [tool["name"] for tool in prompt.tools] == ["read"]
    assert list_tool_lines(prompt) == [TOOL_LINES["read"]]
    assert list(render("full", tools=[]).tools) == []


def test_tool_definitions_do_not_depend_on_system_md(product):
    product.render("poet", **NOW)
    assert [tool["name"] for tool in product.tools] == [*FOUR_TOOLS, "my_custom_tool"]


@pytest.mark.planted
def test_a_layout_without_its_first_part_is_detected(render):
    with drop_first_part("pi"), pytest.raises(AssertionError):
        test_an_identity_of_the_agent_replaces_the_first_sentence(render)
