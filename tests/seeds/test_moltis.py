"""Seed 002, the prompt of moltis: every rule, table and literal, in served prompts."""

import json
from collections import Counter
from typing import Any

import pytest

from tests.seeds.product import CHANNEL, Product

pytestmark = pytest.mark.django_db

WITH_TOOLS = "You are a helpful assistant with access to tools for executing shell commands."
WITHOUT_TOOLS = "You are a helpful assistant. Answer questions clearly and concisely."
HOST_LINE = (
    "Host: host=moltis-devbox | os=macos | arch=aarch64 | shell=zsh | provider=openai | model=gpt-5"
    " | session=main | sudo_non_interactive=true | timezone=Europe/Paris"
)
SANDBOX_LINE = (
    "Sandbox(exec): enabled=true | mode=all | backend=docker | scope=session | image=moltis-sandbox:abc123"
    " | workspace_mount=ro | network=disabled"
)
HOST = {
    "host": "moltis-devbox",
    "os": "macos",
    "arch": "aarch64",
    "shell": "zsh",
    "provider": "openai",
    "model": "gpt-5",
    "session": "main",
    "sudo_non_interactive": True,
    "timezone": "Europe/Paris",
}
SANDBOX = {
    "enabled": True,
    "mode": "all",
    "backend": "docker",
    "scope": "session",
    "image": "moltis-sandbox:abc123",
    "workspace_mount": "ro",
    "network": "disabled",
}
RUNTIME = {"host": HOST, "sandbox": SANDBOX}
SKILLS = """\
## Available Skills
<available_skills>
<skill name="commit" source="skill" path="/skills/commit">
Create git commits
</skill>
</available_skills>"""
SKILL_FILE = "---\nname: {name}\ndescription: {description}\n---\n\nRun `git commit`.\n"
SCHEMA = {
    "type": "object",
    "properties": {"command": {"type": "string", "description": "What to run."}},
    "required": ["command"],
}
# The parts of a full prompt, in the order of the seed. It does not name all of these headings.
PARTS = [
    WITH_TOOLS,
    "Your name is Bramble 🦔.",
    "## Soul\n\nBe kind.",
    "The user's name is Tomasz.",
    "## Project Context\n\n",
    "## Runtime\n\n",
    "## Available Skills\n",
    "## Workspace Files\n\n",
    "## Long-Term Memory\n\n",
    "## Available Tools\n\n",
    "## How to call tools\n\n",
    "## Guidelines\n\n",
]

# The pilot reads all files of the seed from disk and has tools. The bare agent has no content.
PILOT, BARE = "pilot", "bare"
# Where the sources are on the bot's machine.
LOCATIONS = {"machine": "/", "home": "/home/user", "project": "/home/user/project"}
IDENTITY_FILE = "---\nname: Bramble\nemoji: 🦔\ncreature: hedgehog\nvibe: dry\n---\n"
USER_FILE = "---\nname: Tomasz\ntimezone: Europe/Paris\nlocation: Kendal\n---\n\nCycles to work.\n"
FILES = {
    "machine/CLAUDE.md": "Rules of the machine.",
    "home/CLAUDE.md": "Rules of the user.",
    "home/.moltis/IDENTITY.md": IDENTITY_FILE,
    "home/.moltis/SOUL.md": "Be kind.",
    "home/.moltis/USER.md": USER_FILE,
    "home/.moltis/AGENTS.md": "<!-- Edited by\nhand. -->\nAsk before you send mail.",
    "home/.moltis/TOOLS.md": "<!-- One --><!-- two -->\nPrefer `rg`. <!-- Faster. -->",
    "project/CLAUDE.md": "Rules of the project.",
    "project/CLAUDE.local.md": "Local overrides.",
    "project/.claude/rules/naming.md": "Rule on naming.",
    "project/.claude/rules/safety.md": "Rule on safety.",
    "project/AGENTS.md": "Rules of all agents.",
    "project/app/CLAUDE.md": "Rules of the app.",
    "machine/skills/commit/SKILL.md": SKILL_FILE.format(name="commit", description="Create git commits"),
    "project/.moltis/AGENTS.md": "In no home directory.",
    "project/.moltis/SOUL.md": "In no home directory.",
    "project/other/CLAUDE.md": "Rules of another folder.",
}


