"""The package of the Python client: it builds, its metadata are valid, and typed programs can use it."""

import shutil
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest

from dramatis_client import __version__
from tests.clients.client_environment import build_environment, get_locked_environment, install

pytestmark = pytest.mark.hard
ROOT = Path(__file__).parents[2]
CLIENT = ROOT / "clients" / "python"
PROGRAM = """
import asyncio
from datetime import UTC, datetime

from dramatis_client import AsyncClient, Block, Client, DramatisError, NotFillable, Problem, Prompt
from dramatis_client.adapters import PromptSource
from dramatis_client.adapters.anthropic import message_arguments
from dramatis_client.adapters.openai_agents import instructions


def load(client: Client) -> str:
    try:
        prompt: Prompt = client.get_prompt("mira", "web", version=3, fallback="Hi.", ttl=60, timeout=2)
    except Problem as problem:
        return problem.code
    except DramatisError as error:
        return str(error)
    blocks: tuple[Block, ...] = prompt.blocks
    try:
        prompt = prompt.fill(now=datetime.now(UTC))
    except NotFillable:
        prompt = client.render("mira", "web", now=datetime.now(UTC), task=3, append="Be brief.")
    message_arguments(prompt, [{"role": "user", "content": "Hello."}])
    return prompt.text + "".join(block.text for block in blocks) + str(prompt.trace_metadata())


async def load_async() -> None:
    async with AsyncClient("https://dramatis.example.com", "key", cache_dir="copies", attempts=1) as client:
        source = PromptSource(client, "mira", "web", is_reporting=True)
        print(instructions(source), (await source.load_async()).to_openai())


if __name__ == "__main__":
    with Client() as blocking:
        print(load(blocking))
    asyncio.run(load_async())
"""
WRONG_CALLS = {
    'client.render("mira", "web", taks=3)': "Unexpected keyword argument",
    'client.get_prompt("mira", "web", version="3")': "incompatible type",
    'client.get_prompt("mira", "web").to_anthropic(2)': "Too many positional arguments",
}


@pytest.fixture(scope="module")
def tools() -> Path:
    """The folder of the programs that build and check packages."""
    return get_locked_environment("adapters", ROOT / "requirements" / "adapters.txt").parent


@pytest.fixture(scope="module")
def packages(tools: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("packages")
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info", "build", "dist")
    shutil.copytree(CLIENT, folder / "source", ignore=ignored)
    run(tools / "python", "-m", "build", "--no-isolation", "--outdir", folder / "dist", folder / "source")
    return folder / "dist"


@pytest.fixture(scope="module")
def empty_environment(packages: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with nothing but the wheel and what it requires."""
    python = build_environment(tmp_path_factory.mktemp("empty"))
    [wheel] = packages.glob("*.whl")
    install(python, str(wheel))
    return python


def run(*command: object) -> str:
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-3_000:]
    return done.stdout


def test_wheel_and_sdist_are_built_and_have_every_module(packages):
    [wheel], [sdist] = packages.glob("*.whl"), packages.glob("*.tar.gz")
    assert wheel.name == f"dramatis_client-{__version__}-py3-none-any.whl"
    assert sdist.name == f"dramatis_client-{__version__}.tar.gz"
    source = CLIENT / "src"
    expected = {
        str(path.relative_to(source))
        for path in source.rglob("*")
        if path.suffix == ".py" or path.name == "py.typed"
    }
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert {name for name in names if ".dist-info/" not in name} == expected
    assert any(name.endswith("/licenses/LICENSE") for name in names)
    with tarfile.open(sdist) as archive:
        assert {Path(name).name for name in archive.getnames()} >= {"README.md", "LICENSE", "pyproject.toml"}


def test_twine_finds_nothing_wrong(packages, tools):
    assert run(tools / "twine", "check", "--strict", *packages.iterdir()).count("PASSED") == 2


def test_the_metadata_name_author_and_extras_and_the_description_has_no_relative_links(packages):
    [wheel] = packages.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        [name] = [one for one in archive.namelist() if one.endswith("/METADATA")]
        metadata, _, description = archive.read(name).decode().partition("\n\n")
    lines = metadata.splitlines()
    assert "Author: The Dramatis authors" in lines
    assert f"Version: {__version__}" in lines
    extras = {line.removeprefix("Provides-Extra: ") for line in lines if line.startswith("Provides-Extra")}
    assert extras >= {"anthropic", "langchain", "llama-index", "openai", "openai-agents", "pydantic-ai"}
    assert sum(line.startswith("Classifier: ") for line in lines) > 5
    assert "](../" not in description
    assert "](./" not in description


def test_the_wheel_works_in_an_empty_environment(empty_environment):
    command = empty_environment.with_name("dramatis")
    assert run(command, "--version") == f"dramatis-client {__version__}\n"
    assert "completion" in run(command, "--help")
    run(empty_environment, "-c", "from dramatis_client import *; AsyncClient, Client, Prompt")
    adapters = ("anthropic", "langchain", "llama_index", "openai", "openai_agents", "pydantic_ai")
    run(empty_environment, "-c", "; ".join([f"import dramatis_client.adapters.{one}" for one in adapters]))


def check_types(tools: Path, python: Path, folder: Path, program: str) -> str:
    """Run mypy in strict mode in a folder without settings, and return its output."""
    (folder / "program.py").write_text(program)
    command: list[str | Path] = [tools / "mypy", "--strict", "--python-executable", python, "program.py"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=300)
    return done.stdout


def test_a_typed_program_passes_mypy(empty_environment, tools, tmp_path):
    assert "Success" in check_types(tools, empty_environment, tmp_path, PROGRAM)
    for call, message in WRONG_CALLS.items():
        program = f"from dramatis_client import Client\n\nclient = Client()\n{call}\n"
        assert message in check_types(tools, empty_environment, tmp_path, program)
