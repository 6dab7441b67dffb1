#!/usr/bin/env python3
"""Run, test and look at Dramatis with nothing but Python: dev.py run, test, check, bench, shots, lock."""

# This file must parse on old Pythons, so that they get a sentence instead of a syntax error.
from __future__ import annotations

import argparse
import ctypes
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

OLDEST = (3, 11)
ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
LOCKS = ROOT / "requirements"
# Each lock contains the ones before it.
JOBS = ("run", "test", "dev")
# The first is the same engine without a desktop's frame around it: half the work for every window.
CHROMIUM_NAMES = (
    *("chromium-headless-shell", "chromium", "chromium-browser"),
    *("google-chrome", "google-chrome-stable"),
)
BENCHES = ("assembly", "capacity", "discovery", "fetch", "pages", "peers", "versions")

# Options of pytest with which it is still the whole suite.
CHOOSE_NOTHING = ("-m", "--durations", "-q", "-v")

NO_VENV = """This Python has neither venv nor pip.
Debian and Ubuntu: sudo apt-get install python3-venv"""
NO_CHROMIUM = """
======================================================================
 The browser tests need Chromium, and this machine has none.

   Debian and Ubuntu:   sudo apt-get install chromium libatomic1
   elsewhere:           install Chromium or Chrome, and if it is not on
                        PATH, set CHROMIUM to the program's path

 To leave them out this once, say so:
   python3 dev.py test -m 'not browser'
======================================================================
"""


def main(argv: list[str]) -> int:
    """Old Pythons come this far and no further."""
    if sys.version_info < OLDEST:
        return stop(wrong_python(sys.version_info[:3]))
    if os.name == "nt":
        return stop("Dramatis runs on Linux and macOS; on Windows use WSL or docker compose.")
    os.chdir(ROOT)
    choice, rest = parse(argv)
    return COMMANDS[choice.command](choice, rest)


def wrong_python(version: tuple[int, ...]) -> str:
    newer = next(
        (f"python3.{minor}" for minor in range(20, 10, -1) if shutil.which(f"python3.{minor}")), None
    )
    hint = f" Try: {newer} dev.py" if newer else ""
    return f"Dramatis needs Python 3.11 or newer; this is {version[0]}.{version[1]}.{hint}"


def stop(text: str, code: int = 1) -> int:
    print(text, file=sys.stderr)
    return code


def parse(argv: list[str]) -> tuple[argparse.Namespace, list[str]]:
    parser = argparse.ArgumentParser(prog="dev.py", description=__doc__, allow_abbrev=False)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    run = commands.add_parser("run", help="start the product", allow_abbrev=False)
    run.add_argument("--port", type=port, default=8000, help="default 8000")
    run.add_argument("--empty", action="store_true", help="do not fill an empty database with the demo")
    test = commands.add_parser("test", help="all tests; other arguments go to pytest", allow_abbrev=False)
    test.add_argument("--hard", action="store_true", help="the long proofs: every promise at full size")
    commands.add_parser("check", help="format, lint, types, contracts, migrations, locks", allow_abbrev=False)
    bench = commands.add_parser("bench", help="measure", allow_abbrev=False)
    bench.add_argument("name")
    shots = commands.add_parser("shots", help="pictures of every screen into shots/", allow_abbrev=False)
    shots.add_argument("names", nargs="*", help="only screens whose name begins so")
    commands.add_parser("lock", help="make requirements/*.txt anew from pyproject.toml", allow_abbrev=False)
    choice, rest = parser.parse_known_args(argv)
    if rest and choice.command not in ("test", "lock"):
        parser.error("unknown argument: " + " ".join(rest))
    return choice, rest


def port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 65536):
        raise argparse.ArgumentTypeError(f"{text!r} is not a port between 1 and 65535")
    return int(text)


# --- The virtual environment ----------------------------------------------------------------------


def call(*words: object, quiet: bool = False) -> bool:
    output = subprocess.DEVNULL if quiet else None
    return (
        subprocess.run([str(word) for word in words], stdout=output, stderr=output, check=False).returncode
        == 0
    )


def must(*words: object) -> None:
    if not call(*words):
        raise SystemExit(stop("This step failed: " + " ".join(str(word) for word in words)))


def is_root_with_apt() -> bool:
    return os.getuid() == 0 and shutil.which("apt-get") is not None


def apt_install(*packages: str) -> bool:
    """A fresh machine has no package lists yet, so the second try fetches them."""
    command = ("apt-get", "install", "-y", "-q", "--no-install-recommends", *packages)
    os.environ.setdefault("DEBIAN_FRONTEND", "noninteractive")
    return call(*command) or (call("apt-get", "update", "-q") and call(*command))


def make_venv() -> None:
    """Five kinds of machine; the comments say which."""
    shutil.rmtree(VENV, ignore_errors=True)
    # uv brings its own pip.
    if shutil.which("uv"):
        must("uv", "venv", "-q", "--seed", "--python", sys.executable, VENV)
    elif importlib.util.find_spec("ensurepip"):
        must(sys.executable, "-m", "venv", VENV)
    # Debian without python3-venv: the system's pip can fill a venv that has none.
    elif importlib.util.find_spec("pip"):
        must(sys.executable, "-m", "venv", "--without-pip", VENV)
        must(sys.executable, "-m", "pip", "--python", PYTHON, "install", "-q", "pip")
    elif is_root_with_apt() and apt_install("python3-venv"):
        must(sys.executable, "-m", "venv", VENV)
    else:
        raise SystemExit(stop(NO_VENV))


