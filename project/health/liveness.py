"""Whether this container's process does its work: python -I project/health/liveness.py web | worker | beat.

Run every few seconds, so it is a script of the standard library that loads nothing of the product.
"""

import http.client
import os
import sys
import time
from pathlib import Path

# A worker leaves a sign every two seconds, beat with every job it sends, which is every ten.
MAX_LIVENESS_AGE = 60.0
WEB_TIMEOUT = 2.0


def get_liveness_path(folder: str, name: str) -> Path:
    return Path(folder) / f"dramatis-alive-{name}"


def touch_liveness_file(folder: str, name: str) -> None:
    """Nothing where no folder is named: only containers have one of their own."""
    if folder:
        get_liveness_path(folder, name).touch()


def is_liveness_fresh(folder: str, name: str) -> bool:
    """A clock that was set back must not make an old sign look fresh for ever."""
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
    """Some name the product answers to; a leading dot or a star stands for many."""
    first = names.partition(",")[0].strip().removeprefix(".")
    return first if first not in ("", "*") else "localhost"


def is_alive(name: str) -> bool:
    if name == "web":
        host = get_allowed_host(os.environ.get("ALLOWED_HOSTS", ""))
        return is_web_healthy(int(os.environ.get("GRANIAN_PORT", "8000")), host)
    return is_liveness_fresh(os.environ.get("DRAMATIS_ALIVE_DIR", "."), name)


if __name__ == "__main__":
    sys.exit(0 if is_alive(sys.argv[1]) else 1)
