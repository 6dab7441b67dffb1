"""Pytest plugin that starts PostgreSQL and Redis for the run and finds Chromium.

The servers start before Django reads its settings; their versions are printed at the end.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pytest

from tests.database_dump import IS_OURS
from tests.example_counts import choose
from tests.servers import Server, redis_version, start_postgres, start_redis

if TYPE_CHECKING:
    from tests.citus.nodes import CitusCluster

# Overrides the shell, before other plugins are loaded: without bytecode files every process of a run would
# compile the product and its tests again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# The first has the same engine without a window and takes half the time.
CHROMIUM_NAMES = (
    *("chromium-headless-shell", "chromium", "chromium-browser"),
    *("google-chrome", "google-chrome-stable"),
)

# Only the last list is used, so it repeats Playwright's relevant entries. The rest disables the browser UI,
# which is itself a web page and took half the time of every new window.
DISABLED_FEATURES = (
    *("AvoidUnnecessaryBeforeUnloadCheckSync", "DestroyProfileOnBrowserClose", "HttpsUpgrades"),
    *("HttpsFirstBalancedModeAutoEnable", "LensOverlay", "MediaRouter", "PaintHolding"),
    *("ThirdPartyStoragePartitioning", "AvoidCorsURLLoaderRestartOnRedirect", "OptimizationHints"),
    *("NetworkTimeServiceQuerying", "AimEnabled", "PreconnectToSearch"),
    *("PreloadTopChromeWebUI", "InitialWebUI", "WebUIToolbar", "WebUIReloadButton", "WebUILocationBar"),
    *("WebUIHomeButton", "WebUIBackForwardButton", "WebUIOmniboxPopup", "WebUIOmniboxAimPopup"),
    "WebUIOmniboxFullPopup",
)
# Pages live for a second: optimising compilers and small garbage collections do not pay off.
SHORT_LIVED = "--no-opt --no-maglev --min-semi-space-size=32 --max-semi-space-size=64"
QUIET = (
    f"--js-flags={SHORT_LIVED}",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-quic",
    "--no-first-run",
    f"--disable-features={','.join(DISABLED_FEATURES)}",
)

# Expensive fixtures of these packages are set up once by each process that has tests of them.
FIRST_FOLDERS = ("tests/browser/", "tests/isolation/")
# Skips whose reason contains this are listed at the end of the run.
NOT_RUN = "NOT RUN:"
# The ids of all collected tests, with those that `-m` deselects.
COLLECTED_IDS = pytest.StashKey[frozenset[str]]()

_servers: list[Server] = []
# The Citus cluster of this run, if TEST_DATABASE is citus.
_clusters: list["CitusCluster"] = []
_names: dict[str, str] = {}
_scratch: list[str] = []


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Only the controller starts servers; xdist's workers inherit its environment."""
    choose(early_config.known_args_namespace.markexpr)
    os.environ["DRAMATIS_ENV"] = "development"
    # A background thread that writes would interfere when tables are emptied.
    os.environ["DRAMATIS_NOTE_KEY_USES"] = "false"
    # Tests change the clock of their own process, and cannot change that of the database.
    os.environ["DRAMATIS_MAX_CLOCK_SKEW"] = "0"
    if worker := os.environ.get("PYTEST_XDIST_WORKER"):
        os.environ["REDIS_URL"] = with_database(os.environ["REDIS_URL"], int(worker.removeprefix("gw")) + 1)
        # The demo writes files there, and each worker has its own database.
        os.environ["DRAMATIS_VAR"] += f"/{worker}"
        return
    _scratch.append(tempfile.mkdtemp(prefix="drm-var-"))
    os.environ["DRAMATIS_VAR"] = _scratch[0]
    offer_database()
    offer_redis()


def offer_database() -> None:
    if os.environ.get("TEST_DATABASE") == "sqlite":
        os.environ["DATABASE_URL"] = f"sqlite:///{_scratch[0]}/test.sqlite3"
        _names["database"] = "SQLite file"
    elif os.environ.get("TEST_DATABASE") == "citus":
        # Imported here: other runs need none of it.
        from tests.citus.nodes import start_cluster

        cluster = start_cluster()
        _clusters.append(cluster)
        os.environ["DATABASE_URL"] = cluster.coordinator.url
        _names["database"] = f"Citus with {len(cluster.workers)} workers"
    elif os.environ.get("DATABASE_URL"):
        _names["database"] = "database of DATABASE_URL"
    else:
        _servers.append(start_postgres())
        os.environ["DATABASE_URL"], os.environ[IS_OURS] = _servers[-1].url, "yes"
        _names["database"] = f"PostgreSQL {_servers[-1].version}"