def stamp(job: str) -> Path:
    digest = hashlib.sha256((LOCKS / f"{job}.txt").read_bytes()).hexdigest()
    return VENV / f".installed-{job}-{digest[:16]}"


def install(job: str) -> None:
    """Nothing to do when this lock, or one that contains it, is already in."""
    if PYTHON.exists() and any(stamp(other).exists() for other in JOBS[JOBS.index(job) :]):
        return
    if not (PYTHON.exists() and call(PYTHON, "-m", "pip", "--version", quiet=True)):
        print("Making .venv", flush=True)
        make_venv()
    print(f"Installing requirements/{job}.txt", flush=True)
    lock = LOCKS / f"{job}.txt"
    pip = (PYTHON, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--require-hashes", "-r")
    # uv is ten times faster; where it has no wheel, pip reads the same lock.
    if call(*pip, LOCKS / "uv.txt"):
        must(VENV / "bin" / "uv", "pip", "install", "-q", "--python", PYTHON, "--require-hashes", "-r", lock)
    else:
        must(*pip, lock)
    stamp(job).touch()


def become(*words: object) -> NoReturn:
    """Replace this process, so that signals reach the program itself."""
    sys.stdout.flush()
    os.execv(PYTHON, [str(word) for word in (PYTHON, *words)])  # noqa: S606 - our own program


# --- The browser ----------------------------------------------------------------------------------


def has_chromium() -> bool:
    named = os.environ.get("CHROMIUM")
    return bool(shutil.which(named)) if named else any(map(shutil.which, CHROMIUM_NAMES))


def has_libatomic() -> bool:
    """Playwright's own Node needs it on some machines; gcc brings it, a bare Debian does not."""
    try:
        return sys.platform != "linux" or bool(ctypes.CDLL("libatomic.so.1"))
    except OSError:
        return False


def find_or_install_chromium() -> bool:
    if has_chromium() and (has_libatomic() or not is_root_with_apt()):
        return True
    if is_root_with_apt() and not os.environ.get("CHROMIUM"):
        print("Installing Chromium", flush=True)
        # Not every Debian has the small one.
        if not apt_install("chromium-headless-shell", "libatomic1"):
            apt_install("chromium", "libatomic1")
    return has_chromium()


# --- Commands -------------------------------------------------------------------------------------


def run(choice: argparse.Namespace, rest: list[str]) -> int:
    install("run")
    become("manage.py", "up", "--port", choice.port, *(["--empty"] if choice.empty else []))


def test(choice: argparse.Namespace, rest: list[str]) -> int:
    install("test")
    if "not browser" not in " ".join(rest) and not find_or_install_chromium():
        return stop(NO_CHROMIUM)
    # An -m of the caller comes later and so wins over this one.
    which = "hard or promise" if choice.hard else "not hard"
    become("-m", "pytest", "-m", which, *side_by_side(rest), *rest)


def side_by_side(rest: list[str]) -> list[str]:
    """The whole suite uses all cores; a chosen few tests run faster, and can be debugged, in one process."""
    if any(not word.startswith(CHOOSE_NOTHING) and word != "not browser" for word in rest):
        return []
    # One more than there are cores: some tests wait, for workers, clocks and browsers.
    return ["-n", str((os.cpu_count() or 1) + 1), "--dist", "worksteal"]


def check(choice: argparse.Namespace, rest: list[str]) -> int:
    install("dev")
    become(".ci/checks.py")


def bench(choice: argparse.Namespace, rest: list[str]) -> int:
    if choice.name not in BENCHES:
        return stop(f"There is no bench named {choice.name!r}. Known: {', '.join(BENCHES)}.", 2)
    install("dev")
    if choice.name == "pages" and not find_or_install_chromium():
        return stop(NO_CHROMIUM)
    become("-m", f"benches.{choice.name}")


def shots(choice: argparse.Namespace, rest: list[str]) -> int:
    install("test")
    if not find_or_install_chromium():
        return stop(NO_CHROMIUM)
    become("-m", "screens", *choice.names)


def lock(choice: argparse.Namespace, rest: list[str]) -> int:
    """Locks name versions and hashes, never a host."""
    install("dev")
    compile_: tuple[object, ...] = (
        VENV / "bin" / "uv",
        "pip",
        "compile",
        "-q",
        "--universal",
        "--python-version",
        "3.11",
    )
    compile_ += ("--generate-hashes", "--no-header", "--no-annotate", "pyproject.toml", *rest)
    must(*compile_, "--group", "embedded", "-o", "requirements/run.txt")
    for job in ("test", "dev"):
        must(*compile_, "--group", job, "-c", "requirements/run.txt", "-o", f"requirements/{job}.txt")
    return 0


COMMANDS = {"run": run, "test": test, "check": check, "bench": bench, "shots": shots, "lock": lock}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
