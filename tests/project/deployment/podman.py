"""Run the services of docker-compose.yml in containers of podman, from an image that was built before."""

import os
import shlex
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import httpx

from tests.project.deployment.compose import command_of, filled, health_check_of, services
from tests.project.deployment.containers import Installation

PASSWORD_FILES = {"postgres_password": "the-owners", "app_password": "the-apps"}
USER = 10001


def image_name() -> str:
    return os.environ.get("TEST_IMAGE", "localhost/dramatis")


def find_missing_requirement() -> str:
    """Return why the image cannot be tested here, or an empty string."""
    if not shutil.which("podman"):
        return "podman is not installed"
    if os.getuid() != 0:
        return "podman is not run as root"
    if podman("image", "exists", image_name()).returncode:
        return f"podman has no image {image_name()}: build it, or name another one in TEST_IMAGE"
    return ""


def podman(*arguments: object, timeout: float = 180) -> "subprocess.CompletedProcess[str]":
    """Run podman; with TEST_TRANSCRIPT, append the command and its output to that file."""
    runtime = ["--runtime", "runc"] if shutil.which("runc") else []
    command = ["podman", *runtime, "--cgroup-manager", "cgroupfs", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=timeout)
    output = (done.stdout + done.stderr).strip()[-1_500:]
    write_transcript(f"$ {shlex.join(command)}\n{output}\n[exit {done.returncode}]")
    return done


def write_transcript(text: str) -> None:
    if path := os.environ.get("TEST_TRANSCRIPT"):
        with Path(path).open("a") as file:
            file.write(f"{text}\n\n")


@dataclass
class PodmanInstallation(Installation):
    """An installation whose services are containers; they reach the servers through the host's network."""

    def prepare(self) -> None:
        """Write the secrets, and folders that belong to the user of the image."""
        for name in ("app", "backups"):
            (self.folder / name).mkdir()
        self.write_secrets()
        for name, content in PASSWORD_FILES.items():
            self.secret(name, content)
        self.folder.chmod(0o755)
        for name in ("checkpoints", "backups"):
            os.chown(self.folder / name, USER, USER)

    def name(self, service: str) -> str:
        return f"dramatis-test-{os.getpid()}-{service}"

    def placed(self, service: str, word: str) -> str:
        return word

    def environment(self, service: str) -> dict[str, str]:
        own = {"GRANIAN_PORT": str(self.port), "GRANIAN_HOST": "127.0.0.1"}
        # The image's own variables are left to the image, apart from those that compose repeats.
        variables = super().environment(service)
        named = {*services()[service]["environment"], *self.dotenv()}
        container_paths = {"DRAMATIS_CHECKPOINT_DIR": "/app/checkpoints"}
        return {name: variables[name] for name in named} | own | container_paths

    def options(self, service: str) -> list[str]:
        """Translate the compose file into options of podman; memory limits and `init` are left out."""
        row = services()[service]
        options = ["--network", "host", "--ulimit", "nofile=1024:1024", "--ulimit", "nproc=4096:4096"]
        options += ["--no-healthcheck", "--user", row["user"], "--cap-drop", *row["cap_drop"]]
        options += ["--security-opt", "no-new-privileges", "--tmpfs", row["tmpfs"][0]]
        options += ["--read-only", "--read-only-tmpfs=false"] if row["read_only"] else []
        for name in row["secrets"]:
            options += ["--volume", f"{self.folder}/secrets/{name}:/run/secrets/{name}:ro"]
        for volume in row.get("volumes", []):
            source, target = filled(volume, {"SOURCES_FOLDER": "app"}).split(":", 1)
            options += ["--volume", f"{self.folder}/{source}:{target}"]
        for name, value in sorted(self.environment(service).items()):
            options += ["--env", f"{name}={value}"]
        return options

    def run(
        self, service: str, command: list[str] | None = None, *options: str
    ) -> "subprocess.CompletedProcess[str]":
        """Run a command in a new container of a service, as `docker compose run --rm` does."""
        arguments = command or command_of(service)
        return podman("run", "--rm", *self.options(service), *options, image_name(), *arguments)

    def execute(self, service: str, *command: str) -> "subprocess.CompletedProcess[str]":
        return podman("exec", self.name(service), *command)

    def start(self, service: str) -> None:
        # The command of the image itself, where compose names none.
        command = services()[service].get("command", [])
        done = podman(
            "run", "--detach", "--name", self.name(service), *self.options(service), image_name(), *command
        )
        assert done.returncode == 0, done.stderr

    def is_well(self, service: str) -> bool:
        return self.execute(service, *health_check_of(service)).returncode == 0

    def wait_until_well(self, service: str, seconds: float = 90) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if self.is_well(service):
                return
            time.sleep(1)
        logs = podman("logs", "--tail", 40, self.name(service))
        raise AssertionError(f"{service} is not well: {logs.stdout}{logs.stderr}")

    def stop(self, service: str) -> int:
        """Send SIGTERM and return the exit code."""
        podman("stop", "--time", 60, self.name(service))
        return int(podman("inspect", "--format", "{{.State.ExitCode}}", self.name(service)).stdout)

    def get(self, path: str, **headers: str) -> httpx.Response:
        answer = super().get(path, **headers)
        write_transcript(f"GET {path}\n{answer.status_code} {answer.text[:300]}")
        return answer

    def end(self) -> None:
        for service in services():
            podman("rm", "--force", "--ignore", "--time", 5, self.name(service))
