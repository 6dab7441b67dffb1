"""Liveness check of a container: python -I project/health/liveness.py web | worker | beat.

It runs every few seconds, so it is a script that uses only the standard library.
"""

import http.client
import os
import sys
import time
from pathlib import Path

# A worker touches its file every two seconds, beat with every job it sends, which is every ten.
MAX_LIVENESS_AGE = 60.0
WEB_TIMEOUT = 2.0


def get_liveness_path(folder: str, name: str) -> Path:
    return Path(folder) / f"dramatis-alive-{name}"


def touch_liveness_file(folder: str, name: str) -> None:
    """Touch the file; do nothing without a folder, because only containers have one."""
    if folder:
        get_liveness_path(folder, name).touch()


def is_liveness_fresh(folder: str, name: str) -> bool:
    """Return whether the file is recent. With abs(), a clock that was set back does not keep it fresh."""
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
    """Return a host name that ALLOWED_HOSTS accepts; a leading dot or a star is a wildcard."""
    first = names.partition(",")[0].strip().removeprefix(".")
    return first if first not in ("", "*") else "localhost"


def is_alive(name: str) -> bool:
    if name == "web":
        host = get_allowed_host(os.environ.get("ALLOWED_HOSTS", ""))
        return is_web_healthy(int(os.environ.get("GRANIAN_PORT", "8000")), host)
    return is_liveness_fresh(os.environ.get("DRAMATIS_ALIVE_DIR", "."), name)


if __name__ == "__main__":
    sys.exit(0 if is_alive(sys.argv[1]) else 1)
