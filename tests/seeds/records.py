"""Render prompts of a seed by REST: create the records of its agents, and serve the prompts to a bot."""

import json
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from tests.seeds.library import NO_CHANGES
from tests.seeds.product import Product, record_numbers
from tests.seeds.seed import Prompt, Seed, Values

AGENT_FIELDS = ("instructions", "working_directory", "directories", "capabilities")
PERSONA = {"identity": "identities", "user": "user-profiles"}
SETTINGS = ("native_tools", "entry", "mode", "mission")
EMPTY_TOOL = dict.fromkeys(("description", "snippet", "guidelines", "parameters", "signature"), "")
DATA_SETTINGS = ("sample_data", "signature", "hidden")
# Names that differ between the library and the API.
LIMIT_NAMES = {"total": "total_characters", "parts": "section_limits"}
LIMIT_SETTINGS = (
    *LIMIT_NAMES.values(),
    *("per_file", "all_files", "list_sample", "string_truncate", "omit_reference"),
)
FILE_FIELDS = ("context_files", "workspace_files")


def create_agents(product: Product, seed: Seed) -> None:
    """Create the tools and the agents of the seed."""
    for tool in seed.list_tools(list(seed.tools)):
        put_tool(product, tool)
    for agent, values in seed.agents.items():
        product.create_agent(agent, seed.layout)
        change_records(product, seed, agent, values)


def render_by_rest(
    product: Product, seed: Seed, agent: str = "bare", given: Values = NO_CHANGES, **call: Any
) -> Prompt:
    change_records(product, seed, agent, given)
    body = seed.build_call(call)
    text = product.render(agent, **body) if body else product.fetch(agent)
    return Prompt(text, product.warnings, product.tools, product.messages)


def change_records(product: Product, seed: Seed, agent: str, values: Values) -> None:
    """Create or change the records that these values of an agent stand for."""
    edits = {name: values[name] for name in AGENT_FIELDS if name in values}
    edits |= {f"documentation_{name}": value for name, value in values.get("documentation", {}).items()}
    for name in ("tools", "planning_tools"):
        if name in values:
            edits[name] = [put_tool(product, tool) for tool in seed.list_tools(values[name])]
    edits |= create_persona(product, agent, values)
    if values.get("is_sub_agent"):
        edits["parent"] = product.create_agent(f"{agent}-parent", seed.layout)["slug"]
    if edits:
        product.edit(f"agents/{agent}", **edits)
    put_settings(product, agent, values)
    put_lists(product, agent, values)
    put_files(product, seed, agent, values)
    if "formatting" in values:
        product.edit("channels/web", formatting=values["formatting"])


def build_tool(tool: Values) -> dict[str, Any]:
    values = {name: value for name, value in tool.items() if name != "use"}
    if "parameters" in values:
        values["parameters"] = json.dumps(values["parameters"])
    if "guidelines" in values:
        values["guidelines"] = "\n".join(values["guidelines"])
    return values


def put_tool(product: Product, tool: Values) -> str:
    """Create the tool, or change it if it has other values, and return its name."""
    name: str = tool["name"]
    body = {**EMPTY_TOOL, **build_tool(tool)}
    if name not in product.stored_tools:
        product.create("tools", **body)
    elif product.stored_tools[name] != body:
        product.edit(f"tools/{name}", **body)
    product.stored_tools[name] = body
    return name


def create_persona(product: Product, agent: str, values: Values) -> dict[str, Any]:
    """Create an identity, a soul and a user profile, and return the links to them."""
    links: dict[str, Any] = {}
    for name, collection in PERSONA.items():
        if name in values:
            link = "user_profile" if name == "user" else name
            links[link] = values[name] and create_named(product, collection, agent, values[name])
    if "soul" in values:
        links["soul"] = create_named(product, "souls", agent, {"text": values["soul"]})
    return links


def create_named(product: Product, collection: str, agent: str, values: Values) -> str:
    body = {"display_name" if name == "name" else name: value for name, value in values.items()}
    created: str = product.create(collection, name=f"{agent} {next(record_numbers)}", **body)["slug"]
    return created


