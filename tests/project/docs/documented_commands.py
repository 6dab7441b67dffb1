"""Check commands of the documentation: their names, options and files exist."""

import json
import re
import shlex
from collections.abc import Callable
from contextlib import redirect_stderr
from io import StringIO
from itertools import pairwise

from django.core.management import CommandError, get_commands, load_command_class

import dev
from dramatis_client.command import build_parser as build_client_parser
from tests.project.deployment.compose import composed, services
from tests.project.deployment.production_settings import ROOT

# Programs of every machine; other tests run the blocks that contain them.
PLAIN = {
    "export",
    "mkdir",
    "head",
    "od",
    "tr",
    "chmod",
    "cut",
    "tail",
    "sha256sum",
    "openssl",
    "curl",
    "find",
}
PLAIN |= {"rm", "cp"}
# Subcommands of compose with their flags, and with their options that take a value.
COMPOSE: dict[str, tuple[set[str], set[str]]] = {
    "up": ({"-d", "--build", "--no-deps", "--wait", "--force-recreate"}, set()),
    "ps": ({"--all"}, set()),
    "exec": (set(), set()),
    "run": ({"--rm", "--no-deps"}, {"-v", "-e"}),
    "build": (set(), set()),
}
WHEN = re.compile(r"^([\d*/,-]+ +){5}")
# A placeholder in a synopsis; it is replaced by a number, which is accepted wherever a name is.
STANDS_FOR = re.compile(r"^[A-Z]+$")


def wrong_with(line: str) -> str:
    """Return the error message for this command line, or an empty string."""
    return next((why for command in simple_commands(line) if (why := wrong_with_one(command))), "")


def simple_commands(line: str) -> list[list[str]]:
    """Split a line at pipes and `&&` into commands, without redirections."""
    plain = re.sub(r"\$\(date [^)]*\)", "2026-11-15", WHEN.sub("", line))
    reader = shlex.shlex(re.sub(r"[\[\]]|, ….*", "", plain), posix=True, punctuation_chars="|&;<>")
    reader.whitespace_split = True
    commands: list[list[str]] = [[]]
    for word in reader:
        if re.fullmatch(r"[|&;]+", word):
            commands.append([])
        else:
            commands[-1].append(word)
    return [without_redirection(command) for command in commands if command]


def without_redirection(command: list[str]) -> list[str]:
    return command[: command.index(">")] if ">" in command else command


def wrong_with_one(command: list[str]) -> str:
    while re.match(r"[A-Z_]+=", command[0]):
        command = command[1:]
    program, rest = command[0].rpartition("/")[2], command[1:]
    if program in {"python", "python3"} and rest:
        program, rest = rest[0], rest[1:]
    if program in PLAIN | {"python"}:
        return ""
    check = CHECKS.get(program)
    return check(rest) if check else f"nobody knows “{program}”"


def wrong_manage(arguments: list[str]) -> str:
    name, *rest = arguments
    app = get_commands().get(name)
    if app is None:
        return f"manage.py has no command “{name}”"
    parser = load_command_class(app, name).create_parser("manage.py", name)
    try:
        parser.parse_args(["1" if STANDS_FOR.match(word) else word for word in rest])
    except CommandError as error:
        return f"manage.py {name}: {error}"
    return ""


def wrong_dev(arguments: list[str]) -> str:
    errors = StringIO()
    try:
        with redirect_stderr(errors):
            choice, rest = dev.parse_arguments(arguments)
    except SystemExit:
        return errors.getvalue().splitlines()[-1]
    if choice.command == "bench" and not STANDS_FOR.match(choice.name) and choice.name not in dev.BENCHES:
        return f"dev.py has no bench “{choice.name}”"
    lost = [word for word in rest if word.startswith("tests") and not (ROOT / word).exists()]
    return f"{lost[0]} is not there" if lost else ""


def wrong_client(arguments: list[str]) -> str:
    errors = StringIO()
    try:
        with redirect_stderr(errors):
            build_client_parser().parse_args(["1" if STANDS_FOR.match(word) else word for word in arguments])
    except SystemExit:
        return errors.getvalue().splitlines()[-1]
    return ""