def create_records(product: Product) -> None:
    """The agents, sources and tools of the seed's examples."""
    product.create("tools", name="exec", description="Run a command.", parameters=json.dumps(SCHEMA))
    product.create("tools", name="browser", description="Open a page.")
    product.create("tools", name="memory_search", description="Search the memory.")
    product.create_agent(BARE, "moltis")
    product.create_agent(PILOT, "moltis", tools=["exec", "browser", "memory_search"])
    for path, text in FILES.items():
        product.write(path, f"{text}\n")
    for name, location in LOCATIONS.items():
        add_source(product, name, location)
    uses = [("machine", "project"), ("home", "home"), ("project", "project")]
    values = {"working_directory": "/home/user/project/app", "extra_skill_folders": ["/skills"]}
    read_sources(product, PILOT, *uses, **values)
    # A home directory without files; see `read_home`.
    add_source(product, "own", "/home/ada")
    read_sources(product, BARE, ("own", "home"))
    add_sized_agents(product)


@pytest.fixture(scope="module")
def texts(stage: Product, django_db_blocker: Any) -> dict[str, str]:
    """Three served prompts for many tests."""
    with django_db_blocker.unblock():
        return {
            "full": stage.render(PILOT, native_tools=False, **RUNTIME),
            "native": stage.render(PILOT, **RUNTIME),
            "bare": stage.fetch(BARE),
        }


def add_source(product: Product, name: str, location: str = "") -> None:
    """Create a source for a folder below the product's folder, and read its files."""
    product.grant(name)
    product.create(
        "sources",
        approval="automatic",
        name=name,
        slug=name,
        allowed_folder=str(product.folder / name),
        location=location,
    )
    product.refresh(name)


def read_sources(product: Product, agent: str, *uses: tuple[str, str], **values: Any) -> None:
    """Let the agent read the sources in their scopes, and approve the skills in them."""
    sources = [{"source": name, "scope": scope} for name, scope in uses]
    product.put(f"agents/{agent}/context", harness="moltis", sources=sources, **values)
    approve_waiting(product, agent)


def approve_waiting(product: Product, agent: str) -> None:
    """Approve the skills that the agent found: without approval they are not offered."""
    context = product.call("GET", f"agents/{agent}/context")
    files = [product.call("GET", f"context-files/{file['id']}") for file in context["needs_review"]]
    picks = [{"id": file["id"], "digest": file["seen_digest"]} for file in files]
    if picks:
        assert product.call("POST", "context-files:approve", {"files": picks})["refused"] == []


def read_home(product: Product, **texts: str) -> None:
    """Write files into the ~/.moltis of the bare agent, given by their names without `.md`, and read them."""
    for name, text in texts.items():
        product.write(f"own/.moltis/{name}.md", text)
    product.refresh("own")


def put_settings(product: Product, agent: str, **values: Any) -> None:
    product.put(f"prompt-settings/agents/{agent}", **values)


def get_version(product: Product, agent: str) -> dict[str, Any]:
    """Return the newest version of the agent's prompt, with its characters and tokens."""
    versions = product.call("GET", f"agents/{agent}/channels/{CHANNEL}/versions?limit=1")
    version: dict[str, Any] = versions["items"][0]
    return version


def get_tokens(product: Product, agent: str) -> dict[str, Any]:
    tokens: dict[str, Any] = product.bot.get(f"agents/{agent}/channels/{CHANNEL}/prompt").json()["tokens"]
    return tokens


def get_section(text: str, heading: str) -> str:
    """Return the text under a heading of the second level, up to the next one."""
    return text.split(f"\n\n{heading}\n", 1)[1].partition("\n\n## ")[0].strip("\n")


def list_headings(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("## ")]


def get_runtime(text: str) -> list[str]:
    """Return the lines of host and sandbox."""
    return get_section(text, "## Runtime").split("\n\n")[0].splitlines()


@pytest.fixture
def full(texts: dict[str, str]) -> str:
    """The prompt with all twelve parts, for a provider without native tools."""
    return texts["full"]


@pytest.fixture
def native(texts: dict[str, str]) -> str:
    """The same prompt for a provider that takes tool definitions."""
    return texts["native"]