def put_settings(product: Product, agent: str, values: Values) -> None:
    """Write the prompt settings of the agent. Limits and data replace those that were set before."""
    settings = {name: values[name] for name in SETTINGS if name in values}
    stored = dict(product.settings.get(agent, {}))
    if "limits" in values:
        stored = {name: value for name, value in stored.items() if name not in LIMIT_SETTINGS}
        settings |= {LIMIT_NAMES.get(name, name): value for name, value in values["limits"].items()}
    if "data" in values:
        stored = {name: value for name, value in stored.items() if name not in DATA_SETTINGS}
        data = {"sample_data" if name == "values" else name: value for name, value in values["data"].items()}
        settings |= data
    if settings:
        product.settings[agent] = stored | settings
        product.put(f"prompt-settings/agents/{agent}", **product.settings[agent])


def put_lists(product: Product, agent: str, values: Values) -> None:
    """Replace the agent's responsibilities and memories, and add the skills that it does not have yet."""
    if "responsibilities" in values:
        rows = [{"title": title, "text": text} for title, text in values["responsibilities"].items()]
        replace_rows(product, "responsibilities", agent, rows)
    if "memories" in values:
        replace_rows(product, "memories", agent, [{"text": text} for text in values["memories"]])
    if "skills" in values:
        known = {row["name"] for row in product.call("GET", f"skills?agent={agent}")["items"]}
        for skill in values["skills"]:
            if skill["name"] not in known:
                body = {name: value for name, value in skill.items() if name != "location"}
                product.create("skills", body="Do it.", agents=[agent], **body)


def replace_rows(product: Product, collection: str, agent: str, rows: Sequence[Values]) -> None:
    for row in product.call("GET", f"{collection}?agent={agent}")["items"]:
        product.call("DELETE", f"{collection}/{row['id']}", If_Match="*")
    for values in rows:
        product.create(collection, agent=agent, **values)


def put_files(product: Product, seed: Seed, agent: str, values: Values) -> None:
    """Replace the files that the agent reads, and set the folder of its skills."""
    has_files = any(name in values for name in FILE_FIELDS)
    if has_files and agent not in product.sources:
        product.sources[agent] = add_sources(product, seed, agent)
        choose_context(product, seed, agent, working_directory=values.get("working_directory", ""))
    locations = [skill["location"] for skill in values.get("skills", ()) if "location" in skill]
    if locations:
        choose_context(product, seed, agent, pulled_skills_folder=find_skills_folder(locations[0]))
    if has_files:
        files = [pair for name in FILE_FIELDS for pair in values.get(name, {}).items()]
        write_files(product, seed, agent, dict(files))


def choose_context(product: Product, seed: Seed, agent: str, **settings: str) -> None:
    """Write the context settings of the agent. Settings that are left out stay."""
    sources = product.sources.get(agent, [])
    product.put(f"agents/{agent}/context", sources=sources, harness=seed.layout, **settings)


def find_skills_folder(location: str) -> str:
    """Return the folder that has the folder of a skill, whose location is that folder or its SKILL.md."""
    return str(PurePosixPath(location.removesuffix("/SKILL.md")).parent)


def add_sources(product: Product, seed: Seed, agent: str) -> list[dict[str, str]]:
    """Create a source for each location of the seed, and return how the agent uses them."""
    uses = []
    for number, (location, scope) in enumerate(seed.sources.items()):
        slug = f"{agent}-{number}"
        product.grant(slug)
        values = {"allowed_folder": str(product.folder / slug), "location": location, "approval": "automatic"}
        product.create("sources", slug=slug, name=slug, **values)
        uses.append({"source": slug, "scope": scope})
    return uses


def write_files(product: Product, seed: Seed, agent: str, files: Mapping[str, str]) -> None:
    """Write each file into the source with the nearest location, remove all others, and refresh."""
    locations = list(seed.sources)
    folders: dict[str, dict[str, str]] = {f"{agent}-{number}": {} for number in range(len(locations))}
    for path, text in files.items():
        nearest = max([place for place in locations if PurePosixPath(path).is_relative_to(place)], key=len)
        folders[f"{agent}-{locations.index(nearest)}"][str(PurePosixPath(path).relative_to(nearest))] = text
    for folder, texts in folders.items():
        product.empty(folder)
        for path, text in texts.items():
            product.write(f"{folder}/{path}", text)
        product.refresh(folder)