def wrong_docker(arguments: list[str]) -> str:
    """Check `docker compose`: the subcommands and options that the guides use, and our services."""
    if arguments[:1] == ["build"]:
        return wrong_build(arguments[1:])
    if arguments[:3] == ["buildx", "imagetools", "inspect"]:
        return ""
    if arguments[:1] != ["compose"]:
        return "docker: only compose, build and imagetools are known here"
    rest = arguments[1:]
    while rest[:1] == ["-f"]:
        composed(rest[1])
        rest = rest[2:]
    if not rest or rest[0] not in COMPOSE:
        return f"docker compose: {' '.join(rest[:1])} is not known here"
    return wrong_compose(rest[0], rest[1:])


def wrong_compose(name: str, rest: list[str]) -> str:
    alone, with_word = COMPOSE[name]
    while rest:
        word, *rest = rest
        if word == "python":
            return wrong_with_one([word, *rest])
        if word in with_word:
            rest = rest[1:]
        elif word not in alone and word not in services():
            return f"docker compose {name}: {word} is neither an option known here nor a service"
    return ""


def wrong_build(arguments: list[str]) -> str:
    """Check the options of an image build: its arguments and secrets must be in the Dockerfile."""
    dockerfile = (ROOT / "Dockerfile").read_text()
    for option, value in pairwise(arguments):
        name = value.removeprefix("id=").partition(",")[0].partition("=")[0]
        if option == "--secret" and f"type=secret,id={name}," not in dockerfile:
            return f"the Dockerfile has no secret {name}"
        if option == "--build-arg" and f"ARG {name}=" not in dockerfile:
            return f"the Dockerfile has no argument {name}"
    return ""


def wrong_npm(arguments: list[str]) -> str:
    folder, rest = ROOT / "frontend", arguments
    if arguments[:1] == ["--prefix"]:
        folder, rest = ROOT / arguments[1], arguments[2:]
    if rest == ["ci"]:
        return "" if (folder / "package-lock.json").exists() else "npm ci needs a package-lock.json"
    if rest[:1] == ["pack"]:
        return "" if (ROOT / rest[1] / "package.json").exists() else f"{rest[1]} is not a package"
    if rest[:1] == ["install"]:
        package = json.loads((ROOT / "clients" / "typescript" / "package.json").read_text())
        packed = f"./{package['name'].removeprefix('@').replace('/', '-')}-{package['version']}.tgz"
        return "" if rest[1:] == [packed] else f"npm pack makes {packed}"
    scripts = json.loads((folder / "package.json").read_text())["scripts"]
    known = len(rest) == 2 and rest[0] == "run" and rest[1] in scripts
    return "" if known else f"npm {' '.join(rest)}: there is no such script"


def wrong_make(arguments: list[str]) -> str:
    targets = set(re.findall(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)[0].split())
    lost = [word for word in arguments if "=" not in word and word not in targets]
    return f"make has no target “{lost[0]}”" if lost else ""


def wrong_pip(arguments: list[str]) -> str:
    lost = [word for word in arguments if word.startswith("./") and not (ROOT / word).exists()]
    return f"{lost[0]} is not there" if lost or arguments[:1] != ["install"] else ""


def wrong_cd(arguments: list[str]) -> str:
    known = arguments[0].startswith("/") or (ROOT / arguments[0]).is_dir()
    return "" if known else f"there is no folder {arguments[0]}"


CHECKS: dict[str, Callable[[list[str]], str]] = {
    "manage.py": wrong_manage,
    "dev.py": wrong_dev,
    "dramatis": wrong_client,
    "docker": wrong_docker,
    "buildah": lambda arguments: wrong_build(arguments[1:]),
    "make_base_image.sh": lambda arguments: "" if len(arguments) == 2 else "it needs a prefix and a folder",
    "npm": wrong_npm,
    "make": wrong_make,
    "pip": wrong_pip,
    "cd": wrong_cd,
    "git": lambda arguments: "" if arguments == ["pull"] else f"git {arguments[0]} is not known here",
}
