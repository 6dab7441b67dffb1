"""Liveness check of a container: python -I project/health/liveness.py web | worker | beat.

It runs every few seconds, so it must start fast: it is a script that imports only the standard library.
"""

import http.client
import os
import sys
import time
from pathlib import Path

# In seconds. A worker touches its file every two seconds. Beat touches its file after each check for due
# jobs, about once a second.
MAX_LIVENESS_AGE = 60.0
WEB_TIMEOUT = 2.0


def get_liveness_path(folder: str, name: str) -> Path:
    return Path(folder) / f"dramatis-alive-{name}"


def touch_liveness_file(folder: str, name: str) -> None:
    """Touch the liveness file of a process. Outside of containers `folder` is empty and nothing happens."""
    if folder:
        get_liveness_path(folder, name).touch()


def is_liveness_fresh(folder: str, name: str) -> bool:
    """Return whether the liveness file was touched within MAX_LIVENESS_AGE.

    If the clock was set back, the file's time may be in the future. It then counts as old: otherwise the file
    would seem fresh until the clock has caught up.
    """
    try:
        age = time.time() - get_liveness_path(folder, name).stat().st_mtime
    except OSError:
        return False
    return abs(age) < MAX_LIVENESS_AGE


def is_web_healthy(port: int, host: str) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=WEB_TIMEOUT)
    try:
        connection.request("GET", "/healthz", headers={"Host": host})
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def get_allowed_host(names: str) -> str:
    """Return a host name that is accepted by ALLOWED_HOSTS, given as the comma-separated list `names`.

    A leading dot or a star in ALLOWED_HOSTS is a wildcard.
    """
    first = names.partition(",")[0].strip().removeprefix(".")
    return first if first not in ("", "*") else "localhost"


def is_alive(name: str) -> bool:
    if name == "web":
        host = get_allowed_host(os.environ.get("ALLOWED_HOSTS", ""))
        return is_web_healthy(int(os.environ.get("GRANIAN_PORT", "8000")), host)
    return is_liveness_fresh(os.environ.get("DRAMATIS_ALIVE_DIR", "."), name)


if __name__ == "__main__":
    sys.exit(0 if is_alive(sys.argv[1]) else 1)
