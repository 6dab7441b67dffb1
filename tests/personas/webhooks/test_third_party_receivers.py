"""Libraries of others verify a delivery: standardwebhooks (PyPI, npm) and svix.

They are no dependencies of the product or its tests. WEBHOOK_LIBRARIES names a folder with a virtual
environment `venv` (standardwebhooks, svix) and `node_modules` (standardwebhooks).
"""

import base64
import json
import os
import subprocess
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import time_machine
from django.utils import timezone

from personas.actors import Actor
from personas.events.services import record_event
from personas.models import WebhookDelivery
from personas.webhooks.deliver import DeliveryLoop
from personas.webhooks.services import create_endpoint, redeliver, rotate_secret
from tests.personas.webhooks.receivers import Received, receiving

FOLDER = Path(os.environ.get("WEBHOOK_LIBRARIES", "/nonexistent"))
pytestmark = [
    pytest.mark.hard,
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(not FOLDER.exists(), reason="WEBHOOK_LIBRARIES names no folder"),
]
PYTHON = """
import json, sys
from {} import Webhook
data = json.load(sys.stdin)
Webhook(data["s"]).verify(data["b"], data["h"])
"""
NODE = """
const { Webhook } = require("standardwebhooks");
const { s, b, h } = JSON.parse(require("fs").readFileSync(0));
new Webhook(s).verify(b, h);
"""
COMMANDS = {
    "standardwebhooks": [str(FOLDER / "venv/bin/python"), "-c", PYTHON.format("standardwebhooks")],
    "svix": [str(FOLDER / "venv/bin/python"), "-c", PYTHON.format("svix.webhooks")],
    "standardwebhooks of npm": ["node", "-e", NODE],
}
CHANGE = {"kind": "soul", "id": 1, "revision": 1, "action": "edited"}


@pytest.fixture(autouse=True)
def local_receivers(settings: Any) -> None:
    settings.DRAMATIS_OUTGOING_ALLOWED = ["127.0.0.0/8"]


def verify(command: list[str], request: Received, secret: str, body: str = "") -> bool:
    headers = {name: value for name, value in request.headers.items() if name.startswith("webhook-")}
    data = json.dumps({"s": secret, "b": body or request.body.decode(), "h": headers})
    result = subprocess.run(
        command, input=data.encode(), cwd=FOLDER, capture_output=True, check=False, timeout=30
    )
    return result.returncode == 0


@pytest.mark.parametrize("name", COMMANDS)
def test_a_library_verifies_a_delivery_and_rejects_what_was_changed(workspace, name):
    command, by = COMMANDS[name], Actor("alice")
    with receiving() as receiver:
        endpoint, secret = create_endpoint(workspace, {"name": "Desk", "url": receiver.url}, by=by)
        record_event(workspace, "record.changed", CHANGE)
        DeliveryLoop().run()
        _, new = rotate_secret(endpoint, by=by)
        record_event(workspace, "record.changed", CHANGE)
        DeliveryLoop().run()
        redeliver(WebhookDelivery.objects.in_workspace(workspace).select_related("endpoint")[0], by=by)
        with time_machine.travel(timezone.now() + timedelta(minutes=6)):
            DeliveryLoop().run()
    first, during, early = receiver.received
    other = "whsec_" + base64.b64encode(b"x" * 32).decode()
    assert verify(command, first, secret)
    assert not verify(command, first, secret, first.body.decode().replace("edited", "edites"))
    assert not verify(command, first, other)
    assert not verify(command, first, new)
    assert verify(command, during, secret)
    assert verify(command, during, new)
    # Its timestamp is six minutes away from the clock of the library.
    assert not verify(command, early, new)
