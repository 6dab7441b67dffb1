"""Run the services of docker-compose.yml without a container engine."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from signal import SIGKILL
from urllib.parse import urlsplit

import httpx
import psycopg

from project.supervisor.supervisor import signal_process_group, start_process
from prompts.proof.signing_keys import dump_private_key, dump_public_key, generate_signing_key
from tests.clients.live import free_port
from tests.project.deployment.compose import (
    build_step,
    command_of,
    copied_into_image,
    environment_of,
    health_check_of,
)
from tests.project.deployment.production_settings import ROOT

PROGRAMS = Path(sys.executable).parent
APP_ROLE = "dramatis_app"
# Creates a workspace with an agent and prints an API key.
FIRST_BOT = """
from personas.actors import Actor
from personas.models import Agent, Channel, User
from personas.api_keys.services import create_key
from personas.records.services import create_record
from personas.workspaces.services import create_workspace
owner = User.objects.create_user("alice@example.com")
home, by = create_workspace("Harbour", "harbour", owner=owner), Actor.person(owner)
deck = Channel.objects.in_workspace(home).get(slug="web")
values = {"slug": "pilot", "name": "Pilot", "channels": [deck]}
create_record(Agent, home, values, by=by)
print(create_key(home, "Bot", {}, by=by)[1])
"""


@dataclass
class Installation:
    """An installation in a folder: the files of the image, and the files that its services write."""

    folder: Path
    database_url: str
    redis_url: str
    port: int = field(default_factory=free_port)
    running: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict)

    @property
    def app(self) -> Path:
        return self.folder / "app"

    def build(self) -> None:
        """Copy only what the Dockerfile copies, so that a forgotten file is missing here too."""
        self.app.mkdir()
        for name in copied_into_image():
            if (ROOT / name).is_dir():
                # With bytecode, as in the image, which is read-only.
                shutil.copytree(ROOT / name, self.app / name)
            elif not name.startswith("requirements"):
                shutil.copy2(ROOT / name, self.app)
        self.write_secrets()

    def write_secrets(self) -> None:
        (self.folder / "secrets").mkdir()
        (self.folder / "checkpoints").mkdir()
        self.secret("postgres_password", "any")
        # The test servers need no password, and several installations may share this role.
        self.secret("app_password", "")
        self.secret("secret_key", "k" * 64)
        key = generate_signing_key()
        self.secret("signing_key.pem", dump_private_key(key).decode())
        self.secret("signing_key.pub", dump_public_key(key.public_key()))

    def finish(self) -> "subprocess.CompletedProcess[str]":
        """Run the last build step of the image: static files and bytecode."""
        script = build_step().replace("/venv/bin/python", sys.executable).replace("/app", str(self.app))
        basics = {"PATH": os.environ["PATH"]}
        return subprocess.run(
            ["sh", "-ec", script], cwd=self.app, env=basics, capture_output=True, text=True, check=False
        )

    def secret(self, name: str, content: str) -> None:
        (self.folder / "secrets" / name).write_text(content)

    def dotenv(self) -> dict[str, str]:
        """Return the content of .env."""
        return {
            "DATABASE_URL": with_role(self.database_url, APP_ROLE),
            "DATABASE_OWNER_URL": self.database_url,
            "REDIS_URL": self.redis_url,
            "PUBLIC_URL": "https://dramatis.example",
            "ALLOWED_HOSTS": "dramatis.example",
            "EMAIL_HOST": "localhost",
            "DRAMATIS_TRUSTED_PROXIES": "1",
            # One worker starts faster and is enough here.
            "GRANIAN_WORKERS": "1",
        }

    def environment(self, service: str) -> dict[str, str]:
        """Return the environment from compose, with the paths, servers and port of this installation."""
        dotenv = self.dotenv()
        variables = {
            name: self.placed(service, value) for name, value in environment_of(service, dotenv).items()
        }
        (self.folder / f"tmp-{service}").mkdir(exist_ok=True)
        own = {"PATH": f"{PROGRAMS}:{os.environ['PATH']}", "TMPDIR": str(self.folder / f"tmp-{service}")}
        own |= {"GRANIAN_PORT": str(self.port), "GRANIAN_HOST": "127.0.0.1"}
        return variables | own | {"DRAMATIS_CHECKPOINT_DIR": str(self.folder / "checkpoints")}

    def placed(self, service: str, word: str) -> str:
        """Map a path of the container to this installation; return anything else unchanged."""
        places = {"/run/secrets/": "secrets", "/app/": "app", "/tmp/": f"tmp-{service}"}  # noqa: S108
        for place, own in places.items():
            if f"{word}/".startswith(place):
                return str(self.folder / own / word.removeprefix(place.rstrip("/")).lstrip("/"))
        return word

    def command(self, service: str) -> list[str]:
        return [self.placed(service, word) for word in command_of(service)]

    def run(self, service: str, command: list[str] | None = None) -> "subprocess.CompletedProcess[str]":
        arguments = command or self.command(service)
        env = self.environment(service)
        program = shutil.which(arguments[0], path=env["PATH"]) or arguments[0]
        return subprocess.run(
            [program, *arguments[1:]],
            cwd=self.app,
            env=env,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    def start(self, service: str) -> None:
        env, arguments = self.environment(service), self.command(service)
        program = shutil.which(arguments[0], path=env["PATH"]) or arguments[0]
        with self.log(service).open("wb") as output:
            # The working directory determines the location of the product, as in the image.
            shell = ["sh", "-c", 'cd "$0" && exec "$@"', str(self.app), program, *arguments[1:]]
            self.running[service] = start_process(shell, env=env, output=output)

    def log(self, service: str) -> Path:
        return self.folder / f"{service}.log"

    def is_well(self, service: str) -> bool:
        return self.run(service, health_check_of(service)).returncode == 0

    def wait_until_well(self, service: str, seconds: float = 60) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and self.running[service].poll() is None:
            if self.is_well(service):
                return
            time.sleep(0.25)
        raise AssertionError(f"{service} is not well: {self.log(service).read_text()[-3_000:]}")

    def get(self, path: str, **headers: str) -> httpx.Response:
        """Send a request as a proxy with TLS forwards it."""
        sent = {"Host": "dramatis.example", "X-Forwarded-Proto": "https", "X-Forwarded-For": "192.0.2.1"}
        return httpx.get(f"http://127.0.0.1:{self.port}{path}", headers=sent | headers, timeout=20)

    def end(self) -> None:
        for process in self.running.values():
            signal_process_group(process, SIGKILL)
            process.wait()


def with_role(url: str, name: str) -> str:
    parts = urlsplit(url)
    return parts._replace(netloc=f"{name}@{parts.netloc.rpartition('@')[2]}").geturl()


@contextmanager
def own_database(name: str, template: str | None = None) -> Iterator[str]:
    """Create a database on the test server: empty, or from a template."""
    url = os.environ["DATABASE_URL"]
    with psycopg.connect(url, autocommit=True) as server:
        server.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        server.execute(f"CREATE DATABASE {name} TEMPLATE {template or 'template1'}")
    try:
        yield urlsplit(url)._replace(path=f"/{name}").geturl()
    finally:
        with psycopg.connect(url, autocommit=True) as server:
            server.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
