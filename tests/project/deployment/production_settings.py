"""Read the settings under another environment, in a separate process."""

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]

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

# Fork server: third-party imports of the settings are loaded once, because they take most of the time; each
# request is handled by a forked child that has not imported our code yet.
SERVE = """
import json, os, sys, tempfile, traceback
import celery.app, django.contrib.admin.options, django_structlog.celery.steps, kombu.transport.redis

def read(environment, names):
    os.environ.clear()
    os.environ.update(environment)
    import project.settings as s
    named = names or [name for name in dir(s) if name.isupper()]
    print(json.dumps({name: getattr(s, name) for name in named}, default=str), flush=True)

for line in sys.stdin:
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        child = os.fork()
        if not child:
            os.dup2(out.fileno(), 1)
            os.dup2(err.fileno(), 2)
            try:
                read(*json.loads(line))
            except BaseException:
                traceback.print_exc()
                sys.stderr.flush()
                os._exit(1)
            os._exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        out.seek(0)
        err.seek(0)
        print(json.dumps([status, out.read(), err.read()]), flush=True)
"""


@cache
def reader() -> "subprocess.Popen[str]":
    """Start the fork server; it ends with this process."""
    command = [sys.executable, "-c", SERVE]
    basics = {"PATH": os.environ["PATH"]}
    return subprocess.Popen(
        command, cwd=ROOT, env=basics, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def run_settings(environment: dict[str, str], *names: str) -> "subprocess.CompletedProcess[str]":
    """Read settings; only the variables that a program needs to start are passed on from this run."""
    basics = {"PATH": os.environ["PATH"], "DRAMATIS_VAR": os.environ["DRAMATIS_VAR"]}
    process = reader()
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps([basics | environment, names]) + "\n")
    process.stdin.flush()
    status, output, errors = json.loads(process.stdout.readline())
    return subprocess.CompletedProcess([*names], status, output, errors)


def settings_under(environment: dict[str, str], *names: str) -> dict[str, Any]:
    everything = all_settings(tuple(sorted(environment.items())))
    return {name: everything[name] for name in names}


@cache
def all_settings(environment: tuple[tuple[str, str], ...]) -> dict[str, Any]:
    """Read all settings once for each environment, which is as fast as reading one."""
    done = run_settings(dict(environment))
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result