@pytest.fixture
def bare(texts: dict[str, str]) -> str:
    """The prompt of an agent without content."""
    return texts["bare"]


# System Prompt Architecture


def test_parts_are_optional_and_absent_parts_leave_nothing(bare: str) -> None:
    assert bare.startswith(f"{WITHOUT_TOOLS}\n\n## Guidelines\n\n- ")
    assert list_headings(bare) == ["## Guidelines"]
    assert "\n\n\n" not in bare


# Assembly Order


@pytest.mark.parametrize("number", range(1, 13))
def test_the_twelve_parts_are_in_order(full: str, number: int) -> None:
    part = PARTS[number - 1]
    assert full.count(part) == 1
    assert [full.index(other) < full.index(part) for other in PARTS] == [True] * (number - 1) + [False] * (
        13 - number
    )


def test_parts_are_one_blank_line_apart(full: str) -> None:
    assert "\n\n\n" not in full
    assert all(f"\n\n{part}" in full for part in PARTS[1:])


# Base Introduction


def test_introduction_with_tools(native: str) -> None:
    assert native.startswith(f"{WITH_TOOLS}\n\n")
    assert WITHOUT_TOOLS not in native


def test_introduction_without_tools(bare: str) -> None:
    assert bare.startswith(f"{WITHOUT_TOOLS}\n\n")
    assert WITH_TOOLS not in bare


def test_introduction_of_a_call_without_tools(product: Product) -> None:
    assert product.render(PILOT, tools=[]).startswith(f"{WITHOUT_TOOLS}\n\n")


# Agent Identity

ALL_FIELDS = {"name": "Bramble", "emoji": "🦔", "creature": "hedgehog", "vibe": "dry"}
IDENTITY_ROWS = pytest.mark.parametrize(
    ("fields", "output"),
    [
        ({"name": "Bramble", "emoji": "🦔"}, "Your name is Bramble 🦔."),
        ({"creature": "hedgehog"}, "You are a hedgehog."),
        ({"vibe": "dry"}, "Your vibe: dry."),
        ({"name": "Bramble"}, "Your name is Bramble."),
        ({"emoji": "🦔", "vibe": "dry"}, "Your vibe: dry."),
        (ALL_FIELDS, "Your name is Bramble 🦔. You are a hedgehog. Your vibe: dry."),
    ],
    ids=["name + emoji", "creature", "vibe", "name alone", "emoji without a name", "all fields"],
)


@IDENTITY_ROWS
def test_identity_from_the_front_matter_on_disk(
    product: Product, fields: dict[str, str], output: str
) -> None:
    lines = [f"{name}: {value}\n" for name, value in fields.items()]
    read_home(product, IDENTITY=f"---\n{''.join(lines)}---\n")
    assert product.fetch(BARE).startswith(f"{WITHOUT_TOOLS}\n\n{output}\n\n## Soul\n\n")


@IDENTITY_ROWS
def test_identity_from_a_record(product: Product, fields: dict[str, str], output: str) -> None:
    values = {"display_name" if name == "name" else name: value for name, value in fields.items()}
    product.create("identities", name="Own", **values)
    product.edit(f"agents/{BARE}", identity="own")
    assert product.fetch(BARE).startswith(f"{WITHOUT_TOOLS}\n\n{output}\n\n## Soul\n\n")


def test_without_an_identity_there_is_no_sentence_and_no_soul(bare: str) -> None:
    assert "Your name" not in bare
    assert "## Soul" not in bare


def test_a_soul_without_an_identity_is_left_out_with_a_warning(product: Product) -> None:
    read_home(product, SOUL="Be brisk.")
    text = product.fetch(BARE)
    assert "Be brisk." not in text
    assert "## Soul" not in text
    assert "The soul is left out: this layout gives one only beside an identity." in product.warnings


# Soul


def test_soul_from_disk(native: str) -> None:
    assert get_section(native, "## Soul").startswith("Be kind.\n\n")


def test_soul_from_a_record(product: Product) -> None:
    product.create("identities", name="Own", display_name="Bramble")
    product.create("souls", name="Brisk", text="Be brisk.")
    product.edit(f"agents/{BARE}", identity="own", soul="brisk")
    assert get_section(product.fetch(BARE), "## Soul") == "Be brisk."


