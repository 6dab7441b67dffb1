"""docs/deployment.md: its commands create valid secrets, and its tables match settings and compose file."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from prompts.proof.signing_keys import load_private_key, parse_trusted_keys
from tests.project.deployment.compose import env_file, environment_of, services
from tests.project.deployment.production_settings import COMPLETE, ROOT, settings_under

GUIDE = (ROOT / "docs" / "deployment.md").read_text()
SECRETS = ("postgres_password", "app_password", "secret_key", "signing_key.pem", "signing_key.pub")
# A replacement for test machines without openssl.
OPENSSL = """#!{python}
import pathlib, sys
from prompts.proof.signing_keys import (
    dump_private_key, dump_public_key, generate_signing_key, load_private_key
)
out = pathlib.Path(sys.argv[-1])
if sys.argv[1] == "genpkey":
    out.write_bytes(dump_private_key(generate_signing_key()))
else:
    out.write_text(dump_public_key(load_private_key(pathlib.Path(sys.argv[3]).read_bytes()).public_key()))
"""


def table(heading: str) -> dict[str, list[str]]:
    """Return the rows of the table below a heading, by their first cell."""
    section = GUIDE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    rows = [
        [cell.strip() for cell in line.strip("|").split(" | ")]
        for line in section.splitlines()
        if line[:2] == "| "
    ]
    return {row[0].strip("`"): row[1:] for row in rows[1:] if not row[0].startswith("-")}


@pytest.fixture
def programs(tmp_path: Path) -> str:
    if not shutil.which("openssl"):
        (tmp_path / "bin").mkdir()
        (tmp_path / "bin" / "openssl").write_text(OPENSSL.format(python=sys.executable))
        (tmp_path / "bin" / "openssl").chmod(0o755)
    return f"{tmp_path}/bin:{os.environ['PATH']}"


def test_the_commands_of_the_guide_make_secrets_that_production_takes(tmp_path, programs):
    """With the commands of the guide, and .env.example with only the four required values filled in."""
    block = re.search(r"<!-- secrets -->\n```sh\n(.*?)```", GUIDE, re.DOTALL)
    assert block
    environment = {"PATH": programs, "PYTHONPATH": str(ROOT)}
    subprocess.run(["sh", "-ec", block[1]], cwd=tmp_path, env=environment, check=True, capture_output=True)
    names_of_secrets = sorted(path.name for path in (tmp_path / "secrets").iterdir())
    assert names_of_secrets == sorted(SECRETS)
    assert (tmp_path / "secrets").stat().st_mode & 0o077 == 0
    assert all(path.stat().st_mode & 0o777 == 0o444 for path in (tmp_path / "secrets").iterdir())
    names = (
        *("SECRET_KEY", "DATABASES", "PRODUCTION"),
        *("DRAMATIS_SIGNING_KEY", "DRAMATIS_TRUSTED_KEYS", "DRAMATIS_CHECKPOINT_DIR"),
    )
    web = settings_of_service("web", tmp_path, names)
    assert web["DRAMATIS_SIGNING_KEY"] == ""
    settings = settings_of_service("clock", tmp_path, names)
    private_key = load_private_key(settings["DRAMATIS_SIGNING_KEY"].encode())
    for trusted in (web["DRAMATIS_TRUSTED_KEYS"], settings["DRAMATIS_TRUSTED_KEYS"]):
        assert list(parse_trusted_keys(trusted).values()) == [private_key.public_key()]
    assert settings["PRODUCTION"] is True
    assert len(settings["SECRET_KEY"]) >= 50
    assert settings["DRAMATIS_SIGNING_KEY"].startswith("-----BEGIN PRIVATE KEY-----\n")
    assert (
        settings["DATABASES"]["default"]["PASSWORD"]
        == (tmp_path / "secrets/app_password").read_text().strip()
    )
    assert settings["DRAMATIS_CHECKPOINT_DIR"] == "/app/checkpoints"


def settings_of_service(service: str, folder: Path, names: tuple[str, ...]) -> dict[str, Any]:
    variables = environment_of(service, filled_example())
    variables = {
        name: value.replace("/run/secrets", f"{folder}/secrets") for name, value in variables.items()
    }
    variables.pop("PATH")
    return settings_under(variables, *names)


def filled_example() -> dict[str, str]:
    variables = {"PUBLIC_URL": "https://dramatis.example", "ALLOWED_HOSTS": "dramatis.example"}
    return (
        env_file((ROOT / ".env.example").read_text())
        | variables
        | {"EMAIL_HOST": "mail.example", "DRAMATIS_TRUSTED_PROXIES": "1"}
    )


def undocumented(documented: set[str]) -> set[str]:
    return set(settings_under({}, "ENVIRONMENT_NAMES")["ENVIRONMENT_NAMES"]) ^ documented


def test_every_variable_is_documented_and_no_other():
    rows = table("Variables")
    assert not undocumented(set(rows))
    needed = {name for name, cells in rows.items() if cells[0].startswith("*needed*")}
    assert needed == COMPLETE.keys() - {"DRAMATIS_ENV"}


@pytest.mark.planted
def test_a_variable_that_is_not_documented_is_named():
    assert undocumented(set(table("Variables")) - {"LOG_LEVEL"} | {"MADE_UP"}) == {"LOG_LEVEL", "MADE_UP"}


def test_services_and_their_limits_are_those_of_the_compose_file():
    assert set(table("What runs")) == set(services())
    documented = {
        name: (cells[0].replace(" ", "").lower(), cells[1])
        for name, cells in table("Limits of the containers").items()
    }
    limits = {name: row["deploy"]["resources"]["limits"] for name, row in services().items()}
    assert documented == {name: (f"{row['memory']}b", row["cpus"]) for name, row in limits.items()}


def services_in(line: str) -> list[str]:
    """Return the services that a compose command names; arguments after `python` belong to the container."""
    command = re.sub(r" -[ev] \S+", "", line.partition(" python ")[0])
    return [word for word in command.split("#", maxsplit=1)[0].split()[3:] if not word.startswith("-")]


def test_commands_name_services_and_files_that_are_there():
    lines = re.findall(r"^docker compose (?:up|exec|run) .*$", GUIDE, re.MULTILINE)
    assert len(lines) >= 6
    assert {word for line in lines for word in services_in(line)} <= set(services())
    for path in re.findall(r"`(tests/[\w/.]+|docker-compose[\w.]*yml|requirements/\w+\.txt)`", GUIDE):
        assert (ROOT / path).exists(), path
