"""The built image: each service runs in a container of podman with the restrictions of docker-compose.yml."""

import json
import os
import shutil
import subprocess
import time
from pathlib import Path

import psycopg
import pytest

from project.supervisor.supervisor import start_process
from project.supervisor.valkey import find_valkey_server
from tests.clients.live import free_port
from tests.project.deployment.compose import WORKERS, command_of
from tests.project.deployment.containers import FIRST_BOT
from tests.project.deployment.podman import (
    PASSWORD_FILES,
    PodmanInstallation,
    find_missing_requirement,
    image_name,
    podman,
)
from tests.servers import postgres_programs, unprivileged

LASTING = ("web", *WORKERS, "beat")
MAX_IMAGE_BYTES = 400_000_000

pytestmark = pytest.mark.hard


@pytest.fixture(scope="module", autouse=True)
def requirements():
    if reason := find_missing_requirement():
        pytest.skip(f"NOT RUN: the image was not tested in containers: {reason}")


@pytest.fixture(scope="module")
def postgres_url(tmp_path_factory):
    """Start PostgreSQL with passwords on loopback: the wheel's, or that of TEST_POSTGRES_PROGRAMS."""
    folder = Path(f"/tmp/drm-image-{os.getpid()}")  # noqa: S108  # paths of sockets must be short
    folder.mkdir()
    account, port = unprivileged(), free_port()
    programs = Path(os.environ.get("TEST_POSTGRES_PROGRAMS") or postgres_programs(folder))
    (folder / "password").write_text(PASSWORD_FILES["postgres_password"])
    if account:
        shutil.chown(folder, account["user"], account["group"])
    run = {"cwd": folder, "stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, **account}
    initdb: list[str | Path] = [
        "-D",
        folder / "data",
        "-U",
        "dramatis",
        "-A",
        "scram-sha-256",
        "--pwfile",
        folder / "password",
    ]
    subprocess.run([programs / "initdb", *initdb, "--no-sync", "--locale=C.UTF-8"], check=True, **run)
    listen = ["-c", "listen_addresses=127.0.0.1", "-p", str(port), "-c", "max_connections=100"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [programs / "postgres", "-D", folder / "data", "-k", folder, *listen], stderr=log, **run
        )
    url = f"postgresql://dramatis@127.0.0.1:{port}/dramatis"
    owner = url.replace("@", f":{PASSWORD_FILES['postgres_password']}@")
    for _ in range(100):
        try:
            with psycopg.connect(owner.removesuffix("dramatis") + "postgres", autocommit=True) as server:
                server.execute("CREATE DATABASE dramatis")
            break
        except psycopg.OperationalError:
            time.sleep(0.1)
    yield url
    process.terminate()
    process.wait(20)
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def valkey_url(tmp_path_factory):
    port, folder = free_port(), tmp_path_factory.mktemp("vk")
    command: list[str | Path] = [
        find_valkey_server(),
        *command_of("valkey")[1:],
        "--bind",
        "127.0.0.1",
        "--port",
        str(port),
    ]
    process = start_process([*command, "--dir", folder], output=subprocess.DEVNULL)
    yield f"redis://127.0.0.1:{port}/0"
    process.terminate()
    process.wait(10)


@pytest.fixture(scope="module")
def installation(postgres_url, valkey_url):
    # Not in pytest's folder, which the user of the image may not enter.
    folder = Path(f"/tmp/drm-podman-{os.getpid()}")  # noqa: S108
    folder.mkdir()
    installation = PodmanInstallation(folder, postgres_url, valkey_url)
    installation.prepare()
    try:
        yield installation
    finally:
        installation.end()
        shutil.rmtree(folder)


def test_the_image_is_small_and_nothing_in_it_is_setuid_or_writable(installation):
    size = int(podman("image", "inspect", "--format", "{{.Size}}", image_name()).stdout)
    assert size < MAX_IMAGE_BYTES
    steps = [
        "id -u; id -g; grep -E 'CapEff|NoNewPrivs' /proc/self/status | tr -d '\\t'",
        "find / -xdev -type f -perm /6000 2>/dev/null | wc -l",
        "touch /app/x || touch /venv/x || echo read-only",
        "which pip uv gcc; touch /tmp/x && echo scratch",
    ]
    done = installation.run("web", ["sh", "-c", "; ".join(steps)])
    expected = ["10001", "10001", "CapEff:0000000000000000", "NoNewPrivs:1", "0", "read-only", "scratch"]
    assert done.stdout.split() == expected, done.stderr


def test_every_service_starts_is_well_serves_bots_is_backed_up_and_ends_when_asked(installation):
    migrated = installation.run("migrate")
    assert migrated.returncode == 0, migrated.stderr
    for service in LASTING:
        installation.start(service)
    for service in LASTING:
        installation.wait_until_well(service)
    assert installation.get("/healthz").status_code == 200
    assert installation.get("/readyz").json()["status"] == "ok"
    serves_bots(installation)
    enforces_row_level_security(installation)
    backs_up(installation)
    assert {service: installation.stop(service) for service in LASTING} == dict.fromkeys(LASTING, 0)


def serves_bots(installation: PodmanInstallation) -> None:
    created = installation.execute("web", "python", "manage.py", "shell", "-v", "0", "-c", FIRST_BOT)
    assert created.returncode == 0, created.stderr
    key = {"Authorization": f"Bearer {created.stdout.split()[-1]}"}
    answer = installation.get("/api/v1/agents/pilot/channels/web/prompt?label=latest", **key)
    assert answer.status_code == 200, answer.text


def enforces_row_level_security(installation: PodmanInstallation) -> None:
    done = installation.execute("clock", "python", "manage.py", "doctor", "--json")
    findings = {row["name"]: row for row in json.loads(done.stdout)["findings"]}
    assert findings["row-level security"]["state"] == "ok", findings


def backs_up(installation: PodmanInstallation) -> None:
    volume = f"{installation.folder}/backups:/backups"
    done = installation.run("migrate", ["python", "manage.py", "backup", "/backups/one"], "--volume", volume)
    assert done.returncode == 0, done.stderr
    assert (installation.folder / "backups" / "one").is_dir()