def get_citus_cluster() -> "CitusCluster | None":
    return _clusters[0] if _clusters else None


def offer_redis() -> None:
    if os.environ.get("REDIS_URL"):
        _names["redis"] = redis_version(os.environ["REDIS_URL"])
    else:
        _servers.append(start_redis())
        os.environ["REDIS_URL"] = _servers[-1].url
        _names["redis"] = _servers[-1].version


def with_database(url: str, number: int) -> str:
    """The URL of another database on the same Redis server, so that workers do not share queues."""
    return (
        f"{url}?db={number}"
        if url.startswith("unix://")
        else re.sub(r"(://[^/]+)(/\d*)?$", rf"\1/{number}", url)
    )


def find_chromium(*, headed: bool = False) -> str | None:
    """The path of Chromium; the headless shell cannot be used with a window."""
    named = os.environ.get("CHROMIUM")
    return named or next(filter(None, map(shutil.which, CHROMIUM_NAMES[headed:])), None)


def launch_arguments(*, headed: bool) -> dict[str, object]:
    """Playwright's launch arguments; without Chromium the test fails, because a skip would go unnoticed."""
    program = find_chromium(headed=headed)
    if program is None or shutil.which(program) is None:
        pytest.fail(
            "This test needs Chromium and there is none: run dev.py test, or set CHROMIUM to its path."
        )
    # Chromium's sandbox does not work as root.
    sandbox = ["--no-sandbox"] if os.getuid() == 0 else []
    return {"executable_path": program, "args": [*QUIET, *sandbox], "headless": not headed}


def chromium_version(program: str) -> str:
    answer = subprocess.run([program, "--version"], capture_output=True, text=True, check=False, timeout=120)
    match = re.search(r"\d+(\.\d+)+", answer.stdout)
    return match[0] if match else "unknown"


@pytest.hookimpl(trylast=True)
def pytest_unconfigure() -> None:
    while _servers:
        _servers.pop().stop()
    while _clusters:
        _clusters.pop().stop()
    while _scratch:
        shutil.rmtree(_scratch.pop(), ignore_errors=True)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    passed = terminalreporter.stats.get("passed", []) + terminalreporter.stats.get("failed", [])
    names = [*_names.values()]
    if any("browser" in report.keywords for report in passed) and (program := find_chromium()):
        names.append(f"Chromium {chromium_version(program)}")
        terminalreporter.write_line(f"{' · '.join(names)}: real")
    else:
        terminalreporter.write_line(f"{' · '.join(names)}: real (no browser test in this run)")
    for reason in list_not_run(terminalreporter.stats.get("skipped", [])):
        terminalreporter.write_line(reason, yellow=True, bold=True)


def list_not_run(skipped: Sequence[pytest.TestReport]) -> list[str]:
    """Return the reasons of skips that must not go unnoticed; pytest shows reasons only with -rs."""
    reasons = {report.longrepr[2] for report in skipped if isinstance(report.longrepr, tuple)}
    return sorted(reason.removeprefix("Skipped: ") for reason in reasons if NOT_RUN in reason)


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Iterator[None]:
    """Mark tests that use a page with `browser`, so that `-m 'not browser'` excludes them.

    Then sort the tests. Xdist distributes the files in this order, and a long file at the end would keep one
    process busy while the others have nothing left.
    """
    config.stash[COLLECTED_IDS] = frozenset(item.nodeid for item in items)
    for item in items:
        if {"page", "context", "browser"} & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.browser)
    yield
    items.sort(key=get_place)


def get_place(item: pytest.Item) -> tuple[list[bool], bool]:
    """Return the sort key of a test: by folder, then slow files before the others."""
    is_elsewhere = [not item.nodeid.startswith(folder) for folder in FIRST_FOLDERS]
    return is_elsewhere, item.get_closest_marker("slow") is None
