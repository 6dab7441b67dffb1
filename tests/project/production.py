"""Ask what the settings say under another environment, in a process of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]

COMPLETE = {
    "DRAMATIS_ENV": "production",
    "SECRET_KEY": "k" * 60,
    "PUBLIC_URL": "https://dramatis.example",
    "ALLOWED_HOSTS": "dramatis.example",
    "DATABASE_URL": "postgresql://u:p@db/dramatis",
    "REDIS_URL": "redis://redis/0",
    "EMAIL_HOST": "mail.example",
    "DRAMATIS_SIGNING_KEY": "/run/secrets/signing_key.pem",
}

READ = """
import json, sys
import project.settings as s
print(json.dumps({name: getattr(s, name) for name in sys.argv[1:]}, default=str))
"""


def run_settings(environment: dict[str, str], *names: str) -> "subprocess.CompletedProcess[str]":
    """Nothing of this run's environment is passed on but what a program needs to start."""
    basics = {"PATH": os.environ["PATH"], "DRAMATIS_VAR": os.environ["DRAMATIS_VAR"]}
    command = [sys.executable, "-c", READ, *names]
    return subprocess.run(
        command, cwd=ROOT, env=basics | environment, capture_output=True, text=True, check=False
    )


def settings_under(environment: dict[str, str], *names: str) -> dict[str, Any]:
    done = run_settings(environment, *names)
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result
