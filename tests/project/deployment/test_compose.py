"""The compose file and the Dockerfile, without a container engine: limits, health checks, users, secrets."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from project.celery import app
from project.health import liveness
from tests.project.deployment.compose import (
    APP,
    WORKERS,
    command_of,
    composed,
    copied_into_image,
    env_file,
    environment_of,
    filled,
    health_check_of,
    held_back,
    image,
    services,
    stages,
)
from tests.project.deployment.production_settings import COMPLETE, ROOT, settings_under

EXAMPLE = (ROOT / ".env.example").read_text()
OWNERS, APPS = "postgres_password", "app_password"
PRIVATE_KEY, PUBLIC_KEY = "signing_key.pem", "signing_key.pub"
SECRETS = (OWNERS, APPS, "secret_key", PRIVATE_KEY, PUBLIC_KEY)


# --- The compose file ----------------------------------------------------------------------------------


def unbounded(rows: dict) -> list[str]:
    """Return the required keys and limits that services lack."""
    required = ("restart", "logging", "deploy", "security_opt", "networks")
    lacks = [f"{name}: {key}" for name, service in rows.items() for key in required if key not in service]
    for name, service in rows.items():
        limits = service.get("deploy", {}).get("resources", {}).get("limits", {})
        lacks += [f"{name}: limit of {key}" for key in ("cpus", "memory", "pids") if key not in limits]
    return lacks


def test_every_service_has_limits_a_log_that_ends_and_a_policy_for_its_end():
    assert set(services()) == {"postgres", "valkey", *APP}
    assert not unbounded(services())
    assert all({"max-size", "max-file"} <= set(row["logging"]["options"]) for row in services().values())


@pytest.mark.planted
def test_a_service_without_limits_is_named():
    worker = {key: value for key, value in services()["worker"].items() if key not in ("deploy", "logging")}
    missing = unbounded(services() | {"worker": worker})
    assert {"worker: logging", "worker: limit of memory"} <= set(missing)
    assert all(line.startswith("worker") for line in missing)


def test_each_service_names_its_health_check():
    """Images in the OCI format, podman's default, have no health check of their own."""
    assert [name for name, service in services().items() if "healthcheck" not in service] == []
    assert health_check_of("web") == image().health_check
    times = dict(re.findall(r"--([a-z-]+)=(\w+)", image().all("HEALTHCHECK")[-1]))
    own = {key.replace("_", "-"): str(value) for key, value in services()["web"]["healthcheck"].items()}
    assert times == {key: value for key, value in own.items() if key != "test"}


def test_what_runs_long_is_watched_and_what_depends_waits():
    assert all(health_check_of(name) for name in services() if name != "migrate")
    for name in ("web", *WORKERS, "beat"):
        waits = services()[name]["depends_on"]
        assert waits["migrate"]["condition"] == "service_completed_successfully"
        assert waits["valkey"]["condition"] == "service_healthy"
    assert services()["migrate"]["depends_on"]["postgres"]["condition"] == "service_healthy"
    assert services()["migrate"]["restart"] == "no"


@pytest.mark.parametrize("name", APP)
def test_the_product_runs_as_nobody_special_on_a_root_it_cannot_write_to(name):
    service = services()[name]
    assert service["read_only"] is True
    assert service["user"] == "10001:10001" == image().all("USER")[-1]
    assert service["cap_drop"] == ["ALL"]
    assert "no-new-privileges:true" in service["security_opt"]


def test_only_the_clock_has_the_signing_key_and_only_it_and_backups_write_checkpoints():
    signers = {name for name in APP if PRIVATE_KEY in services()[name]["secrets"]}
    assert signers == {"clock"}
    variables = {name for name in APP if "DRAMATIS_SIGNING_KEY_FILE" in services()[name]["environment"]}
    assert variables == {"clock"}
    mounted = {name for name in APP if "checkpoints:/app/checkpoints" in services()[name].get("volumes", [])}
    assert mounted == {"clock", "migrate"}
    assert all(PUBLIC_KEY in services()[name]["secrets"] for name in APP)


