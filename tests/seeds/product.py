"""The product as an admin script and a bot use it: REST and files on disk, nothing else.

Workers run in the test's process: a refresh is done when the call returns, and what earlier changes rebuild
is built before the next read.
"""

import json
import shutil
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.db import connection

from personas.models import Workspace
from skills.refresh.runs import claim_run
from skills.refresh.services import refresh_source
from tests.api_client import Api

# Every new workspace has this channel.
CHANNEL = "web"
record_numbers = count(1)


def run_commit_hooks() -> None:
    """Run the on-commit hooks of earlier calls, as a commit would: they build prompts."""
    while hooks := connection.run_on_commit:
        connection.run_on_commit = []
        for hook in hooks:
            hook[1]()


class Bot(Api):
    """The key of a bot. What earlier changes rebuild is built before each call."""

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        run_commit_hooks()
        return super().call(method, path, body, **headers)


@dataclass
class Product:
    """A workspace with one channel, an admin key, a bot key, and a folder for sources."""

    workspace: Workspace
    admin: Api
    bot: Bot
    folder: Path
    # Warnings and tool definitions of the last prompt that was served.
    warnings: list[str] = field(default_factory=list)
    tools: list[dict[str, Any]] = field(default_factory=list)
    messages: list[dict[str, Any]] = field(default_factory=list)
    # The tools of the workspace.
    stored_tools: dict[str, dict[str, Any]] = field(default_factory=dict)
    # The sources of the agents of the seed, and how each agent uses them.
    sources: dict[str, list[dict[str, str]]] = field(default_factory=dict)
    # The prompt settings of these agents.
    settings: dict[str, dict[str, Any]] = field(default_factory=dict)
    # Whether files or folders were created; the fixture then restores the folder.
    has_written: bool = False

    # --- as an admin script -------------------------------------------------------------------------

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """Call the API with the admin key and return the JSON."""
        if method == "GET":
            run_commit_hooks()
        answer = self.admin.call(method, path, body, **headers)
        data = json.loads(answer.content) if answer.content else {}
        assert answer.status_code < 300, (method, path, data)
        return data

    def create(self, collection: str, **values: Any) -> dict[str, Any]:
        created: dict[str, Any] = self.call("POST", collection, values)
        return created

    def edit(self, path: str, **values: Any) -> dict[str, Any]:
        edited: dict[str, Any] = self.call("PATCH", path, values, If_Match="*")
        return edited

    def put(self, path: str, **values: Any) -> dict[str, Any]:
        written: dict[str, Any] = self.call("PUT", path, values, If_Match="*")
        return written

    def create_agent(self, slug: str, layout: str, **values: Any) -> dict[str, Any]:
        name = slug.replace("-", " ").title()
        return self.create("agents", slug=slug, name=name, layout=layout, channels=[CHANNEL], **values)

    # --- files on disk ------------------------------------------------------------------------------

    def write(self, path: str, text: str) -> None:
        """Write a file below the folder for sources."""
        self.has_written = True
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")

    def empty(self, folder: str) -> None:
        """Remove all files of a folder."""
        self.has_written = True
        shutil.rmtree(self.folder / folder)
        (self.folder / folder).mkdir()

    def grant(self, folder: str) -> None:
        """Grant a folder to the workspace, which only an operator can do."""
        self.has_written = True
        (self.folder / folder).mkdir(parents=True, exist_ok=True)
        call_command("allow_folder", self.workspace.slug, str(self.folder / folder), verbosity=0)

    def refresh(self, source: str) -> None:
        """Request a refresh of the source by REST and run it as a worker would."""
        run = self.call("POST", f"sources/{source}:refresh", {})
        claimed = claim_run(self.workspace.pk, run["id"])
        assert claimed is not None, run
        refresh_source(claimed)

    # --- as a bot -----------------------------------------------------------------------------------

    def fetch(self, agent: str) -> str:
        """Fetch the prompt as a bot does, and return its text; `warnings` holds the warnings."""
        return self.serve("GET", f"agents/{agent}/channels/{CHANNEL}/prompt")

    def render(self, agent: str, **facts: Any) -> str:
        """Fetch the prompt with facts of a call; `channel` is another channel than the usual one."""
        channel = facts.pop("channel", CHANNEL)
        return self.serve("POST", f"agents/{agent}/channels/{channel}/prompt:render", facts)

    def serve(self, method: str, path: str, body: Any = None) -> str:
        answer = self.bot.call(method, path, body)
        data = json.loads(answer.content)
        assert answer.status_code == 200, data
        self.warnings, self.tools, self.messages = data["warnings"], data["tools"], data["messages"]
        text: str = data["text"]
        return text
