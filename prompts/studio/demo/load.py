"""Load the demo records through the same services as the pages; existing records are left unchanged."""

import json
import re
from collections.abc import Callable
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from allauth.account.models import EmailAddress
from django.contrib.auth.hashers import make_password
from django.db import transaction
from django.utils.timezone import make_aware

from personas.actors import Actor
from personas.agents.services import create_named_record
from personas.api_keys.scopes import DEFAULT_VERBS
from personas.api_keys.services import create_key
from personas.memories.services import approve_memory, create_memory, revoke_memory, supersede_memory
from personas.models import (
    Agent,
    Channel,
    Identity,
    Membership,
    Memory,
    MemoryStatus,
    Soul,
    Task,
    Tool,
    User,
    UserProfile,
    Workspace,
)
from personas.records.services import create_record, edit_record
from personas.work.services import add_responsibility, create_task
from personas.workspaces.services import create_workspace
from prompts.publishing.settings.services import find_level_settings, put_settings
from prompts.studio.demo import DEMO_PASSWORD
from prompts.studio.demo.files import load_demo_files
from skills.models import Skill

# A line of at least 90 characters and its line break, if the next line continues the sentence and is not a
# list item, heading or table row.
WRAPPED_LINE_PATTERN = re.compile(r"(?<=\n)([^\n]{90,})\n *(?!\d+\. )(?=[\w`“\"'(:])")


def unwrap_lines(value: Any) -> Any:
    """Unwrap texts to one line per paragraph or list item, as typed in a browser."""
    if isinstance(value, list):
        return [unwrap_lines(item) for item in value]
    if isinstance(value, dict):
        return {key: unwrap_lines(item) for key, item in value.items()}
    if not isinstance(value, str) or "\n" not in value:
        return value
    before, after = "", f"\n{value}"
    while before != after:
        before, after = after, WRAPPED_LINE_PATTERN.sub(r"\1 ", after)
    return after.removeprefix("\n")


DEMO_DATA_DIR = Path(__file__).parent / "cast"


