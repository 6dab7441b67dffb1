#!/usr/bin/env python3
"""Run, test and release Dramatis with nothing but Python: run, test, check, bench, shots, lock, release."""

# This file must parse on old Python versions, so that they print a message instead of a syntax error.
from __future__ import annotations

import argparse
import ctypes
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NoReturn

MIN_PYTHON = (3, 11)
ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
LOCKS = ROOT / "requirements"
# Each lock contains the ones before it.
LOCK_NAMES = ("run", "test", "dev")
# The headless shell comes first: the same engine without a desktop user interface, and twice as fast.
CHROMIUM_NAMES = (
    *("chromium-headless-shell", "chromium", "chromium-browser"),
    *("google-chrome", "google-chrome-stable"),
)
BENCHES = ("assembly", "capacity", "discovery", "fetch", "pages", "peers", "start", "tracing", "versions")

# pytest options that do not select tests: with these only, the full suite is run.
FULL_SUITE_OPTIONS = ("--durations", "-q", "-v")

# The exit code of pytest.
NO_TESTS_COLLECTED = 5

NO_VENV_MESSAGE = """This Python has neither venv nor pip.
Debian and Ubuntu: sudo apt-get install python3-venv"""
NO_CHROMIUM_MESSAGE = """
======================================================================
 The browser tests need Chromium, and this machine has none.

   Debian and Ubuntu:   sudo apt-get install chromium libatomic1
   elsewhere:           install Chromium or Chrome, and if it is not on
                        PATH, set CHROMIUM to the program's path

 To leave them out this once, say so:
   python3 dev.py test -m 'not browser'
======================================================================
"""

NO_CITUS_MESSAGE = """
======================================================================
 The tests on Citus (tests/citus) are NOT RUN: there is no build of it.

   CITUS_SOURCE=/path/to/citus python3 dev.py test --hard

 builds it first; tests/citus/build names the packages it needs.
======================================================================
"""


def main(argv: list[str]) -> int:
    """Check the Python version and run the command."""
    if sys.version_info < MIN_PYTHON:
        return print_error(build_version_error(sys.version_info[:3]))
    if os.name == "nt":
        return print_error("Dramatis runs on Linux and macOS; on Windows use WSL or docker compose.")
    os.chdir(ROOT)
    choice, rest = parse_arguments(argv)
    return COMMANDS[choice.command](choice, rest)


def build_version_error(version: tuple[int, ...]) -> str:
    newer = next(
        (f"python3.{minor}" for minor in range(20, 10, -1) if shutil.which(f"python3.{minor}")), None
    )
    hint = f" Try: {newer} dev.py" if newer else ""
    return f"Dramatis needs Python 3.11 or newer; this is {version[0]}.{version[1]}.{hint}"


def print_error(text: str, code: int = 1) -> int:
    print(text, file=sys.stderr)
    return code


def parse_arguments(argv: list[str]) -> tuple[argparse.Namespace, list[str]]:
    parser = argparse.ArgumentParser(prog="dev.py", description=__doc__, allow_abbrev=False)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    run = commands.add_parser("run", help="start the product", allow_abbrev=False)
    run.add_argument("--port", type=parse_port, default=8000, help="default 8000")
    run.add_argument("--empty", action="store_true", help="do not fill an empty database with the demo")
    test = commands.add_parser("test", help="all tests; other arguments go to pytest", allow_abbrev=False)
    test.add_argument("--full", action="store_true", help="the slow tests too")
    test.add_argument("--hard", action="store_true", help="the long proofs: every promise at full size")
    test.add_argument("-m", dest="markers", default="", help="of these only the tests with such markers")
    commands.add_parser("check", help="format, lint, types, contracts, migrations, locks", allow_abbrev=False)
    bench = commands.add_parser("bench", help="measure", allow_abbrev=False)
    bench.add_argument("name")
    shots = commands.add_parser("shots", help="pictures of every screen into shots/", allow_abbrev=False)
    shots.add_argument("names", nargs="*", help="only screens whose name begins so")
    commands.add_parser("lock", help="write requirements/*.txt from pyproject.toml", allow_abbrev=False)
    release = commands.add_parser(
        "release", help="build the packages of the clients, release notes and SBOM", allow_abbrev=False
    )
    release.add_argument(
        "--base-image",
        default=os.environ.get("BASE_IMAGE", ""),
        help="with tag and digest, python:TAG@sha256:DIGEST; default: the variable BASE_IMAGE",
    )
    release.add_argument(
        "--trial",
        action="store_true",
        help="release notes from the unreleased part of the changelog",
    )
    choice, rest = parser.parse_known_args(argv)
    if rest and choice.command not in ("test", "lock"):
        parser.error("unknown argument: " + " ".join(rest))
    return choice, rest


def parse_port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 65536):
        raise argparse.ArgumentTypeError(f"{text!r} is not a port between 1 and 65535")
    return int(text)


# --- The virtual environment ----------------------------------------------------------------------


