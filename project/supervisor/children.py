"""Child processes of `manage.py up`: their commands, environment and health checks."""

import contextlib
import fcntl
import http.client
import os
import socket
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from django.conf import settings

from project.jobs.schedule import JOB_QUEUES
from project.supervisor.paths import create_private_dir, get_runtime_dir, get_valkey_socket
from project.supervisor.supervisor import BROKER_NAME, Supervisor
from project.supervisor.valkey import start_valkey

HEALTHY_TIMEOUT = 60.0
WEB_THREADS = 16
# HTTP/1 only, with one request per connection at a time: project/request_limits relies on it. The timeout for
# the head of a request, in milliseconds, also applies to idle connections.
HTTP_OPTIONS = ["--http", "1", "--http1-header-read-timeout", "20000"]
PYTHON = sys.executable


class AlreadyRunning(Exception):
    """Another process runs the product with the same data; the message is shown to the user."""


def lock_var(var: Path, port: int) -> IO[str]:
    """Lock the folder of the data for this process, which must keep the returned file open.

    A second product in the same folder would replace the socket of the broker. The lock ends with the
    process, even if the process is killed.
    """
    var.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = (var / "run.lock").open("a+", encoding="utf-8")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.seek(0)
        owner = file.read().strip() or "another process"
        file.close()
        raise AlreadyRunning(
            f"Dramatis is already running with the data in {var} ({owner}). Stop it first, or set "
            "DRAMATIS_VAR to another folder."
        ) from None
    file.truncate(0)
    file.write(f"process {os.getpid()}, port {port}\n")
    file.flush()
    return file


class PortInUse(Exception):
    """Another process listens on the port; the message is shown to the user."""


def require_free_port(host: str, port: int) -> None:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        # Granian, the web server, sets this option too. With it, a port in TIME_WAIT counts as free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise PortInUse(f"Cannot listen on {host}:{port}: {error.strerror}. Try --port.") from None


def build_child_environment(host: str, port: int) -> dict[str, str]:
    public_url = os.environ.get("PUBLIC_URL") or f"http://localhost:{port}"
    return {
        **os.environ,
        "PUBLIC_URL": public_url,
        "REDIS_URL": settings.REDIS_URL,
        # Requests and jobs are logged only on demand, so that the address and sign-in details stay visible.
        "LOG_LEVEL": os.environ.get("LOG_LEVEL") or "WARNING",
        "DRAMATIS_VAR": str(settings.VAR),
    }


def start_broker(supervisor: Supervisor) -> None:
    """Start the embedded Valkey, unless REDIS_URL is set."""
    if os.environ.get("REDIS_URL"):
        return
    directory = create_private_dir(get_runtime_dir(settings.VAR))
    supervisor.add_child(BROKER_NAME, start_valkey(get_valkey_socket(settings.VAR), directory))


def start_web(supervisor: Supervisor, environment: Mapping[str, str], host: str, port: int) -> bool:
    supervisor.start("web", build_web_command(host, port), environment)
    return wait_until_healthy(supervisor, host, port)


def start_workers(supervisor: Supervisor, environment: Mapping[str, str]) -> None:
    celery = [PYTHON, "-m", "celery", "--quiet", "-A", "project"]
    options = ["--without-gossip", "--without-mingle", "--loglevel", "INFO"]
    others = ",".join(name for name in JOB_QUEUES if name != "webhooks")
    # Webhook receivers may hang, so webhooks have a worker of their own: builds and refreshes go on.
    for name, queues, processes in (("worker", others, "2"), ("webhooks", "webhooks", "1")):
        worker = ["worker", "--hostname", f"{name}@%h", "--queues", queues, "--concurrency", processes]
        supervisor.start(name, [*celery, *worker, *options], environment)
    supervisor.start("beat", [*celery, "beat", "--pidfile=", "--loglevel", "WARNING"], environment)
    # The watcher scans a source as soon as its files change. In production files change only with
    # deployments, so the scheduled scans are enough.
    if not settings.PRODUCTION:
        supervisor.start("watcher", [PYTHON, settings.BASE_DIR / "manage.py", "watch_sources"], environment)


def build_web_command(host: str, port: int) -> list[str]:
    # Many threads, because a fetch mostly waits for its ledger row, and group commit writes waiting rows
    # together.
    command = [PYTHON, "-m", "granian", "project.wsgi:application", "--interface", "wsgi"]
    command += ["--host", host, "--port", str(port), "--blocking-threads", str(WEB_THREADS)]
    return [*command, *HTTP_OPTIONS, "--log-level", "error", "--workers-kill-timeout", "2"]


def wait_until_healthy(supervisor: Supervisor, host: str, port: int) -> bool:
    deadline = time.monotonic() + HEALTHY_TIMEOUT
    while time.monotonic() < deadline and not supervisor.stopping and supervisor.find_ended_child() is None:
        if is_healthy(host, port):
            return True
        time.sleep(0.05)
    return False


def is_healthy(host: str, port: int) -> bool:
    connection = http.client.HTTPConnection(host, port, timeout=2)
    with contextlib.closing(connection), contextlib.suppress(OSError, http.client.HTTPException):
        connection.request("GET", "/healthz", headers={"Host": settings.ALLOWED_HOSTS[0]})
        return connection.getresponse().status == 200
    return False