@pytest.mark.parametrize("soul", [None, "", " \n\n"], ids=["absent", "empty", "blank"])
def test_the_default_soul_is_used_when_the_file_is_absent_or_empty(
    product: Product, soul: str | None
) -> None:
    files = {} if soul is None else {"SOUL": soul}
    read_home(product, IDENTITY=IDENTITY_FILE, **files)
    assert get_section(product.fetch(BARE), "## Soul").startswith("You are more than a box")


@pytest.fixture
def default_soul(product: Product) -> str:
    product.create("identities", name="Own", display_name="Bramble")
    product.edit(f"agents/{BARE}", identity="own")
    return get_section(product.fetch(BARE), "## Soul")


# What the seed says, and what the product says in its place.
SOUL_POINTS = {
    "You're not a chatbot. You're becoming someone.": "over time you turn into somebody particular",
    "Be genuinely helpful, not performatively helpful.": "Leave out the applause",
    "Have opinions.": "**Take a side.**",
    "Be resourceful before asking.": "**Look first.**",
    "Earn trust through competence.": "Go slowly with whatever leaves the house",
    "Remember you're a guest.": "**Behave like a visitor.**",
    "Private things stay private.": "What is confidential goes no further than you.",
    "When in doubt, ask before": "If an action would reach other people and you are unsure, check before",
    "Never send half-baked replies": "A message goes out only when it is finished.",
    "You're not the user's voice": "never speak in your user's name",
    "Not a corporate drone. Not a sycophant.": "neither brochure nor flatterer",
    "Each session, you wake up fresh.": "Every session begins without yesterday.",
    "If you change this": "should you ever alter it, let your user know",
}


def test_the_default_soul_makes_the_points_of_the_seed_in_its_own_words(default_soul: str) -> None:
    assert [own for own in SOUL_POINTS.values() if own not in default_soul] == []
    assert [point for point in SOUL_POINTS if point in default_soul] == []


def test_the_default_soul_has_about_1500_characters_and_400_tokens(
    product: Product, default_soul: str
) -> None:
    assert 1_350 <= len(default_soul) <= 1_650
    assert 300 <= get_tokens(product, BARE)["sections"]["soul"] <= 450


# User Profile


def test_name_of_the_user_from_disk(native: str) -> None:
    assert "\n\nThe user's name is Tomasz.\n\n" in native


def test_name_of_the_user_from_a_record(product: Product) -> None:
    product.create("user-profiles", name="Ada", display_name="Ada")
    product.edit(f"agents/{BARE}", user_profile="ada")
    assert "\n\nThe user's name is Ada.\n\n" in product.fetch(BARE)


def test_only_the_name_of_the_profile_is_injected(product: Product) -> None:
    text = product.fetch(PILOT)
    assert not [value for value in ("Europe/Paris", "Kendal", "Cycles to work.") if value in text]
    assert "The layout does not use user.notes." in product.warnings


# Project Context

PROJECT_FILES = [
    ("/CLAUDE.md", "Rules of the machine."),
    ("/home/user/CLAUDE.md", "Rules of the user."),
    ("/home/user/project/CLAUDE.md", "Rules of the project."),
    ("/home/user/project/CLAUDE.local.md", "Local overrides."),
    ("/home/user/project/.claude/rules/naming.md", "Rule on naming."),
    ("/home/user/project/.claude/rules/safety.md", "Rule on safety."),
    ("/home/user/project/AGENTS.md", "Rules of all agents."),
    ("/home/user/project/app/CLAUDE.md", "Rules of the app."),
]


@pytest.mark.parametrize(("path", "text"), PROJECT_FILES)
def test_files_from_the_project_directory_up_to_the_root_are_collected(
    native: str, path: str, text: str
) -> None:
    assert f"\n\n### {path}\n\n{text}\n\n" in native


def test_files_are_merged_outermost_first(native: str) -> None:
    blocks = [f"### {path}\n\n{text}" for path, text in PROJECT_FILES]
    assert get_section(native, "## Project Context") == "\n\n".join(blocks)


def test_folders_beside_the_way_up_are_not_read(native: str) -> None:
    assert "Rules of another folder." not in native


# Runtime Context