def run_command(*arguments: object, quiet: bool = False) -> bool:
    output = subprocess.DEVNULL if quiet else None
    return (
        subprocess.run(
            [str(argument) for argument in arguments], stdout=output, stderr=output, check=False
        ).returncode
        == 0
    )


def run_or_exit(*arguments: object) -> None:
    if not run_command(*arguments):
        raise SystemExit(
            print_error("This step failed: " + " ".join(str(argument) for argument in arguments))
        )


def is_root_with_apt() -> bool:
    return os.getuid() == 0 and shutil.which("apt-get") is not None


def apt_install(*packages: str) -> bool:
    """Install packages; if that fails, update the package lists, which a new machine lacks, and try again."""
    command = ("apt-get", "install", "-y", "-q", "--no-install-recommends", *packages)
    os.environ.setdefault("DEBIAN_FRONTEND", "noninteractive")
    return run_command(*command) or (run_command("apt-get", "update", "-q") and run_command(*command))


def create_venv() -> None:
    """Create .venv with uv, venv, the system's pip or apt, whichever the machine has."""
    shutil.rmtree(VENV, ignore_errors=True)
    # uv brings its own pip.
    if shutil.which("uv"):
        run_or_exit("uv", "venv", "-q", "--seed", "--python", sys.executable, VENV)
    elif importlib.util.find_spec("ensurepip"):
        run_or_exit(sys.executable, "-m", "venv", VENV)
    # Debian without python3-venv: the system's pip can install into a venv without pip.
    elif importlib.util.find_spec("pip"):
        run_or_exit(sys.executable, "-m", "venv", "--without-pip", VENV)
        run_or_exit(sys.executable, "-m", "pip", "--python", PYTHON, "install", "-q", "pip")
    elif is_root_with_apt() and apt_install("python3-venv"):
        run_or_exit(sys.executable, "-m", "venv", VENV)
    else:
        raise SystemExit(print_error(NO_VENV_MESSAGE))


def get_stamp_path(lock_name: str) -> Path:
    digest = hashlib.sha256((LOCKS / f"{lock_name}.txt").read_bytes()).hexdigest()
    return VENV / f".installed-{lock_name}-{digest[:16]}"


