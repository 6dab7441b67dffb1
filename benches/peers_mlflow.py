"""MLflow for the peers bench: its environment, its server, and what its own client makes and finds there."""

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
# Of a first start on a busy machine; its own packages take a while to be read.
START_SECONDS = 180
# It asks nobody outside, and runs no consumers of background jobs, which prompts do not need.
QUIET = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DO_NOT_TRACK": "true",
    "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
    "NO_PROXY": HOST,
    "no_proxy": HOST,
}


def installed() -> Path:
    """The folder of its programs; made once for each list of pins."""
    digest = sha256(PINS.read_bytes() + sys.version.encode()).hexdigest()[:12]
    folder = ROOT / "var" / "peers" / f"mlflow-{digest}"
    uv, stamp = Path(sys.executable).parent / "uv", folder / ".installed"
    if not stamp.exists():
        print("Installing MLflow from the package index", flush=True)
        run([uv, "venv", "-q", "--clear", "--python", sys.executable, folder])
        run([uv, "pip", "install", "-q", "--python", folder / "bin" / "python", "-r", PINS])
        stamp.touch()
    return folder / "bin"


def run(words: Sequence[str | Path], **more: Any) -> None:
    subprocess.run(words, check=True, **more)  # noqa: S603  # ours


def pinned(package: str) -> str:
    """The version of a package; what stands behind it says for which machines."""
    pins = dict(line.split("==", 1) for line in PINS.read_text(encoding="utf-8").splitlines())
    return pins[package].split()[0]


@contextmanager
def server(programs: Path, store: str, folder: Path, workers: int) -> Iterator[int]:
    """As its documentation has it for a database: uvicorn, which is its default, with that many workers."""
    port = free_port()
    command: list[str | Path] = [programs / "mlflow", "server", "--host", HOST, "--port", str(port)]
    command += ["--backend-store-uri", store, "--default-artifact-root", folder / "artifacts"]
    command += ["--workers", str(workers), "--uvicorn-opts", "--log-level error --no-access-log"]
    with (folder / "mlflow.log").open("wb") as log:
        process = subprocess.Popen(  # noqa: S603  # as pinned
            command,
            cwd=folder,
            env=environment(programs),
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            wait_until_healthy(port, process, folder / "mlflow.log")
            yield port
        finally:
            end(process)


def environment(programs: Path) -> dict[str, str]:
    return {**os.environ, **QUIET, "PATH": f"{programs}:{os.environ['PATH']}"}


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


def end(process: "subprocess.Popen[bytes]") -> None:
    """Its own session holds its workers; those who do not leave when asked are made to."""
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(20)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def told(programs: Path, folder: Path, verb: str, **said: Any) -> None:
    """Let its own client make or check prompts; without the benches on its path, for names could clash."""
    words: list[str | Path] = [programs / "python", "-P", CLIENT, verb]
    run(words, cwd=folder, env=environment(programs), input=json.dumps(said), text=True)