def test_runtime_lines_are_those_of_the_seed(product: Product) -> None:
    text = product.render(BARE, **RUNTIME)
    assert "\n\n## Runtime\n\n" in text
    assert get_section(text, "## Runtime") == f"{HOST_LINE}\n{SANDBOX_LINE}"


def test_runtime_keys_keep_the_order_of_the_seed(product: Product) -> None:
    facts = {name: dict(reversed(values.items())) for name, values in RUNTIME.items()}
    assert get_runtime(product.render(BARE, **facts)) == [HOST_LINE, SANDBOX_LINE]


def test_with_tools_a_block_explains_execution_routing(native: str) -> None:
    runtime = get_section(native, "## Runtime")
    assert f"{SANDBOX_LINE}\n\nExecution routing:\n- `exec` goes " in runtime
    assert "into the sandbox" in runtime
    assert "to the host" in runtime


@pytest.mark.parametrize(
    ("agent", "call"), [(BARE, {}), (PILOT, {"tools": []})], ids=["of the agent", "of the call"]
)
def test_without_tools_there_is_no_execution_routing(
    product: Product, agent: str, call: dict[str, Any]
) -> None:
    text = product.render(agent, **RUNTIME, **call)
    assert SANDBOX_LINE in text
    assert "Execution routing" not in text


def test_runtime_is_populated_by_each_call(product: Product) -> None:
    lines = [get_runtime(product.render(BARE, host={"host": name})) for name in ("deck-1", "deck-2")]
    assert lines == [["Host: host=deck-1"], ["Host: host=deck-2"]]
    assert "## Runtime" not in product.fetch(BARE)


@pytest.mark.parametrize(
    "fact",
    [
        *({"host": "devbox"}, {"os": "linux"}, {"arch": "x86_64"}, {"shell": "bash"}),
        *({"provider": "anthropic"}, {"model": "claude"}, {"session": "telegram:17"}),
        *({"sudo_non_interactive": False}, {"timezone": "Asia/Tokyo"}, {"accept_language": "fr-FR"}),
        {"location": "48.85,2.35"},
    ],
    ids=str,
)
def test_each_host_fact_of_the_seed_has_a_key(product: Product, fact: dict[str, Any]) -> None:
    [(key, value)] = fact.items()
    written = "false" if value is False else value
    assert get_runtime(product.render(BARE, host=fact)) == [f"Host: {key}={written}"]


def test_the_session_of_the_call_is_the_session_key(product: Product) -> None:
    facts = {"host": {"host": "devbox"}, "session": {"id": "main"}}
    assert get_runtime(product.render(BARE, **facts)) == ["Host: host=devbox | session=main"]


def test_timezone_and_location_come_from_the_profile_if_the_call_has_none(product: Product) -> None:
    assert get_runtime(product.render(PILOT, host={"host": "devbox"})) == [
        "Host: host=devbox | timezone=Europe/Paris | location=Kendal"
    ]


def test_timezone_and_location_of_the_call_replace_those_of_the_profile(product: Product) -> None:
    host = {"timezone": "Asia/Tokyo", "location": "35.68,139.69"}
    assert get_runtime(product.render(PILOT, host=host)) == [
        "Host: timezone=Asia/Tokyo | location=35.68,139.69"
    ]


# Skills


def test_skills_are_the_block_of_the_seed(native: str) -> None:
    assert f"\n\n{SKILLS}\n\n" in native


def test_a_skill_of_the_data_directory_has_the_path_of_its_folder(product: Product) -> None:
    text = SKILL_FILE.format(name="tea", description="Make tea")
    read_home(product, **{"skills/tea/SKILL": text})
    approve_waiting(product, BARE)
    element = '<skill name="tea" source="skill" path="/home/ada/.moltis/skills/tea">\nMake tea\n</skill>'
    assert get_section(product.fetch(BARE), "## Available Skills") == (
        f"<available_skills>\n{element}\n</available_skills>"
    )


def test_a_skill_written_in_the_product_has_the_path_of_the_folder_of_pulled_skills(
    product: Product,
) -> None:
    values = {"name": "commit", "description": "Create git commits", "body": "Run `git commit`."}
    product.create("skills", for_all_agents=True, **values)
    read_sources(product, BARE, pulled_skills_folder="/skills")
    assert f"\n\n{SKILLS}\n\n" in product.fetch(BARE)