def install_requirements(lock_name: str) -> None:
    """Install a lock file, unless it or one that contains it is installed already."""
    if PYTHON.exists() and any(
        get_stamp_path(other).exists() for other in LOCK_NAMES[LOCK_NAMES.index(lock_name) :]
    ):
        return
    if not (PYTHON.exists() and run_command(PYTHON, "-m", "pip", "--version", quiet=True)):
        print("Making .venv", flush=True)
        create_venv()
    print(f"Installing requirements/{lock_name}.txt", flush=True)
    lock = LOCKS / f"{lock_name}.txt"
    pip = (PYTHON, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--require-hashes", "-r")
    # uv is ten times faster; where it has no wheel, pip installs the same lock.
    if run_command(*pip, LOCKS / "uv.txt"):
        run_or_exit(
            VENV / "bin" / "uv", "pip", "install", "-q", "--python", PYTHON, "--require-hashes", "-r", lock
        )
    else:
        run_or_exit(*pip, lock)
    get_stamp_path(lock_name).touch()


def exec_python(*arguments: object) -> NoReturn:
    """Replace this process by the program (exec), so that signals reach it directly."""
    sys.stdout.flush()
    os.execv(PYTHON, [str(argument) for argument in (PYTHON, *arguments)])  # noqa: S606 - our own program


# --- The browser ----------------------------------------------------------------------------------


def has_chromium() -> bool:
    program = os.environ.get("CHROMIUM")
    return bool(shutil.which(program)) if program else any(map(shutil.which, CHROMIUM_NAMES))


def has_libatomic() -> bool:
    """Return whether libatomic exists: Playwright's Node needs it, and a minimal Debian lacks it."""
    try:
        return sys.platform != "linux" or bool(ctypes.CDLL("libatomic.so.1"))
    except OSError:
        return False


def find_or_install_chromium() -> bool:
    if has_chromium() and (has_libatomic() or not is_root_with_apt()):
        return True
    if is_root_with_apt() and not os.environ.get("CHROMIUM"):
        print("Installing Chromium", flush=True)
        # Not every Debian release has the headless shell.
        if not apt_install("chromium-headless-shell", "libatomic1"):
            apt_install("chromium", "libatomic1")
    return has_chromium()


# --- Commands -------------------------------------------------------------------------------------


def run(choice: argparse.Namespace, rest: list[str]) -> int:
    install_requirements("run")
    # Without bytecode files every process would compile the product at each start, which takes twice as long.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    exec_python("manage.py", "up", "--port", choice.port, *(["--empty"] if choice.empty else []))


def test(choice: argparse.Namespace, rest: list[str]) -> int:
    install_requirements("test")
    if "not browser" not in choice.markers and not find_or_install_chromium():
        return print_error(NO_CHROMIUM_MESSAGE)
    if choice.hard:
        warn_without_citus()
    markers = get_markers(choice, rest)
    if not is_whole_suite(rest):
        # A few selected tests run faster in one process, and a debugger works there.
        exec_python("-m", "pytest", "-m", markers, *rest)
    if choice.hard:
        return run_proofs(markers, rest)
    exec_python("-m", "pytest", "-m", markers, *get_parallel_options(), *rest)


def get_markers(choice: argparse.Namespace, rest: list[str]) -> str:
    """Return pytest's -m: slow tests run with --full, and if tests are selected by path or name."""
    if choice.hard:
        markers = "hard or promise"
    else:
        markers = "not hard" if choice.full or not is_whole_suite(rest) else "not hard and not slow"
    return f"({markers}) and ({choice.markers})" if choice.markers else markers


def run_proofs(markers: str, rest: list[str]) -> int:
    """Run the long proofs: first those that need the machine for themselves, then the others in parallel."""
    with tempfile.TemporaryDirectory() as folder:
        # The table of the promises is about both runs.
        env = {**os.environ, "PROMISE_REPORTS": f"{folder}/reports.json"}
        # The longest tests decide how long this takes.
        pytest = [str(PYTHON), "-m", "pytest", "--durations=40", "--durations-min=10", *rest, "-m"]
        codes = [
            subprocess.run([*pytest, f"({markers}) and {part}", *options], env=env, check=False).returncode
            for part, options in (("alone", []), ("not alone", get_parallel_options()))
        ]
    return int(any(code not in (0, NO_TESTS_COLLECTED) for code in codes))


def warn_without_citus() -> None:
    """Say that the tests on Citus do not run. They need a build of it, which takes some minutes."""
    built = Path(os.environ.get("CITUS_BUILD") or f"/var/tmp/dramatis-citus-{os.getuid()}")  # noqa: S108 - as the build
    if (built / "pg_config").exists():
        return
    if os.environ.get("CITUS_SOURCE"):
        run_or_exit(PYTHON, "tests/citus/build")
        return
    print(NO_CITUS_MESSAGE, file=sys.stderr, flush=True)


def is_whole_suite(rest: list[str]) -> bool:
    return all(argument.startswith(FULL_SUITE_OPTIONS) for argument in rest)


def get_parallel_options() -> list[str]:
    # One more than there are cores, because some tests wait for workers, clocks and browsers.
    return ["-n", str((os.cpu_count() or 1) + 1), "--dist", "loadfile", "--no-loadscope-reorder"]


def check(choice: argparse.Namespace, rest: list[str]) -> int:
    install_requirements("dev")
    exec_python(".ci/checks.py")


def bench(choice: argparse.Namespace, rest: list[str]) -> int:
    if choice.name not in BENCHES:
        return print_error(f"There is no bench named {choice.name!r}. Known: {', '.join(BENCHES)}.", 2)
    install_requirements("dev")
    if choice.name == "pages" and not find_or_install_chromium():
        return print_error(NO_CHROMIUM_MESSAGE)
    exec_python("-m", f"benches.{choice.name}")


def shots(choice: argparse.Namespace, rest: list[str]) -> int:
    install_requirements("test")
    if not find_or_install_chromium():
        return print_error(NO_CHROMIUM_MESSAGE)
    exec_python("-m", "screens", *choice.names)


def lock(choice: argparse.Namespace, rest: list[str]) -> int:
    """Generate the lock files; they contain versions and hashes, but no host."""
    install_requirements("dev")
    compile_: tuple[object, ...] = (
        VENV / "bin" / "uv",
        "pip",
        "compile",
        "-q",
        "--universal",
        "--python-version",
        "3.11",
    )
    compile_ += ("--generate-hashes", "--no-header", "--no-annotate", *rest)
    run_or_exit(*compile_, "pyproject.toml", "--group", "embedded", "-o", "requirements/run.txt")
    for lock_name in ("test", "dev"):
        run_or_exit(
            *compile_,
            "pyproject.toml",
            "--group",
            lock_name,
            "-c",
            "requirements/run.txt",
            "-o",
            f"requirements/{lock_name}.txt",
        )
    run_or_exit(
        *compile_, "--group", "tracing", "-c", "requirements/run.txt", "-o", "requirements/tracing.txt"
    )
    # What the tests of the Python client install into an environment of their own.
    client = "clients/python/pyproject.toml"
    run_or_exit(
        *compile_,
        client,
        "--all-extras",
        "--group",
        f"{client}:adapters",
        "-o",
        "requirements/adapters.txt",
    )
    return 0


def release(choice: argparse.Namespace, rest: list[str]) -> int:
    """Build the files of a release; refuse without the digest of the base image. Publish nothing."""
    install_requirements("test")
    exec_python(".ci/release.py", choice.base_image, *(["--trial"] if choice.trial else []))


COMMANDS = {
    "run": run,
    "test": test,
    "check": check,
    "bench": bench,
    "shots": shots,
    "lock": lock,
    "release": release,
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