def test_only_the_worker_that_scans_can_read_the_sources():
    mounts = {name: row for name in APP for row in services()[name].get("volumes", []) if "/sources" in row}
    assert {name: row.rpartition(":")[2] for name, row in mounts.items()} == {"worker": "ro"}
    assert "scans" in " ".join(services()["worker"]["command"])


def test_database_and_broker_are_not_reachable_from_outside():
    assert composed()["networks"]["back"]["internal"] is True
    for name in ("postgres", "valkey"):
        assert services()[name]["networks"] == ["back"]
        assert "ports" not in services()[name]
    assert [name for name in services() if "ports" in services()[name]] == ["web"]
    assert services()["web"]["ports"] == ["${WEB_ADDRESS:-127.0.0.1:8000}:8000"]


def test_the_servers_are_new_enough_and_keep_what_they_are_told():
    version = re.match(r"postgres:(\d+)-", filled(services()["postgres"]["image"], {}))
    assert version
    assert int(version[1]) >= 17
    valkey_command = " ".join(command_of("valkey"))
    assert "--appendonly yes" in valkey_command
    assert "--maxmemory-policy noeviction" in valkey_command
    postgres_command = " ".join(command_of("postgres"))
    assert "fsync" not in postgres_command
    assert "synchronous_commit" not in postgres_command
    volumes = {
        row.partition(":")[0] for name in ("postgres", "valkey") for row in services()[name]["volumes"]
    }
    assert volumes == {"postgres", "valkey"} <= set(composed()["volumes"])


def test_a_worker_may_finish_its_job_before_it_is_killed():
    assert {services()[name]["stop_grace_period"] for name in WORKERS} == {"100s"}
    limit = settings_under(COMPLETE, "CELERY_TASK_TIME_LIMIT")["CELERY_TASK_TIME_LIMIT"]
    assert limit < 100


def test_development_is_never_read_by_accident():
    """Compose reads override files automatically; ours must be named explicitly."""
    names = [f"{start}.override.{end}" for start in ("compose", "docker-compose") for end in ("yml", "yaml")]
    assert not [name for name in names if (ROOT / name).exists()]
    development = yaml.safe_load((ROOT / "docker-compose.dev.yml").read_text())["services"]
    assert set(APP) <= set(development) <= set(services())
    assert all(development[name]["environment"]["DRAMATIS_ENV"] == "development" for name in APP)
    mounted = {row.split(":")[0].removeprefix("./") for row in development["web"]["volumes"]}
    plain = ("requirements", "LICENSE", "NOTICE")
    assert mounted == {name for name in copied_into_image() if not name.startswith(plain)}


# --- Secrets and variables -----------------------------------------------------------------------------


def test_the_compose_file_contains_no_secret():
    assert set(composed()["secrets"]) == set(SECRETS)
    for name in APP:
        secrets = set(services()[name]["secrets"])
        own_secrets = {"migrate": {OWNERS}, "clock": {PRIVATE_KEY}}.get(name, set())
        assert secrets == set(SECRETS) - ({OWNERS, PRIVATE_KEY} - own_secrets)
        variables = services()[name]["environment"]
        own = {"DATABASE_APP_PASSWORD_FILE", "DRAMATIS_SIGNING_KEY_FILE"}
        assert {key for key in variables if key.endswith("_FILE")} - own == {
            *("DATABASE_PASSWORD_FILE", "SECRET_KEY_FILE", "DRAMATIS_TRUSTED_KEYS_FILE")
        }
        assert all(
            variables[key].removeprefix("/run/secrets/") in SECRETS
            for key in variables
            if key.endswith("_FILE")
        )
    ignored = (ROOT / ".gitignore").read_text().splitlines()
    assert {".env", "/secrets/"} <= set(ignored)