def test_without_skills_there_is_no_block(bare: str) -> None:
    assert "available_skills" not in bare


# Workspace Files


def test_workspace_files_have_their_own_subheadings_and_no_leading_comments(native: str) -> None:
    assert get_section(native, "## Workspace Files") == (
        "### AGENTS.md\n\nAsk before you send mail.\n\n### TOOLS.md\n\nPrefer `rg`. <!-- Faster. -->"
    )


@pytest.mark.parametrize("name", ["AGENTS", "TOOLS"])
def test_each_workspace_file_is_optional(product: Product, name: str) -> None:
    read_home(product, **{name: "Ask first."})
    assert get_section(product.fetch(BARE), "## Workspace Files") == f"### {name}.md\n\nAsk first."


def test_a_workspace_file_of_comments_leaves_nothing(product: Product) -> None:
    read_home(product, AGENTS="<!-- Nothing yet. -->\n")
    assert "## Workspace Files" not in product.fetch(BARE)


def test_workspace_files_and_persona_of_a_project_are_not_read(native: str) -> None:
    assert "In no home directory." not in native


# Long-term memory hint


def test_the_memory_hint_is_added_with_memory_tools(product: Product) -> None:
    hint = get_section(product.fetch(PILOT), "## Long-Term Memory")
    assert "behind your memory tools" in hint
    assert "## Long-Term Memory" not in product.render(PILOT, tools=["exec"])


# Tool Schemas


def test_native_tools_are_one_line_each(native: str) -> None:
    assert get_section(native, "## Available Tools") == (
        "- exec: Run a command.\n- browser: Open a page.\n- memory_search: Search the memory."
    )


@pytest.mark.parametrize(
    ("length", "shown"), [(160, "x" * 160), (161, "x" * 160 + "…")], ids=["exactly", "longer"]
)
def test_native_descriptions_are_truncated_to_160_characters(
    product: Product, length: int, shown: str
) -> None:
    product.edit("tools/exec", description="x" * length)
    text = product.render(PILOT, tools=["exec"])
    assert get_section(text, "## Available Tools") == f"- exec: {shown}"
    assert product.tools[0]["description"] == "x" * length


def test_native_schemas_are_sent_beside_the_prompt(product: Product) -> None:
    text = product.fetch(PILOT)
    assert product.tools[0] == {"name": "exec", "description": "Run a command.", "parameters": SCHEMA}
    assert [tool["name"] for tool in product.tools] == ["exec", "browser", "memory_search"]
    assert "What to run." not in text


def test_native_providers_get_no_calling_format(native: str) -> None:
    assert "tool_call" not in native


@pytest.mark.parametrize("level", ["settings", "call"])
def test_fallback_tools_have_their_full_schemas_in_the_prompt(product: Product, level: str) -> None:
    if level == "settings":
        put_settings(product, PILOT, native_tools=False)
    text = product.fetch(PILOT) if level == "settings" else product.render(PILOT, native_tools=False)
    tools = get_section(text, "## Available Tools")
    assert tools.startswith("### exec\n\nRun a command.\n\nParameters:\n```json\n{")
    assert json.loads(tools.split("```json\n")[1].split("\n```")[0]) == SCHEMA
    assert product.tools == []


def test_fallback_descriptions_are_complete(product: Product) -> None:
    product.edit("tools/exec", description="x" * 400)
    text = product.render(PILOT, native_tools=False)
    assert f"### exec\n\n{'x' * 400}\n\n" in text


# Tool-calling format


def test_fallback_tools_are_followed_by_instructions_for_tool_call_blocks(full: str) -> None:
    assert list_headings(full)[-4:] == [
        "## Available Tools",
        "## How to call tools",
        "## Guidelines",
        "## Silent Replies",
    ]
    block = get_section(full, "## How to call tools").split("```tool_call\n")[1].split("\n```")[0]
    assert json.loads(block) == {"tool": "NAME", "arguments": {"PARAMETER": "VALUE"}}


def test_without_tools_there_is_no_calling_format(product: Product) -> None:
    assert "tool_call" not in product.render(BARE, native_tools=False)


# Guidelines and Silent Replies


