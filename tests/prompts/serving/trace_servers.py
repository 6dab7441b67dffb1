"""Real receivers of spans for tests: MLflow, and a collector that keeps the bytes it gets."""

import json
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from benches import peers_mlflow, tracing

ROOT = Path(__file__).parents[3]
SEARCH_SCRIPT = """
import json, sys
import mlflow
data = json.load(sys.stdin)
mlflow.set_tracking_uri(data["url"])
traces = mlflow.MlflowClient().search_traces(locations=["0"], filter_string=data["filter"])
print(json.dumps([
    {
        "trace_id": trace.info.trace_id,
        "spans": {
            span.name: {"parent": span.parent_id, "attributes": span.attributes} for span in trace.data.spans
        },
    }
    for trace in traces
]))
"""


@dataclass
class Collector:
    """A server that accepts OTLP over HTTP and keeps the bodies. They are not compressed."""

    url: str
    bodies: list[bytes] = field(default_factory=list)


@contextmanager
def collecting() -> Iterator[Collector]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            collector.bodies.append(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args: Any) -> None:
            """Write no log."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    collector = Collector(f"http://127.0.0.1:{server.server_port}/v1/traces")
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield collector
    finally:
        server.shutdown()
        server.server_close()


@dataclass(frozen=True)
class MlflowServer:
    """An MLflow server, and the folder of its programs."""

    url: str
    programs: Path
    folder: Path

    def search(self, filters: str) -> list[dict[str, Any]]:
        """Return the traces that MLflow finds by a filter, with their spans by name."""
        result = subprocess.run(
            [self.programs / "python", "-P", "-c", SEARCH_SCRIPT],
            input=json.dumps({"url": self.url, "filter": filters}),
            cwd=self.folder,
            env=peers_mlflow.build_environment(self.programs),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert result.returncode == 0, result.stderr[-3_000:]
        traces: list[dict[str, Any]] = json.loads(result.stdout.splitlines()[-1])
        return traces


@contextmanager
def running_mlflow(folder: Path) -> Iterator[MlflowServer]:
    try:
        programs = peers_mlflow.install()
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"NOT RUN: spans were not sent to MLflow, which cannot be installed: {error}")
    database = f"sqlite:///{folder}/mlflow.sqlite3"
    with peers_mlflow.run_server(programs, database, folder, workers=1) as port:
        yield MlflowServer(f"http://127.0.0.1:{port}", programs, folder)


def install_tracing_packages() -> Path:
    """Install the optional packages, and return their folder, for PYTHONPATH."""
    try:
        return tracing.install()
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"NOT RUN: spans were not tested, the packages cannot be installed: {error}")