def test_only_migrate_connects_as_the_owner_of_the_tables():
    example = env_file(EXAMPLE)
    environments = {name: environment_of(name, example) for name in APP}
    assert {name for name in APP if "//dramatis@" in environments[name]["DATABASE_URL"]} == {"migrate"}
    assert all("//dramatis_app@" in environments[name]["DATABASE_URL"] for name in APP if name != "migrate")
    assert {
        name: Path(environment["DATABASE_PASSWORD_FILE"]).name for name, environment in environments.items()
    } == {name: OWNERS if name == "migrate" else APPS for name in APP}
    assert command_of("migrate")[-1].endswith(" && python manage.py create_db_role dramatis_app")
    elsewhere = example | {"DATABASE_URL": "postgresql://one@db/other"}
    assert environment_of("migrate", elsewhere)["DATABASE_URL"] == "postgresql://one@db/other"
    both = elsewhere | {"DATABASE_OWNER_URL": "postgresql://owner@db/other"}
    assert environment_of("migrate", both)["DATABASE_URL"] == "postgresql://owner@db/other"


def test_an_empty_line_of_the_example_takes_nothing_from_the_image():
    environment, own = environment_of("worker", env_file(EXAMPLE)), image().environment
    assert {name: environment[name] for name in own if name in environment} == own


def test_a_web_process_knows_how_many_there_are():
    own = image().environment
    assert own["GRANIAN_WORKERS"] == own["DRAMATIS_WEB_PROCESSES"]


# --- The image -----------------------------------------------------------------------------------------


def test_the_image_takes_only_what_is_let_through():
    ignore = (ROOT / ".dockerignore").read_text()
    assert "*" in ignore.splitlines()
    assert not held_back(ignore)
    assert all((ROOT / name).exists() for name in copied_into_image())
    assert not {"tests", "dev.py", ".git", "docs", "var"} & set(copied_into_image())


@pytest.mark.planted
def test_a_folder_that_is_held_back_is_named():
    ignore = (ROOT / ".dockerignore").read_text().replace("!locale/\n", "")
    assert held_back(ignore) == ["locale"]


def test_what_runs_has_no_tools_to_build_with():
    assert "slim" in (ROOT / "Dockerfile").read_text()
    assert image().all("COPY") == ["--from=build /venv /venv", "--from=product /app /app"]
    steps = " ".join(image().all("RUN"))
    assert "apt" not in steps
    assert "pip uninstall" in steps
    installs = [rest for stage in stages() for rest in stage.all("RUN") if "pip install" in rest]
    assert all(rest.count("pip install") == rest.count("--require-hashes") for rest in installs)
    assert "--without-pip /venv" in installs[0]


def test_the_user_has_a_group_of_its_own_and_no_program_is_setuid():
    """`useradd --system` warns about numbers above 999 and takes a group number that other files have."""
    steps = " ".join(image().all("RUN"))
    assert "--system" not in steps
    assert "groupadd --gid 10001 dramatis" in steps
    assert "useradd --uid 10001 --gid 10001 " in steps
    assert "-perm /6000 -exec chmod a-s {} +" in steps


def test_all_base_images_can_be_pinned_by_digest_or_taken_from_a_mirror():
    assert [stage.all("FROM")[0].split()[0] for stage in stages()] == [
        "${BASE_IMAGE}",
        "build",
        "${BASE_IMAGE}",
    ]
    pinned = "mirror.example/python:3.13-slim-bookworm@sha256:" + 64 * "0"
    for name in APP:
        argument = services()[name]["build"]["args"]["BASE_IMAGE"]
        assert filled(argument, {"BASE_IMAGE": pinned}) == pinned
        assert f"ARG BASE_IMAGE={filled(argument, {})}\n" in (ROOT / "Dockerfile").read_text()
    variables = {"POSTGRES_IMAGE": "one", "VALKEY_IMAGE": "two"}
    assert [filled(services()[name]["image"], variables) for name in ("postgres", "valkey")] == ["one", "two"]


