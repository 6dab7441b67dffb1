"""Find a PostgreSQL with Citus that `tests/citus/build` has installed."""

import os
import shutil
import subprocess
from pathlib import Path

BUILD_VARIABLE = "CITUS_BUILD"


def default_folder() -> Path:
    """Return the folder of CITUS_BUILD, or one that other accounts, such as `nobody`, can read."""
    named = os.environ.get(BUILD_VARIABLE)
    return Path(named) if named else Path(f"/var/tmp/dramatis-citus-{os.getuid()}")  # noqa: S108 - see above


def find_pg_config() -> Path | None:
    named = os.environ.get("PG_CONFIG")
    # Debian's pg_config in PATH may be that of the client library; each server version has its own.
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_config"))
    found = named or (str(versions[-1]) if versions else shutil.which("pg_config"))
    return Path(found) if found else None


def get_directory(pg_config: Path, name: str) -> Path:
    done = subprocess.run([pg_config, f"--{name}"], check=True, capture_output=True, text=True)
    return Path(done.stdout.strip())


def find_programs() -> Path | None:
    """Return the folder with `postgres` and `initdb` of a finished build; None if there is none."""
    folder = default_folder()
    marker = folder / "pg_config"
    # The default folder is in a place where every account can create files.
    if not marker.is_file() or marker.stat().st_uid != os.getuid():
        return None
    bindir = get_directory(Path(marker.read_text().strip()), "bindir")
    return Path(f"{folder}{bindir}")