@pytest.mark.parametrize(
    ("tool", "line"), [("exec", "- Use `exec` when "), ("browser", "- Use `browser` for ")]
)
def test_guidelines_say_when_to_use_a_tool(product: Product, tool: str, line: str) -> None:
    assert line in get_section(product.render(PILOT, tools=[tool]), "## Guidelines")
    assert line not in product.render(PILOT, tools=["memory_search"])


def test_guidelines_remind_not_to_parrot_raw_tool_output(native: str) -> None:
    assert "\n- Do not parrot raw tool output" in get_section(native, "## Guidelines")


def test_the_silent_reply_protocol_ends_the_prompt(native: str) -> None:
    assert list_headings(native)[-2:] == ["## Guidelines", "## Silent Replies"]
    protocol = get_section(native, "## Silent Replies")
    assert protocol.startswith("When the output of a tool speaks for itself, return an empty response: ")
    assert "no acknowledgement" in protocol


# Entry Points

ENTRY_HEADINGS = {
    "simple": [
        "## Project Context",
        *("## Long-Term Memory", "## Available Tools", "## Guidelines", "## Silent Replies"),
    ],
    "full": [
        *("## Soul", "## Project Context", "## Runtime", "## Available Skills", "## Workspace Files"),
        *("## Long-Term Memory", "## Available Tools", "## Guidelines", "## Silent Replies"),
    ],
    "minimal": ["## Soul", "## Project Context", "## Runtime", "## Workspace Files", "## Guidelines"],
}


@pytest.mark.parametrize("entry", ENTRY_HEADINGS)
@pytest.mark.parametrize("level", ["settings", "call"])
def test_entry_point(product: Product, entry: str, level: str) -> None:
    if level == "settings":
        put_settings(product, PILOT, entry=entry)
        text = product.render(PILOT, **RUNTIME)
    else:
        text = product.render(PILOT, entry=entry, **RUNTIME)
    assert list_headings(text) == ENTRY_HEADINGS[entry]
    assert text.startswith(WITHOUT_TOOLS if entry == "minimal" else WITH_TOOLS)
    persona = ["Your name is Bramble 🦔." in text, "The user's name is Tomasz." in text]
    assert persona == [entry != "simple"] * 2


def test_the_default_entry_point_is_full(product: Product) -> None:
    assert product.render(PILOT, **RUNTIME) == product.render(PILOT, entry="full", **RUNTIME)


def test_project_context_of_the_simple_entry_point_is_optional(product: Product) -> None:
    product.edit(f"agents/{BARE}", tools=["exec"])
    text = product.render(BARE, entry="simple")
    assert list_headings(text) == ["## Available Tools", "## Guidelines", "## Silent Replies"]


def test_the_minimal_entry_point_sends_no_tool_definitions(product: Product) -> None:
    product.render(PILOT, entry="minimal")
    assert product.tools == []


# Size Estimates

# The agent of each row of the table; the context files of these agents have 1,280 characters each.
SIZED: dict[str, dict[str, Any]] = {
    "minimal": {"entry": "minimal"},
    "soul": {"has_identity": True},
    "typical": {"has_identity": True, "tools": 8},
    "full": {"has_identity": True, "tools": 8, "directory": "a", "has_skills": True},
    "large": {"has_identity": True, "tools": 25, "directory": "a/b/c", "has_skills": True},
    "session": {"has_identity": True, "tools": 4, "directory": "a"},
}


def add_sized_agents(product: Product) -> None:
    """Create an agent for each configuration of the size table."""
    for number in range(22):
        product.create(
            "tools",
            name=f"server_{number}_tool",
            description="What this tool does, when to use it and what it gives back to the caller. " * 2,
            parameters=json.dumps(SCHEMA),
        )
    names = ["exec", "browser", "memory_search", *(f"server_{number}_tool" for number in range(22))]
    for directory in ("", "a/", "a/b/", "a/b/c/"):
        product.write(f"sized/{directory}CLAUDE.md", "One instruction to follow here.\n" * 40)
    for number in range(8):
        text = SKILL_FILE.format(name=f"skill-{number}", description="What it does and when to use it.")
        product.write(f"sized/library/skill-{number}/SKILL.md", text)
    add_source(product, "sized", "/srv/project")
    product.create(
        "identities", name="Sized", display_name="Bramble", emoji="🦔", creature="hedgehog", vibe="dry"
    )
    for slug, row in SIZED.items():
        identity = "sized" if row.get("has_identity") else None
        product.create_agent(slug, "moltis", identity=identity, tools=names[: row.get("tools", 0)])
        if "entry" in row:
            put_settings(product, slug, entry=row["entry"])
        if "directory" in row:
            folders = ["library"] if row.get("has_skills") else []
            values = {"working_directory": row["directory"], "extra_skill_folders": folders}
            read_sources(product, slug, ("sized", "project"), **values)


