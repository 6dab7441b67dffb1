"""Parse docker-compose.yml and the Dockerfile: environment, command and health check of each service."""

import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from tests.project.deployment.production_settings import ROOT

# ${NAME}, ${NAME:-default} and ${NAME:?message}, as compose substitutes them.
VARIABLE = re.compile(r"\$\{(\w+)(?::-([^${}]*)|:\?[^${}]*)?\}")
APP = ("migrate", "web", "worker", "webhooks", "clock", "long", "beat")
WORKERS = ("worker", "webhooks", "clock", "long")


@cache
def composed(name: str = "docker-compose.yml") -> dict[str, Any]:
    """Return the file with anchors and merges resolved, and variables not substituted."""
    read: dict[str, Any] = yaml.safe_load((ROOT / name).read_text())
    return read


def services() -> dict[str, dict[str, Any]]:
    services: dict[str, dict[str, Any]] = composed()["services"]
    return services


def filled(text: object, variables: dict[str, str]) -> str:
    """Substitute variables, the innermost first: a default may contain another variable."""
    result = VARIABLE.sub(lambda match: variables.get(match[1]) or match[2] or "", str(text))
    return result if result == str(text) else filled(result, variables)


def env_file(text: str) -> dict[str, str]:
    """Parse a file of variables, including empty ones, which compose passes on."""
    return dict(re.findall(r"^([A-Z_]+)=(.*)$", text, re.MULTILINE))


@dataclass(frozen=True)
class Image:
    """The instructions of a stage of the Dockerfile."""

    instructions: list[tuple[str, str]]

    def all(self, word: str) -> list[str]:
        return [rest for name, rest in self.instructions if name == word]

    @property
    def environment(self) -> dict[str, str]:
        return dict(re.findall(r"(\w+)=(\S+)", " ".join(self.all("ENV"))))

    @property
    def command(self) -> list[str]:
        command: list[str] = json.loads(self.all("CMD")[-1])
        return command

    @property
    def health_check(self) -> list[str]:
        command: list[str] = json.loads(self.all("HEALTHCHECK")[-1].partition("CMD ")[2])
        return command


@cache
def stages() -> list[Image]:
    """Return all stages; the last one is the image that runs."""
    text = re.sub(r"^\s*#.*\n", "", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE)
    lines = [line.split(None, 1) for line in text.replace("\\\n", " ").splitlines() if line.strip()]
    images: list[Image] = []
    for word, rest in lines:
        if word == "FROM":
            images.append(Image([]))
        if images:
            images[-1].instructions.append((word, rest.strip()))
    return images


def image() -> Image:
    return stages()[-1]


def environment_of(service: str, dotenv: dict[str, str]) -> dict[str, str]:
    """Return the environment of a service: from the image, overridden by .env, then by the compose file."""
    variables = {name: filled(value, dotenv) for name, value in services()[service]["environment"].items()}
    return image().environment | dotenv | variables


def command_of(service: str) -> list[str]:
    return services()[service].get("command") or image().command


def health_check_of(service: str) -> list[str]:
    health_check = services()[service].get("healthcheck")
    if health_check is None:
        return image().health_check
    return [] if health_check.get("disable") else health_check["test"][1:]


def build_step() -> str:
    """Return the last build step, which runs on the files of the product."""
    return stages()[-2].all("RUN")[-1]


def copied_into_image() -> list[str]:
    """Return the paths that the Dockerfile copies from this folder."""
    taken = [rest for stage in stages() for rest in stage.all("COPY") if not rest.startswith("--from")]
    return [word.rstrip("/") for rest in taken for word in rest.split()[:-1]]


def let_through(ignore: str) -> set[str]:
    """Return the paths that .dockerignore includes; its star excludes everything else."""
    return {line[1:].rstrip("/") for line in ignore.splitlines() if line.startswith("!")}


def held_back(ignore: str) -> list[str]:
    allowed = let_through(ignore)
    return [
        name for name in copied_into_image() if name not in allowed and Path(name).parts[0] not in allowed
    ]
