"""/metrics: access control, sums over several processes, and no data of workspaces."""

import math
import multiprocessing
import re
from datetime import datetime, timedelta

import pytest
import time_machine
from django.conf import settings
from django.core.cache import cache
from django.db import connection
from django.db.utils import OperationalError
from django.urls import get_resolver, resolve
from django.utils import timezone

from project.metrics import counters as metrics_counters
from project.metrics.collectors import (
    BUCKET_SECONDS,
    RequestMetricsMiddleware,
    count_request,
    get_route_family,
)
from project.metrics.counters import ProcessCounters
from project.metrics.exposition import build_counter_families, build_labelled_gauge, format_metrics
from project.metrics.gauges import collect_heartbeat
from project.metrics.periodic import measure_metrics
from project.redis_client import connect_redis
from project.tasks import HEARTBEAT_KEY, record_heartbeat_job
from prompts.evidence.integrity.checkpoint_signer import sign_checkpoint
from tests.factories import make_memory
from tests.frozen_process import freeze, thaw
from tests.project.deployment.production_settings import COMPLETE, run_settings, settings_under
from tests.prompts.serving.serving_stage import make_stage
from tests.servers import start_redis

STRANGER = {"REMOTE_ADDR": "203.0.113.7"}
TOKEN = "a-token-for-prometheus"
OWN_KEY = "dramatis:metrics:of-a-test"
LINE = re.compile(r'dramatis_[a-z_]+(\{[a-z]+="[^"]*"(,[a-z]+="[^"]*")*\})? (\+Inf|-?[0-9.e+-]+)')


def get_metrics(client, **headers):
    answer = client.get("/metrics", **headers)
    assert answer.status_code == 200, answer.content
    return answer.content.decode()


def value_of(text: str, name: str) -> float:
    [line] = [line for line in text.splitlines() if line.startswith(f"dramatis_{name} ")]
    return float(line.rpartition(" ")[2])


@pytest.fixture
def counters(monkeypatch):
    """Replace the counters of this process by new ones, with sums in Redis that no other process adds to."""
    fresh = ProcessCounters(interval=3_600)
    fresh.start()
    # The real counters start as soon as a test imports the WSGI application.
    monkeypatch.setattr(metrics_counters.PROCESS_COUNTERS, "is_counting", False)
    # Also waits for its thread, which may be sending counts.
    metrics_counters.PROCESS_COUNTERS.stop()
    monkeypatch.setattr(metrics_counters, "COUNTERS_KEY", OWN_KEY)
    monkeypatch.setattr(metrics_counters, "add_counts", fresh.add)
    monkeypatch.setattr(metrics_counters, "flush_counts", fresh.flush)
    forget_sums()
    yield fresh
    fresh.stop()
    forget_sums()


def forget_sums() -> None:
    with connect_redis(settings.REDIS_URL) as client:
        client.delete(OWN_KEY)


# --- access --------------------------------------------------------------------------------------------


@pytest.mark.django_db
@pytest.mark.redis
def test_this_machine_may_read_it_in_development(client):
    answer = client.get("/metrics")
    assert answer["Content-Type"].startswith("text/plain; version=0.0.4")
    assert "no-store" in answer["Cache-Control"]
    text = answer.content.decode()
    assert 'dramatis_up{part="database"} 1' in text
    assert 'dramatis_up{part="redis"} 1' in text


@pytest.mark.django_db
@pytest.mark.parametrize("method", ["get", "head", "post", "put", "options"])
def test_to_strangers_there_is_no_such_page(client, method):
    ask = getattr(client, method)
    answer, nowhere = ask("/metrics", **STRANGER), ask("/no-such-page", **STRANGER)
    assert answer.status_code == nowhere.status_code == 404
    assert len(answer.content) == len(nowhere.content)


@pytest.mark.django_db
@pytest.mark.parametrize("header", ["HTTP_X_FORWARDED_FOR", "HTTP_FORWARDED", "HTTP_X_REAL_IP"])
def test_a_forwarded_request_is_never_from_an_allowed_network(client, header):
    assert client.get("/metrics", **{header: "127.0.0.1"}).status_code == 404


@pytest.mark.django_db
def test_a_token_opens_it_from_anywhere(client, settings):
    settings.DRAMATIS_METRICS_TOKEN, settings.DRAMATIS_METRICS_NETWORKS = TOKEN, []
    assert "dramatis_up" in get_metrics(client, HTTP_AUTHORIZATION=f"Bearer {TOKEN}", **STRANGER)
    for header in ("", "Bearer ", "Bearer wrong", TOKEN, f"Basic {TOKEN}"):
        assert client.get("/metrics", HTTP_AUTHORIZATION=header, **STRANGER).status_code == 404
    assert client.get("/metrics").status_code == 404


@pytest.mark.django_db
def test_without_a_token_no_header_opens_it(client, settings):
    settings.DRAMATIS_METRICS_NETWORKS = []
    for header in ("Bearer ", "Bearer None"):
        assert client.get("/metrics", HTTP_AUTHORIZATION=header).status_code == 404


@pytest.mark.django_db
def test_those_who_may_read_may_only_read(client):
    assert client.post("/metrics").status_code == 405