@pytest.mark.parametrize(
    ("agent", "characters", "tokens"),
    [
        ("minimal", (200, 200), (50, 50)),
        ("soul", (2_000, 2_000), (500, 500)),
        ("typical", (5_000, 5_000), (1_250, 1_250)),
        ("full", (7_000, 10_000), (1_750, 2_500)),
        ("large", (12_000, 15_000), (3_000, 3_750)),
        ("session", (6_000, 6_000), (1_500, 1_500)),
    ],
)
def test_size_estimates(
    product: Product, agent: str, characters: tuple[int, int], tokens: tuple[int, int]
) -> None:
    version = get_version(product, agent)
    # The figures of the seed are approximate: accept half of a figure up to twice the figure.
    assert characters[0] / 2 <= version["characters"] <= characters[1] * 2
    assert tokens[0] / 2 <= version["tokens"]["text"] <= tokens[1] * 2


def test_sizes_grow_in_the_order_of_the_table(product: Product) -> None:
    sizes = [get_version(product, agent)["characters"] for agent in list(SIZED)[:5]]
    assert sizes == sorted(set(sizes))


def test_tool_schemas_and_project_context_are_the_biggest_contributors(product: Product) -> None:
    number = get_version(product, "large")["version"]
    table = product.call("GET", f"agents/large/channels/{CHANNEL}/versions/{number}/sizes")
    tokens = [row["tokens"] for row in table["contributors"]]
    assert tokens == sorted(tokens, reverse=True)
    assert sum(row["share"] for row in table["contributors"]) == pytest.approx(1, abs=0.01)
    shares: Counter[str] = Counter()
    for row in table["contributors"]:
        # A tool definition is sent beside the text and is in no section.
        shares[row["sections"][0] if row["sections"] else "tool_schemas"] += row["tokens"]
    assert {name for name, _ in shares.most_common(2)} == {"tool_schemas", "project_context"}


def test_each_context_file_is_a_row_of_the_size_table(product: Product) -> None:
    number = get_version(product, "large")["version"]
    table = product.call("GET", f"agents/large/channels/{CHANNEL}/versions/{number}/sizes")
    paths = [row["path"] for row in table["contributors"] if row["sections"] == ["project_context"]]
    assert sorted(filter(None, paths)) == ["CLAUDE.md", "a/CLAUDE.md", "a/b/CLAUDE.md", "a/b/c/CLAUDE.md"]


# File Locations


@pytest.mark.parametrize(
    ("path", "kind", "shown"),
    [
        ("/home/user/.moltis/IDENTITY.md", "persona", "Your name is Bramble 🦔. You are a hedgehog."),
        ("/home/user/.moltis/SOUL.md", "persona", "## Soul\n\nBe kind."),
        ("/home/user/.moltis/USER.md", "persona", "The user's name is Tomasz."),
        ("/home/user/.moltis/AGENTS.md", "workspace", "### AGENTS.md\n\nAsk before you send mail."),
        ("/home/user/.moltis/TOOLS.md", "workspace", "### TOOLS.md\n\nPrefer `rg`."),
        ("/home/user/project/CLAUDE.md", "context", "Rules of the project."),
        ("/home/user/project/CLAUDE.local.md", "context", "Local overrides."),
        ("/home/user/project/.claude/rules/naming.md", "context", "Rule on naming."),
    ],
)
def test_file_locations(product: Product, native: str, path: str, kind: str, shown: str) -> None:
    files = product.call("GET", f"agents/{PILOT}/context")["files"]
    assert [file["kind"] for file in files if file["bot_path"] == path] == [kind]
    assert f"\n\n{shown}" in native
