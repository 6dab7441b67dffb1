"""Brings the cast on stage through the same verbs people use; what is there already is left alone."""

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
from personas.memories.services import approve_memory, create_memory, revoke_memory, supersede_memory
from personas.models import (
    Agent,
    Channel,
    Identity,
    Membership,
    Memory,
    MemoryState,
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
from prompts.demo import DEMO_PASSWORD
from prompts.demo.files import load_demo_files
from skills.models import Skill

# A long line followed by one that begins like the middle of a sentence, not like a point, a title or a table.
WRAPPED_LINE_PATTERN = re.compile(r"(?<=\n)([^\n]{90,})\n *(?!\d+\. )(?=[\w`“\"'(:])")


def unwrap_lines(value: Any) -> Any:
    """Texts with one line per paragraph or point, as people type them in a browser."""
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
    # Hashed once: a good hash is slow on purpose, and all five share the word.
    secret = make_password(DEMO_PASSWORD)
    people = {person["email"]: get_or_create_demo_user(person, secret) for person in company["people"]}
    owner = people[company["people"][0]["email"]]
    workspace = Workspace.objects.filter(slug=company["slug"]).first()
    if workspace is None:
        workspace = create_workspace(company["name"], company["slug"], owner=owner)
    for person in company["people"]:
        members = Membership.objects.in_workspace(workspace)
        defaults = {"workspace": workspace, "role": person["role"]}
        members.get_or_create(user=people[person["email"]], defaults=defaults)
    DemoLoader(workspace, Actor.person(owner), people).fill()
    wen = Actor.person(people["wen@example.com"])
    load_demo_files(workspace, read_demo_data("agents"), by=Actor.person(owner), wen=wen)
    return workspace


def get_or_create_demo_user(person: dict[str, str], secret: str) -> User:
    """A demo log-in with a verified address."""
    user = User.objects.filter(email=person["email"]).first()
    if user is None:
        user = User.objects.create(email=person["email"], password=secret, name=person["name"])
        EmailAddress.objects.create(user=user, email=user.email, verified=True, primary=True)
    return user


@transaction.atomic
def load_demo_records(workspace: Workspace, *, by: User) -> None:
    """Fill somebody's own workspace: no accounts and no files, and everything is told by that person."""
    people = {person["email"]: by for person in read_demo_data("workspace")["people"]}
    DemoLoader(workspace, Actor.person(by), people).fill()


class DemoLoader:
    """One workspace being filled, by one person."""

    def __init__(self, workspace: Workspace, by: Actor, people: dict[str, User]) -> None:
        self.workspace, self.by, self.people = workspace, by, people

    def fill(self) -> None:
        for name, model in (("identities", Identity), ("souls", Soul), ("user_profiles", UserProfile)):
            for entry in read_demo_data(name):
                if not self.has(model, slug=entry["slug"]):
                    create_named_record(model, self.workspace, entry, by=self.by)
        self.each("channels", self.channel)
        self.each("tools", self.tool)
        self.each("agents", self.agent)
        self.each("skills", self.skill)
        self.each("tasks", self.task)
        self.memories()

    def each(self, name: str, verb: Callable[[dict[str, Any]], None]) -> None:
        for entry in read_demo_data(name):
            verb(entry)

    def has(self, model: type[Any], **known: Any) -> bool:
        return bool(model.objects.in_workspace(self.workspace).filter(**known).exists())

    def one(self, model: type[Any], **known: Any) -> Any:
        return model.objects.in_workspace(self.workspace).get(**known)

    def channel(self, entry: dict[str, Any]) -> None:
        if not self.has(Channel, slug=entry["slug"]):
            create_record(Channel, self.workspace, entry, by=self.by)
            return
        row = self.one(Channel, slug=entry["slug"])
        # Only a built-in nobody has touched takes the demo's words.
        if row.revision == 1 and row.is_built_in:
            edit_record(
                row, {"formatting": entry["formatting"]}, expected=1, by=self.by, message="House rules"
            )

    def tool(self, entry: dict[str, Any]) -> None:
        if self.has(Tool, name=entry["name"]):
            return
        schema = entry.get("parameters")
        values = entry | {
            "guidelines": "\n".join(entry.get("guidelines", [])),
            "parameters": json.dumps(schema, indent=2, ensure_ascii=False) if schema else "",
        }
        create_record(Tool, self.workspace, values, by=self.by)

    def agent(self, entry: dict[str, Any]) -> None:
        if self.has(Agent, slug=entry["slug"]):
            return
        links = {"identity": Identity, "soul": Soul, "user_profile": UserProfile, "parent": Agent}
        found = {name: self.one(model, slug=entry[name]) for name, model in links.items() if entry.get(name)}
        lists = {
            "tools": [self.one(Tool, name=name) for name in entry["tools"]],
            "planning_tools": [self.one(Tool, name=name) for name in entry["planning_tools"]],
            "channels": [self.one(Channel, slug=slug) for slug in entry["channels"]],
        }
        agent = create_record(Agent, self.workspace, entry | found | lists, by=self.by)
        for duty in entry["responsibilities"]:
            add_responsibility(self.workspace, duty | {"agent": agent}, by=self.by)

    def skill(self, entry: dict[str, Any]) -> None:
        if self.has(Skill, name=entry["name"]):
            return
        users = [agent["slug"] for agent in read_demo_data("agents") if entry["name"] in agent["skills"]]
        agents = list(Agent.objects.in_workspace(self.workspace).filter(slug__in=users))
        create_record(Skill, self.workspace, entry | {"agents": agents}, by=self.by)

    def task(self, entry: dict[str, Any]) -> None:
        if self.has(Task, title=entry["title"]):
            return
        steps = [{"title": step["title"], "is_done": step["done"]} for step in entry["steps"]]
        agent = self.one(Agent, slug=entry["agent"]) if entry.get("agent") else None
        create_task(self.workspace, entry | {"steps": steps, "agent": agent}, by=self.by)

    def memories(self) -> None:
        """Each as its author told it; what came of it is told afterwards, so the history is true."""
        told_now = {
            entry["key"]: entry
            for entry in read_demo_data("memories")
            if not self.has(Memory, text=entry["text"])
        }
        rows = {key: self.memory(entry) for key, entry in told_now.items()}
        for key, entry in told_now.items():
            newer = self.successor(entry["superseded_by"], rows) if "superseded_by" in entry else None
            if newer:
                supersede_memory(rows[key], newer, by=self.by)
            elif entry["state"] in (MemoryState.SUPERSEDED, MemoryState.REVOKED):
                revoke_memory(rows[key], by=self.by)

    def successor(self, key: str, rows: dict[str, Memory]) -> Memory | None:
        """Told just now, or long ago and still believed."""
        [text] = [entry["text"] for entry in read_demo_data("memories") if entry["key"] == key]
        believed = Memory.objects.in_workspace(self.workspace).filter(state=MemoryState.ACTIVE)
        return rows.get(key) or believed.filter(text=text).first()

    def memory(self, entry: dict[str, Any]) -> Memory:
        kind, _, bot = entry["author"].partition("bot:")
        author = Actor.bot(bot) if bot else Actor.person(self.people[kind])
        proposed = entry["state"] == MemoryState.PROPOSED
        values = {
            "text": entry["text"],
            "agent": self.one(Agent, slug=entry["agent"]) if entry.get("agent") else None,
            "state": MemoryState.PROPOSED if proposed else MemoryState.ACTIVE,
            "source": entry.get("source", ""),
            "valid_from": parse_demo_timestamp(entry.get("valid_from")),
            "valid_until": parse_demo_timestamp(entry.get("valid_until")),
        }
        row = create_memory(self.workspace, values, by=author)
        # A bot can only propose; a person of the house has believed these since.
        return approve_memory(row, by=self.by) if row.state == MemoryState.PROPOSED and not proposed else row


def parse_demo_timestamp(said: str | None) -> datetime | None:
    """An ISO date or time, as a moment in UTC."""
    if not said:
        return None
    exact = datetime.fromisoformat(said)
    return make_aware(exact) if exact.tzinfo is None else exact