@cache
def read_demo_data(name: str) -> Any:
    return unwrap_lines(
        yaml.load((DEMO_DATA_DIR / f"{name}.yaml").read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    )


@transaction.atomic
def load_demo() -> Workspace:
    """Fill the demo workspace; a second run changes nothing."""
    company = read_demo_data("workspace")
    # Hashed once: password hashing is slow on purpose, and all demo users share the password.
    password_hash = make_password(DEMO_PASSWORD)
    users = {person["email"]: get_or_create_demo_user(person, password_hash) for person in company["people"]}
    owner = users[company["people"][0]["email"]]
    workspace = Workspace.objects.filter(slug=company["slug"]).first()
    if workspace is None:
        workspace = create_workspace(company["name"], company["slug"], owner=owner)
    for person in company["people"]:
        members = Membership.objects.in_workspace(workspace)
        defaults = {"workspace": workspace, "role": person["role"]}
        members.get_or_create(user=users[person["email"]], defaults=defaults)
    DemoLoader(workspace, Actor.person(owner), users).load()
    wen = Actor.person(users["wen@example.com"])
    load_demo_files(workspace, read_demo_data("agents"), by=Actor.person(owner), wen=wen)
    return workspace


def create_demo_key() -> str:
    """Create a key that may fetch and render the prompts of the demo, and return its secret."""
    company = read_demo_data("workspace")
    workspace = Workspace.objects.get(slug=company["slug"])
    owner = User.objects.get(email=company["people"][0]["email"])
    _, secret = create_key(workspace, "First steps", {"verbs": list(DEFAULT_VERBS)}, by=Actor.person(owner))
    return secret


def get_or_create_demo_user(person: dict[str, str], password_hash: str) -> User:
    """Get or create a demo user with a verified email address."""
    user = User.objects.filter(email=person["email"]).first()
    if user is None:
        user = User.objects.create(email=person["email"], password=password_hash, name=person["name"])
        EmailAddress.objects.create(user=user, email=user.email, verified=True, primary=True)
    return user


@transaction.atomic
def load_demo_records(workspace: Workspace, *, by: User) -> None:
    """Load the demo records into a user's own workspace, without users and files; `by` is the author."""
    users = {person["email"]: by for person in read_demo_data("workspace")["people"]}
    DemoLoader(workspace, Actor.person(by), users).load()


class DemoLoader:
    """Load the demo records into a workspace."""

    def __init__(self, workspace: Workspace, by: Actor, users: dict[str, User]) -> None:
        self.workspace, self.by, self.users = workspace, by, users

    def load(self) -> None:
        for name, model in (("identities", Identity), ("souls", Soul), ("user_profiles", UserProfile)):
            for entry in read_demo_data(name):
                if not self.exists(model, slug=entry["slug"]):
                    create_named_record(model, self.workspace, entry, by=self.by)
        self.for_each("channels", self.load_channel)
        self.for_each("tools", self.load_tool)
        self.for_each("agents", self.load_agent)
        self.for_each("prompt_settings", self.load_prompt_settings)
        self.for_each("skills", self.load_skill)
        self.for_each("tasks", self.load_task)
        self.load_memories()

    def for_each(self, name: str, load_entry: Callable[[dict[str, Any]], None]) -> None:
        for entry in read_demo_data(name):
            load_entry(entry)

    def exists(self, model: type[Any], **filters: Any) -> bool:
        return bool(model.objects.in_workspace(self.workspace).filter(**filters).exists())

    def get(self, model: type[Any], **filters: Any) -> Any:
        return model.objects.in_workspace(self.workspace).get(**filters)

    def load_channel(self, entry: dict[str, Any]) -> None:
        if not self.exists(Channel, slug=entry["slug"]):
            create_record(Channel, self.workspace, entry, by=self.by)
            return
        row = self.get(Channel, slug=entry["slug"])
        # Only an unedited built-in channel gets the demo's formatting rules.
        if row.revision == 1 and row.is_built_in:
            edit_record(
                row, {"formatting": entry["formatting"]}, expected=1, by=self.by, message="House rules"
            )

    def load_tool(self, entry: dict[str, Any]) -> None:
        if self.exists(Tool, name=entry["name"]):
            return
        schema = entry.get("parameters")
        values = entry | {
            "guidelines": "\n".join(entry.get("guidelines", [])),
            "parameters": json.dumps(schema, indent=2, ensure_ascii=False) if schema else "",
        }
        create_record(Tool, self.workspace, values, by=self.by)

    def load_agent(self, entry: dict[str, Any]) -> None:
        if self.exists(Agent, slug=entry["slug"]):
            return
        links = {"identity": Identity, "soul": Soul, "user_profile": UserProfile, "parent": Agent}
        linked = {name: self.get(model, slug=entry[name]) for name, model in links.items() if entry.get(name)}
        lists = {
            "tools": [self.get(Tool, name=name) for name in entry["tools"]],
            "planning_tools": [self.get(Tool, name=name) for name in entry["planning_tools"]],
            "channels": [self.get(Channel, slug=slug) for slug in entry["channels"]],
        }
        agent = create_record(Agent, self.workspace, entry | linked | lists, by=self.by)
        for duty in entry["responsibilities"]:
            add_responsibility(self.workspace, duty | {"agent": agent}, by=self.by)

    def load_prompt_settings(self, entry: dict[str, Any]) -> None:
        agent = self.get(Agent, slug=entry["agent"])
        channel = self.get(Channel, slug=entry["channel"]) if "channel" in entry else None
        if find_level_settings(self.workspace, agent, channel) is not None:
            return
        values = entry["values"]
        if sample := entry.get("sample_data"):
            values = values | {"sample_data": json.dumps(sample, indent=2, ensure_ascii=False)}
        put_settings(self.workspace, values, expected=0, by=self.by, agent=agent, channel=channel)

    def load_skill(self, entry: dict[str, Any]) -> None:
        if self.exists(Skill, name=entry["name"]):
            return
        users = [agent["slug"] for agent in read_demo_data("agents") if entry["name"] in agent["skills"]]
        agents = list(Agent.objects.in_workspace(self.workspace).filter(slug__in=users))
        create_record(Skill, self.workspace, entry | {"agents": agents}, by=self.by)

    def load_task(self, entry: dict[str, Any]) -> None:
        if self.exists(Task, title=entry["title"]):
            return
        steps = [{"title": step["title"], "is_done": step["done"]} for step in entry["steps"]]
        agent = self.get(Agent, slug=entry["agent"]) if entry.get("agent") else None
        create_task(self.workspace, entry | {"steps": steps, "agent": agent}, by=self.by)

    def load_memories(self) -> None:
        """Create each memory as its author, then supersede or revoke it, for a consistent history."""
        new_entries = {
            entry["key"]: entry
            for entry in read_demo_data("memories")
            if not self.exists(Memory, text=entry["text"])
        }
        rows = {key: self.load_memory(entry) for key, entry in new_entries.items()}
        for key, entry in new_entries.items():
            newer = self.find_successor(entry["superseded_by"], rows) if "superseded_by" in entry else None
            if newer:
                supersede_memory(rows[key], newer, by=self.by)
            elif entry["status"] in (MemoryStatus.SUPERSEDED, MemoryStatus.REVOKED):
                revoke_memory(rows[key], by=self.by)

    def find_successor(self, key: str, rows: dict[str, Memory]) -> Memory | None:
        """Return the memory with this key: created in this run, or active with the same text already."""
        [text] = [entry["text"] for entry in read_demo_data("memories") if entry["key"] == key]
        active = Memory.objects.in_workspace(self.workspace).filter(status=MemoryStatus.ACTIVE)
        return rows.get(key) or active.filter(text=text).first()

    def load_memory(self, entry: dict[str, Any]) -> Memory:
        kind, _, bot = entry["author"].partition("bot:")
        author = Actor.bot(bot) if bot else Actor.person(self.users[kind])
        proposed = entry["status"] == MemoryStatus.PROPOSED
        values = {
            "text": entry["text"],
            "agent": self.get(Agent, slug=entry["agent"]) if entry.get("agent") else None,
            "status": MemoryStatus.PROPOSED if proposed else MemoryStatus.ACTIVE,
            "source": entry.get("source", ""),
            "valid_from": parse_demo_timestamp(entry.get("valid_from")),
            "valid_until": parse_demo_timestamp(entry.get("valid_until")),
        }
        row = create_memory(self.workspace, values, by=author)
        # A bot can only propose; the owner approves the memory, unless the demo keeps it proposed.
        return (
            approve_memory(row, by=self.by) if row.status == MemoryStatus.PROPOSED and not proposed else row
        )


def parse_demo_timestamp(text: str | None) -> datetime | None:
    """Parse an ISO date or time; the default time zone applies if it has none."""
    if not text:
        return None
    timestamp = datetime.fromisoformat(text)
    return make_aware(timestamp) if timestamp.tzinfo is None else timestamp