@pytest.mark.slow
def test_in_production_nothing_is_allowed_by_default():
    names = ("DRAMATIS_METRICS_NETWORKS", "DRAMATIS_METRICS_TOKEN")
    assert settings_under(COMPLETE, *names) == {names[0]: [], names[1]: ""}
    named = settings_under({**COMPLETE, names[0]: "10.0.0.0/8, ::1"}, names[0])
    assert named[names[0]] == ["10.0.0.0/8", "::1/128"]
    wrong = run_settings({**COMPLETE, names[0]: "10.0.0.300"})
    assert "DRAMATIS_METRICS_NETWORKS must contain networks" in wrong.stderr


# --- content -------------------------------------------------------------------------------------------


@pytest.mark.django_db
@pytest.mark.redis
def test_every_line_is_one_that_prometheus_reads(client, counters):
    client.get("/healthz")
    lines = get_metrics(client).splitlines()
    assert [line for line in lines if not line.startswith("# ") and not LINE.fullmatch(line)] == []
    names = [line.split()[2] for line in lines if line.startswith("# TYPE ")]
    assert len(names) == len(set(names)), "each figure is described once"


@pytest.mark.slow
@pytest.mark.django_db
@pytest.mark.redis
def test_it_contains_queues_positions_disks_and_periodic_metrics(client, workspace):
    stage = make_stage(workspace)
    stage.fetch()
    measure_metrics()
    text = get_metrics(client)
    assert value_of(text, "ledger_position") == stage.rows[-1].pk
    assert value_of(text, "build_queue_agents") >= 0
    assert value_of(text, "workspaces") == 1
    assert value_of(text, "versions_total") == stage.prompt.last_number
    assert value_of(text, "stale_bots") == 0
    assert 'dramatis_disk_free_bytes{place="var"} ' in text
    assert value_of(text, "checkpoint_disk_free_bytes") > 0
    stage.edit("Be bolder.")
    measure_metrics()
    assert value_of(get_metrics(client), "stale_bots") == 1


@pytest.mark.slow
@pytest.mark.django_db
@pytest.mark.promise("R18")
def test_lag_of_sealing_and_signing_is_reported(client, workspace, settings, tmp_path):
    settings.DRAMATIS_CHECKPOINT_DIR = tmp_path
    stage, now = make_stage(workspace), timezone.now()
    with time_machine.travel(now, tick=False):
        stage.fetch()

    def figures(at: datetime) -> tuple[float, ...]:
        with time_machine.travel(at, tick=False):
            text = get_metrics(client)
        names = ("ledger_unsealed", "checkpoint_unsigned")
        return tuple(value_of(text, f"{name}_{kind}") for name in names for kind in ("seconds", "workspaces"))

    assert figures(now) == pytest.approx((0, 0, 0, 0), abs=30)
    late = figures(now + timedelta(hours=3))
    assert late == pytest.approx((10_800, 1, 10_800, 1), abs=60)
    with time_machine.travel(now + timedelta(hours=3), tick=False):
        sign_checkpoint(workspace.pk)
    assert figures(now + timedelta(hours=30)) == (0, 0, 0, 0)


@pytest.mark.django_db
@pytest.mark.redis
def test_it_contains_no_data_of_a_workspace(client, as_alice, workspace, agent, counters):
    make_memory(workspace, "Likes tea.")
    as_alice.get(f"/w/{workspace.slug}/agents/{agent.slug}/")
    as_alice.get(f"/w/{workspace.slug}/no-such-page-as-this/")
    client.get(f"/api/v1/agents/{agent.slug}/channels/deck/prompt")
    measure_metrics()
    text = get_metrics(client)
    assert 'family="agents"' in text
    for word in (workspace.slug, agent.slug, agent.name, "alice", "tea", "no-such-page"):
        assert word not in text


@pytest.mark.django_db
def test_without_a_heartbeat_its_age_is_infinite():
    cache.delete(HEARTBEAT_KEY)
    [silent] = collect_heartbeat()
    assert silent.samples[0].value == math.inf
    assert "dramatis_worker_heartbeat_age_seconds +Inf" in format_metrics([silent])
    record_heartbeat_job()
    [recent] = collect_heartbeat()
    assert 0 <= recent.samples[0].value < 5


@pytest.mark.django_db
@pytest.mark.redis
def test_with_the_database_down_the_other_metrics_remain(client, counters):
    def gone(execute, sql, params, many, context):
        raise OperationalError("connection to 10.0.0.7 refused")

    client.get("/healthz")
    with connection.execute_wrapper(gone):
        text = get_metrics(client)
    assert 'dramatis_up{part="database"} 0' in text
    assert 'dramatis_up{part="redis"} 1' in text
    assert 'dramatis_requests_total{family="health",status="200"} 1' in text
    assert "10.0.0.7" not in text


@pytest.mark.django_db
def test_with_redis_down_the_other_metrics_remain(client, settings, tmp_path):
    settings.REDIS_URL = f"unix://{tmp_path}/nobody.sock"
    text = get_metrics(client)
    assert 'dramatis_up{part="redis"} 0' in text
    assert "dramatis_build_queue_agents 0" in text