def test_the_build_trusts_the_certificates_of_the_system_and_takes_a_companys_own_as_secrets():
    build = stages()[0]
    assert build.environment["UV_SYSTEM_CERTS"] == "true"
    mounts = dict(re.findall(r"--mount=type=secret,id=(\w+),target=(\S+)", build.all("RUN")[0]))
    assert set(mounts) == {"ca_certificates", "pip_conf", "uv_toml"}
    assert {build.environment["SSL_CERT_FILE"], build.environment["PIP_CERT"]} == {mounts["ca_certificates"]}
    guide = (ROOT / "docs" / "deployment.md").read_text()
    assert [name for name in mounts if f"--secret id={name},src=" not in guide] == []


def test_each_program_is_there():
    """The commands of the image are among the programs that the locks install."""
    for name in APP:
        word = command_of(name)[0]
        assert shutil.which(word, path=f"{Path(sys.executable).parent}:{os.environ['PATH']}"), word
    for name in ("web", *WORKERS, "beat"):
        role = "worker" if name in WORKERS else name
        assert health_check_of(name) == ["python", "-I", "-S", "project/health/liveness.py", role]


def test_each_queue_has_one_worker_of_its_kind():
    """Long jobs, webhooks and the clock's jobs share no worker with others: nothing waits for them."""
    queues = {name: command_of(name)[command_of(name).index("--queues") + 1].split(",") for name in WORKERS}
    assert queues == {
        "worker": ["builds", "scans"],
        "webhooks": ["webhooks"],
        "clock": ["clock"],
        "long": ["long"],
    }
    assert {queue.name for queue in app.conf.task_queues} == {
        name for names in queues.values() for name in names
    }


def test_every_job_has_a_queue_and_long_jobs_have_theirs():
    app.loader.import_default_modules()
    jobs = [job for name, job in app.tasks.items() if not name.startswith("celery.")]
    assert len(jobs) > 10
    for job in jobs:
        queue = app.amqp.router.route({}, job.name)["queue"].name
        is_long = (job.time_limit or app.conf.task_time_limit) > app.conf.task_time_limit
        # Prompts are not served until their erasure ends, so it does not wait behind a verification.
        expected = {"finish_erasure_job": "builds"}.get(job.__name__, "long" if is_long else queue)
        assert queue == expected, job.name
        assert is_long or queue != "long", job.name


# --- Liveness ------------------------------------------------------------------------------------------


def check(name: str, **environment: str) -> int:
    command = [sys.executable, "-I", "-S", "project/health/liveness.py", name]
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


def test_a_liveness_file_is_fresh_for_a_minute(tmp_path):
    folder = str(tmp_path)
    assert check("worker", DRAMATIS_ALIVE_DIR=folder) == 1
    liveness.touch_liveness_file(folder, "worker")
    assert check("worker", DRAMATIS_ALIVE_DIR=folder) == 0
    assert not liveness.is_liveness_fresh(folder, "beat")
    sign = liveness.get_liveness_path(folder, "worker")
    for seconds in (-61, 3_600):
        modified_at = sign.stat().st_mtime + seconds
        os.utime(sign, (modified_at, modified_at))
        assert not liveness.is_liveness_fresh(folder, "worker")
        liveness.touch_liveness_file(folder, "worker")
        assert liveness.is_liveness_fresh(folder, "worker")


def test_without_a_folder_no_liveness_file_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    liveness.touch_liveness_file("", "worker")
    assert not list(tmp_path.iterdir())


def test_a_web_that_does_not_answer_is_not_well():
    assert check("web", GRANIAN_PORT="9") == 1


@pytest.mark.parametrize(
    ("names", "host"),
    [("a.example, b.example", "a.example"), (".example", "example"), ("*", "localhost"), ("", "localhost")],
)
def test_the_check_asks_for_a_name_that_is_answered(names, host):
    assert liveness.get_allowed_host(names) == host
