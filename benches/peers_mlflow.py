"""MLflow for the peers bench: install it, run its server, and run its client."""

import http.client
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

from benches.fetch import HOST, ROOT, free_port

PINS = ROOT / "benches" / "peers.txt"
CLIENT = ROOT / "benches" / "peers_client.py"
# Enough for a first start on a busy machine: importing its packages is slow.
START_SECONDS = 180
# No telemetry, and no background job workers, which prompts do not need.
ENVIRONMENT = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DO_NOT_TRACK": "true",
    "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
    "NO_PROXY": HOST,
    "no_proxy": HOST,
}


def install() -> Path:
    """Install MLflow once per list of pinned packages; return the folder of its executables."""
    digest = sha256(PINS.read_bytes() + sys.version.encode()).hexdigest()[:12]
    folder = ROOT / "var" / "peers" / f"mlflow-{digest}"
    uv, stamp = Path(sys.executable).parent / "uv", folder / ".installed"
    if not stamp.exists():
        print("Installing MLflow from the package index", flush=True)
        run_command([uv, "venv", "-q", "--clear", "--python", sys.executable, folder])
        run_command([uv, "pip", "install", "-q", "--python", folder / "bin" / "python", "-r", PINS])
        stamp.touch()
    return folder / "bin"


def run_command(command: Sequence[str | Path], **options: Any) -> None:
    subprocess.run(command, check=True, **options)  # noqa: S603  # ours


def get_pinned_version(package: str) -> str:
    """Return the pinned version of a package, without its environment marker."""
    pins = dict(line.split("==", 1) for line in PINS.read_text(encoding="utf-8").splitlines())
    return pins[package].split()[0]


@contextmanager
def run_server(mlflow_bin: Path, mlflow_database: str, folder: Path, workers: int) -> Iterator[int]:
    """Run the MLflow server as documented for a database: uvicorn, its default, with this many workers."""
    port = free_port()
    command: list[str | Path] = [mlflow_bin / "mlflow", "server", "--host", HOST, "--port", str(port)]
    command += ["--backend-store-uri", mlflow_database, "--default-artifact-root", folder / "artifacts"]
    command += ["--workers", str(workers), "--uvicorn-opts", "--log-level error --no-access-log"]
    with (folder / "mlflow.log").open("wb") as log:
        process = subprocess.Popen(  # noqa: S603  # as pinned
            command,
            cwd=folder,
            env=build_environment(mlflow_bin),
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            wait_until_healthy(port, process, folder / "mlflow.log")
            yield port
        finally:
            stop_process(process)


def build_environment(mlflow_bin: Path) -> dict[str, str]:
    return {**os.environ, **ENVIRONMENT, "PATH": f"{mlflow_bin}:{os.environ['PATH']}"}


def wait_until_healthy(port: int, process: "subprocess.Popen[bytes]", log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        connection = http.client.HTTPConnection(HOST, port, timeout=5)
        with suppress(OSError, http.client.HTTPException):
            connection.request("GET", "/health")
            if connection.getresponse().status == 200:
                return
        time.sleep(0.2)
    raise SystemExit(f"MLflow did not start: {log.read_text(encoding='utf-8')[-2_000:]}")


def stop_process(process: "subprocess.Popen[bytes]") -> None:
    """Terminate the server, then kill its process group, which includes its workers."""
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(20)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def run_client(mlflow_bin: Path, folder: Path, action: str, **options: Any) -> None:
    """Run MLflow's client to create or check prompts; -P keeps benches/ off sys.path: names could clash."""
    command: list[str | Path] = [mlflow_bin / "python", "-P", CLIENT, action]
    run_command(command, cwd=folder, env=build_environment(mlflow_bin), input=json.dumps(options), text=True)