def test_label_values_are_escaped():
    text = format_metrics([build_labelled_gauge("x", "Help.", "a", {'b"\\\n': 1.5})])
    assert text.splitlines()[-1] == 'dramatis_x{a="b\\"\\\\\\n"} 1.5'


# --- counting ------------------------------------------------------------------------------------------


def test_every_route_has_a_known_family():
    routes = [value for values in get_resolver().reverse_dict.lists() for value in values[1]]
    assert routes
    for path in ("/healthz", "/metrics", "/accounts/login/", "/operator/", "/w/a/agents/", "/api/v1/agents"):
        assert re.fullmatch(r"[a-z_-]+", get_route_family(resolve(path))), path
    assert get_route_family(resolve("/api/v1/agents/pilot/channels/deck/prompt")) == "fetch"
    assert get_route_family(resolve("/w/harbour/")) == "home"
    assert get_route_family(None) == "unknown"


@pytest.mark.redis
def test_times_fall_into_buckets_that_add_up(counters):
    for seconds in (0.001, 0.005, 0.03, 99.0):
        count_request("fetch", 200, seconds)
    assert counters.flush()
    text = format_metrics(build_counter_families(metrics_counters.get_counter_sums()))
    assert 'dramatis_request_seconds_bucket{family="fetch",le="0.005"} 2' in text
    assert 'dramatis_request_seconds_bucket{family="fetch",le="0.05"} 3' in text
    assert f'dramatis_request_seconds_bucket{{family="fetch",le="{BUCKET_SECONDS[-1]:g}"}} 3' in text
    assert 'dramatis_request_seconds_bucket{family="fetch",le="+Inf"} 4' in text
    assert 'dramatis_request_seconds_count{family="fetch"} 4' in text


@pytest.mark.redis
def test_fetches_are_counted_by_outcome(counters):
    for status in (200, 200, 304, 404, 429, 503):
        count_request("fetch", status, 0.001)
    counters.flush()
    text = format_metrics(build_counter_families(metrics_counters.get_counter_sums()))
    for outcome, count in {"served": 2, "unchanged": 1, "refused": 2, "failed": 1}.items():
        assert f'dramatis_fetches_total{{outcome="{outcome}"}} {count}' in text


@pytest.mark.redis
def test_jobs_are_counted_by_name_and_outcome(db, counters):
    import project.metrics.collectors  # noqa: F401  # as a worker does when it starts

    record_heartbeat_job.apply()
    counters.flush()
    assert metrics_counters.get_counter_sums()["jobs", "record_heartbeat_job", "success"] == 1


@pytest.mark.slow
@pytest.mark.redis
def test_three_processes_make_one_sum(counters):
    """Each child exits as the child of a server does, and flushes its counts then."""

    def serve() -> None:
        own = ProcessCounters(interval=3_600)
        own.start()
        for _ in range(100):
            own.add({("requests", "fetch", "200"): 1})

    fork = multiprocessing.get_context("fork")
    children = [fork.Process(target=serve) for _ in range(3)]
    for child in children:
        child.start()
    for child in children:
        child.join(120)
    assert metrics_counters.get_counter_sums().get(("requests", "fetch", "200")) == 300


@pytest.mark.slow
@pytest.mark.planted
@pytest.mark.redis
def test_processes_that_keep_their_counts_to_themselves_are_noticed(counters, monkeypatch):
    monkeypatch.setattr(metrics_counters, "send_counts", lambda client, counted: None)
    with pytest.raises(AssertionError):
        test_three_processes_make_one_sum(counters)


@pytest.mark.redis
def test_an_outage_of_redis_loses_no_count(counters, settings, tmp_path):
    there, settings.REDIS_URL = settings.REDIS_URL, f"unix://{tmp_path}/nobody.sock"
    counters.add({("requests", "fetch", "200"): 3})
    assert not counters.flush()
    settings.REDIS_URL = there
    assert counters.flush()
    assert metrics_counters.get_counter_sums()["requests", "fetch", "200"] == 3


@pytest.mark.slow
@pytest.mark.redis
def test_a_frozen_redis_counts_nothing_twice(settings):
    server = start_redis()
    settings.REDIS_URL = server.url
    counters = ProcessCounters(interval=3_600)
    counters.start()
    try:
        counters.add({("requests", "fetch", "200"): 3})
        freeze(server.process)
        assert [counters.flush() for _ in range(3)] == [False] * 3
        thaw(server.process)
        assert counters.flush()
        assert metrics_counters.get_counter_sums() == {("requests", "fetch", "200"): 3}
    finally:
        counters.stop()
        server.stop()


def test_nothing_is_counted_before_a_server_begins():
    idle = ProcessCounters()
    idle.add({("requests", "fetch", "200"): 1})
    assert idle.thread is None
    assert idle.flush()


def test_refusals_of_other_parts_are_counted_too(settings):
    names = settings.MIDDLEWARE
    counting_at = names.index(f"{RequestMetricsMiddleware.__module__}.RequestMetricsMiddleware")
    assert counting_at < names.index("project.middleware.body_size.BodyLimitMiddleware")
