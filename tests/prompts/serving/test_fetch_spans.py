"""Spans of OpenTelemetry: one for each fetch if tracing is on, without text; MLflow finds them by digest."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
import structlog
from django.test import Client

from core import spans
from prompts.models import LedgerEntry
from prompts.serving import ledger_writer
from tests.clients.live import LiveServer
from tests.prompts.serving.serving_stage import Stage, make_stage
from tests.prompts.serving.trace_servers import (
    ROOT,
    Collector,
    MlflowServer,
    collecting,
    install_tracing_packages,
    running_mlflow,
)
from tests.workers import wait_for

CANARY = "Zanzibar-lighthouse"
PROMPT = "/api/v1/agents/pilot/channels/deck/prompt"
TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736"
TRACEPARENT = f"00-{TRACE_ID}-00f067aa0ba902b7-01"
BOT_PROGRAM = """
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from dramatis_client import Client
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)
with Client() as client, trace.get_tracer("bot").start_as_current_span("turn") as span:
    client.get_prompt("pilot", "deck")
    print(f"{span.get_span_context().trace_id:032x}")
"""
StartServer = Callable[..., LiveServer]


@pytest.mark.django_db
def test_without_the_packages_a_fetch_works_and_the_log_says_why_there_are_no_spans(
    client: Client, workspace, settings, monkeypatch
):
    stage = make_stage(workspace)
    settings.DRAMATIS_TRACING = True
    # As if they were not installed.
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    monkeypatch.setitem(sys.modules, "opentelemetry.trace", None)
    spans.load_span_tools.cache_clear()
    headers = {"Authorization": f"Bearer {stage.secret}"}
    with structlog.testing.capture_logs() as logs:
        responses = [client.get(PROMPT, headers=headers) for _ in range(3)]
    spans.load_span_tools.cache_clear()
    assert [response.status_code for response in responses] == [200] * 3
    assert [line["event"] for line in logs if line["event"] == "tracing_unavailable"] == [
        "tracing_unavailable"
    ]


# --- real servers --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def packages() -> Path:
    return install_tracing_packages()


@pytest.fixture(scope="module")
def mlflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MlflowServer]:
    with running_mlflow(tmp_path_factory.mktemp("mlflow")) as server:
        yield server


def build_environment(packages: Path, url: str) -> dict[str, str]:
    return {
        "PYTHONPATH": str(packages),
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": url,
        "OTEL_EXPORTER_OTLP_TRACES_HEADERS": "x-mlflow-experiment-id=0",
        "OTEL_BSP_SCHEDULE_DELAY": "200",
    }


@pytest.fixture
def stage(transactional_db: None, workspace) -> Stage:
    return make_stage(workspace, f"Be brave. {CANARY}.")


@contextmanager
def serving(tmp_path: Path, environment: dict[str, str], fault: str = "") -> Iterator[LiveServer]:
    server = LiveServer(tmp_path / "log", environment=environment, fault=fault)
    server.start()
    try:
        yield server
    finally:
        server.kill()
        wait_for(server.is_disconnected)
        ledger_writer.PROCESS_WRITER.close()


def fetch(server: LiveServer, stage: Stage, path: str = PROMPT) -> httpx.Response:
    headers = {"Authorization": f"Bearer {stage.secret}", "traceparent": TRACEPARENT}
    return httpx.get(f"{server.url}{path}", headers=headers, timeout=30)


def check_spans(collector: Collector, server: LiveServer, stage: Stage) -> None:
    """Fetch three times, once in vain, and check that three spans arrive that have no text."""
    response = fetch(server, stage)
    fetch(server, stage, f"{PROMPT}.md")
    assert fetch(server, stage, PROMPT.replace("pilot", "nobody")).status_code == 404
    assert CANARY in response.json()["text"]
    wait_for(lambda: b"".join(collector.bodies).count(b"dramatis.fetch") == 3)
    sent = b"".join(collector.bodies)
    for value in ("pilot.deck", response.json()["digest"], "PromptNotFound", "production"):
        assert value.encode() in sent
    assert sent.count(bytes.fromhex(TRACE_ID)) == 3
    for secret in (CANARY, "Be brave", stage.secret, stage.secret[-20:]):
        assert secret.encode() not in sent


@pytest.mark.hard
def test_each_fetch_has_a_span_without_text(packages, stage, tmp_path):
    with collecting() as collector:
        environment = build_environment(packages, collector.url) | {"DRAMATIS_TRACING": "true"}
        with serving(tmp_path, environment) as server:
            check_spans(collector, server, stage)


@pytest.mark.hard
@pytest.mark.planted
def test_a_span_with_the_text_is_detected(packages, stage, tmp_path):
    with collecting() as collector:
        environment = build_environment(packages, collector.url) | {"DRAMATIS_TRACING": "true"}
        with (
            serving(tmp_path, environment, fault="text_in_spans") as server,
            pytest.raises(AssertionError, match=f"assert b'{CANARY}' not in"),
        ):
            check_spans(collector, server, stage)


@pytest.mark.hard
def test_tracing_is_off_by_default_and_a_missing_collector_delays_no_fetch(packages, stage, tmp_path):
    with collecting() as collector:
        with serving(tmp_path, build_environment(packages, collector.url)) as server:
            assert fetch(server, stage).status_code == 200
            time.sleep(1)
        assert collector.bodies == []
    # Nothing listens at this address now.
    environment = build_environment(packages, collector.url) | {"DRAMATIS_TRACING": "true"}
    with serving(tmp_path, environment) as server:
        fetch(server, stage)
        started_at = time.monotonic()
        assert [fetch(server, stage).status_code for _ in range(20)] == [200] * 20
        assert time.monotonic() - started_at < 5


@pytest.mark.hard
def test_mlflow_finds_the_trace_of_a_bot_by_our_digest(packages, mlflow, stage, tmp_path):
    """The span of the bot and that of the server are in one trace, whose id the ledger has."""
    environment = build_environment(packages, f"{mlflow.url}/v1/traces")
    with serving(tmp_path, environment | {"DRAMATIS_TRACING": "true"}) as server:
        bot = subprocess.run(
            [sys.executable, "-c", BOT_PROGRAM],
            env={
                **{name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ},
                **environment,
                "PYTHONPATH": f"{packages}{os.pathsep}{ROOT / 'clients' / 'python' / 'src'}",
                "DRAMATIS_URL": server.url,
                "DRAMATIS_KEY": stage.secret,
            },
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert bot.returncode == 0, bot.stderr[-3_000:]
        trace_id = bot.stdout.strip()
        row = LedgerEntry.objects.in_workspace(stage.workspace).select_related("version").latest("pk")
        assert (row.traceparent or "").split("-")[1] == trace_id
        digest = row.version.digest
        filters = f"span.attributes.dramatis.digest LIKE '%{digest}%'"
        wait_for(lambda: len(get_span_names(mlflow, filters)) == 2, seconds=60)
    [trace] = mlflow.search(filters)
    assert trace["trace_id"] == f"tr-{trace_id}"
    assert set(trace["spans"]) == {"turn", "dramatis.fetch"}
    for span in trace["spans"].values():
        attributes = span["attributes"]
        assert attributes["dramatis.digest"] == digest
        assert attributes["dramatis.ledger_id"] == row.pk
        assert (attributes["gen_ai.prompt.name"], attributes["gen_ai.prompt.version"]) == ("pilot.deck", "1")
        assert attributes["gen_ai.agent.name"] == "pilot"
        assert CANARY not in json.dumps(attributes)
    assert trace["spans"]["dramatis.fetch"]["parent"]
    assert mlflow.search(f"span.attributes.dramatis.digest LIKE '%{'0' * 64}%'") == []


def get_span_names(mlflow: MlflowServer, filters: str) -> list[str]:
    return [name for trace in mlflow.search(filters) for name in trace["spans"]]
