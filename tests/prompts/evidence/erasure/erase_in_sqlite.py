"""Program for a test: erase a memory in a SQLite database, then search its files for the text.

The search runs in the same process, because the last connection that closes removes the write-ahead log.
Prints the names of the files that contained the text before and after the erasure as JSON.
"""

import json
import os
import sqlite3
import sys
from pathlib import Path

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")

import django

django.setup()

from django.conf import settings  # noqa: E402
from django.core.management import call_command  # noqa: E402

from personas.models import Memory, Workspace  # noqa: E402
from personas.records.services import edit_record  # noqa: E402
from prompts.evidence.erasure.services import erase_record  # noqa: E402
from prompts.publishing.builds.services import rebuild_agents  # noqa: E402
from tests.factories import BY, make_agent, make_channel, make_memory, make_user, make_workspace  # noqa: E402

# Longer than a page, so that the text also uses overflow pages.
CANARY = "Mrs Penhaligon keeps her spare key under the third flowerpot."
TEXT = f"{CANARY} " * 30


def list_files_with_text() -> list[str]:
    path = Path(settings.DATABASES["default"]["NAME"])
    files = sorted(path.parent.glob(f"{path.name}*"))
    return [
        file.name.removeprefix(path.name) or "main" for file in files if CANARY.encode() in file.read_bytes()
    ]


def main() -> None:
    call_command("migrate", verbosity=0)
    workspace: Workspace = make_workspace("Canary Bay", owner=make_user("Canary"))
    agent = make_agent(workspace, "pilot", channels=[make_channel(workspace, "deck")])
    memory: Memory = make_memory(workspace, TEXT)
    rebuild_agents(workspace, [agent.pk])
    memory = edit_record(memory, {"text": f"{TEXT} Still."}, expected=memory.revision, by=BY)
    rebuild_agents(workspace, [agent.pk])
    # Another process with an open connection, as a web server has; it reads nothing at the moment.
    other = sqlite3.connect(settings.DATABASES["default"]["NAME"])
    other.execute("SELECT count(*) FROM personas_memory").fetchall()
    before = list_files_with_text()
    erase_record(memory, reason="Requested", by=BY)
    result = {"before": before, "after": list_files_with_text()}
    other.close()
    sys.stdout.write(f"{json.dumps(result)}\n")


main()
