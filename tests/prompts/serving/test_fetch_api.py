"""The fetch endpoint by the fast path and by Django: requests, responses and their ledger rows."""

import datetime as dt
import json
from base64 import b64decode
from hashlib import sha256
from itertools import accumulate
from typing import Any

import pytest
from django.conf import settings
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from personas.api.responses import datetime_json
from personas.api.validation import build_validator, find_schema_errors
from personas.api_keys.format import generate_key_secret
from personas.api_keys.services import create_key, revoke_key
from prompts.assembly.segments import VOLATILITY_LEVELS
from prompts.evidence.replay.services import replay_entry
from prompts.models import PromptVersion
from prompts.serving import fetch_api
from prompts.serving.http_params import (
    PROMPT_TYPES,
    TEXT_TYPES,
    negotiate_content_type,
    parse_if_none_match,
)
from prompts.serving.schema import SERVED_PROMPT_SCHEMA
from tests.factories import make_memory, make_profile
from tests.prompts.served_digests import is_recorded
from tests.prompts.serving.fetch_stage import (
    ADDRESS,
    ENTRY_POINTS,
    FetchResponse,
    both_entry_points,
    fetch_by_django,
    fetch_by_fast_path,
    problem_json,
    send_fetch,
)
from tests.prompts.serving.serving_stage import Stage, make_stage
from tests.shared_cast import (  # noqa: F401  # fixtures
    SharedCast,
    shared_alice,
    shared_as_alice,
    shared_as_bob,
    shared_as_mallory,
    shared_bob,
    shared_cast,
    shared_elsewhere,
    shared_mallory,
    shared_props,
    shared_workspace,
)

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.prompts.serving.fetch_urls")]

# Headers that differ between two fetches. The length varies with the number of digits of the ledger id.
VARYING_HEADERS = {"X-Request-ID", "Dramatis-Ledger", "Repr-Digest", "RateLimit", "Content-Length"}


def set_stage(shared: SharedCast) -> Any:
    return make_stage(shared.workspace)


@pytest.fixture
def stage(props: Stage) -> Stage:
    return props


# --- responses -----------------------------------------------------------------------------------------


@both_entry_points
def test_a_fetch_returns_the_text_and_its_metadata(stage, entry_point):
    response = send_fetch(entry_point, stage)
    data = json.loads(response.body)
    [row] = stage.rows
    version = PromptVersion.objects.in_workspace(stage.workspace).get()
    assert response.status == 200
    assert (data["agent"], data["channel"], data["label"], data["as_of"]) == (
        *("pilot", "deck", "production"),
        None,
    )
    assert (data["version"], data["digest"], data["layout"]) == (1, version.digest, version.layout)
    assert data["created_at"] == datetime_json(version.created_at)
    assert data["ledger_id"] == row.pk
    assert data["served_digest"] == sha256(data["text"].encode()).hexdigest()
    assert is_recorded(row, data["served_digest"])
    assert data["slots"] == row.slots
    tokens = data["tokens"]
    assert tokens["text"] == sum(tokens["sections"].values()) > 0
    assert tokens["total"] == tokens["text"] + tokens["tools"] == version.tokens
    assert data["tools"] == []
    assert replay_entry(stage.workspace, row.pk).text == data["text"]
    assert find_schema_errors(build_validator(SERVED_PROMPT_SCHEMA), data) == []


@both_entry_points
def test_the_headers_describe_caching_and_digests(stage, entry_point):
    response = send_fetch(entry_point, stage)
    data, headers = json.loads(response.body), response.headers
    assert headers["Cache-Control"] == (
        "private, max-age=30, stale-while-revalidate=300, stale-if-error=86400"
    )
    assert headers["Vary"] == "Authorization, Accept"
    assert headers["ETag"] == f'W/"{data["digest"]}"'
    assert headers["X-Request-ID"] == stage.rows[0].request_id
    assert headers["Dramatis-Digest"] == data["served_digest"]
    assert headers["Dramatis-Version"] == "1"
    assert headers["Dramatis-Ledger"] == str(stage.rows[0].pk)
    assert headers["Content-Length"] == str(len(response.body))
    digest = headers["Repr-Digest"].removeprefix("sha-256=:").removesuffix(":")
    assert b64decode(digest) == sha256(response.body).digest()
    assert headers["RateLimit-Policy"].startswith('"fetch";')


@both_entry_points
def test_markdown_is_the_text_only(stage, entry_point):
    response = send_fetch(entry_point, stage, path=f"{ADDRESS}.md")
    assert response.headers["Content-Type"] == "text/markdown; charset=utf-8"
    assert response.body.decode() == replay_entry(stage.workspace, stage.rows[0].pk).text
    assert sha256(response.body).hexdigest() == response.headers["Dramatis-Digest"]
    assert is_recorded(stage.rows[0], response.headers["Dramatis-Digest"])
    assert b64decode(response.headers["Repr-Digest"][9:-1]) == sha256(response.body).digest()


@pytest.mark.parametrize("layout", ["dramatis", "opal", "pi", "moltis", "nova", "ptc"])
def test_segments_and_blocks_cover_the_text(stage, layout):
    make_memory(stage.workspace, "The cook likes tea — always 🦊.")
    stage.change_layout(
        layout, user_profile=make_profile(stage.workspace, display_name="Ada", timezone="Asia/Tokyo")
    )
    data = json.loads(send_fetch(fetch_by_fast_path, stage).body)
    ends = [0]
    for segment in data["segments"]:
        start, end = segment["range"]
        assert start == ends[-1]
        assert end > start
        ends.append(end)
    assert ends[-1] == len(data["text"])
    blocks = data["blocks"]
    assert "".join(block["text"] for block in blocks) == data["text"]
    assert set(accumulate(len(block["text"]) for block in blocks)) <= set(ends)
    ranks = [VOLATILITY_LEVELS.index(block["volatility"]) for block in blocks]
    assert ranks == sorted(set(ranks))
    for members in (blocks, data["segments"]):
        cacheable = [member["is_cacheable"] for member in members]
        assert cacheable == sorted(cacheable, reverse=True)
    cacheable_text = "".join(block["text"] for block in blocks if block["is_cacheable"])
    segment_ends = [segment["range"][1] for segment in data["segments"] if segment["is_cacheable"]]
    assert len(cacheable_text) == max(segment_ends, default=0)
    assert all(segment["slot"] or segment["volatility"] != "turn" for segment in data["segments"])


def test_our_own_layout_is_cacheable_up_to_the_slots_of_a_call(stage):
    make_memory(stage.workspace, "The cook likes tea.")
    stage.edit("Be wise.")
    data = json.loads(send_fetch(fetch_by_fast_path, stage).body)
    *cacheable, last_block = data["blocks"]
    assert last_block["text"].lstrip().startswith("<now>")
    assert (last_block["volatility"], last_block["is_cacheable"]) == ("turn", False)
    assert all(block["is_cacheable"] for block in cacheable)
    assert "The cook likes tea." in "".join(block["text"] for block in cacheable)
    last = len(data["text"]) - len(last_block["text"])
    at_now = next(segment for segment in data["segments"] if segment["section"] == "now")
    assert (at_now["slot"], at_now["is_cacheable"], at_now["range"][0]) == ("dramatis.now", False, last)


@both_entry_points
def test_the_text_is_plain_text_for_clients_that_accept_nothing_else(stage, entry_point):
    plain = send_fetch(entry_point, stage, path=f"{ADDRESS}.md", ACCEPT="text/plain")
    assert (plain.status, plain.headers["Content-Type"]) == (200, "text/plain; charset=utf-8")


@both_entry_points
def test_a_client_that_accepts_markdown_gets_the_text(stage, entry_point):
    text = send_fetch(entry_point, stage, ACCEPT="text/markdown")
    assert (text.status, text.headers["Content-Type"]) == (200, "text/markdown; charset=utf-8")
    assert text.body.decode() == replay_entry(stage.workspace, stage.rows[0].pk).text
    assert text.headers["Vary"] == "Authorization, Accept"
    assert text.headers["Content-Length"] == str(len(text.body))
    head = send_fetch(entry_point, stage, method="HEAD", ACCEPT="text/markdown")
    assert [head.headers[name] for name in ("ETag", "Content-Type")] == [
        text.headers[name] for name in ("ETag", "Content-Type")
    ]


@both_entry_points
def test_the_text_and_the_json_of_one_address_have_different_etags(stage, entry_point):
    etags = {}
    for accept in (MARKDOWN, JSON):
        etags[accept] = send_fetch(entry_point, stage, ACCEPT=accept).headers["ETag"]
    assert etags[JSON] == f'W/"{stage.prompt.latest.digest}"'
    assert len(set(etags.values())) == 2
    for accept, own in etags.items():
        for etag in etags.values():
            response = send_fetch(entry_point, stage, ACCEPT=accept, IF_NONE_MATCH=etag)
            assert (response.status, response.headers["ETag"]) == (304 if etag == own else 200, own)
        assert send_fetch(entry_point, stage, ACCEPT=accept, IF_NONE_MATCH="*").status == 304
    stage.edit("Be wise.")
    assert send_fetch(entry_point, stage, ACCEPT=MARKDOWN, IF_NONE_MATCH=etags[MARKDOWN]).status == 200


@pytest.mark.planted
def test_an_etag_that_two_representations_share_is_detected(stage, monkeypatch):
    monkeypatch.setattr(fetch_api, "TEXT_TAG", "")
    with pytest.raises(AssertionError):
        test_the_text_and_the_json_of_one_address_have_different_etags(stage, fetch_by_fast_path)


@both_entry_points
def test_a_form_that_an_address_does_not_have_is_refused(stage, entry_point):
    for path, accept in ((ADDRESS, "text/html"), (ADDRESS, "text/plain"), (f"{ADDRESS}.md", JSON)):
        refused = send_fetch(entry_point, stage, path=path, ACCEPT=accept)
        assert (refused.status, problem_json(refused)["code"]) == (406, "not_acceptable")
    assert stage.rows == []


# --- fast path and Django ------------------------------------------------------------------------------

REQUESTS = [
    {},
    {"ACCEPT": "text/markdown"},
    {"ACCEPT": "text/markdown", "IF_NONE_MATCH": "*"},
    {"path": f"{ADDRESS}.md"},
    {"path": f"{ADDRESS}.md", "ACCEPT": "text/plain"},
    {"path": f"{ADDRESS}.md", "ACCEPT": "application/json"},
    {"method": "HEAD"},
    {"query": "label=latest"},
    {"path": "/api/v1/agents/pilot/channels/moon/prompt"},
    {"query": "colour=red"},
    {"query": "label=latest&label=latest"},
    {"query": "channel=deck"},
    {"query": "at=yesterday"},
    {"query": "at=2020-01-01T00:00:00Z"},
    {"query": "version=1"},
    {"query": "version=2"},
    {"query": "version=1&at=2020-01-01T00:00:00Z"},
    {"AUTHORIZATION": "Bearer nonsense"},
    {"AUTHORIZATION": ""},
    {"ACCEPT": "image/png"},
    {"IF_NONE_MATCH": "*"},
    {"query": f"key={generate_key_secret()}"},
]


@pytest.mark.usefixtures("stopped_clock")
def test_fast_path_and_django_give_the_same_response(stage):
    statuses = set()
    for options in REQUESTS:
        one, other = (send_fetch(entry_point, stage, **options) for entry_point in ENTRY_POINTS)
        assert not one.was_passed_on
        assert one.status == other.status
        assert shared_headers(one) == shared_headers(other)
        assert one.headers.keys() == other.headers.keys()
        if options.get("method") != "HEAD":
            assert all(
                int(reply.headers["Content-Length"]) == len(reply.body)
                for reply in (one, other)
                if reply.body
            )
        assert comparable_body(one) == comparable_body(other)
        statuses.add(one.status)
    assert statuses == {200, 304, 400, 401, 404, 406, 422}


def shared_headers(response: FetchResponse) -> dict[str, str]:
    return {name: response.headers[name] for name in response.headers if name not in VARYING_HEADERS}


def comparable_body(response: FetchResponse) -> object:
    """Return the body without the fields that differ per call: row, request id and time."""
    if not response.body or response.headers["Content-Type"].startswith("text/"):
        return response.body
    data = json.loads(response.body)
    return list(data), {
        name: value for name, value in data.items() if name not in {"ledger_id", "request_id", "slots"}
    }


PASSED_ON = [
    ("POST", ADDRESS),
    ("OPTIONS", ADDRESS),
    ("GET", f"{ADDRESS}/"),
    ("GET", f"{ADDRESS}:render"),
    ("GET", f"{ADDRESS}.txt"),
    ("GET", f"{ADDRESS}xmd"),
    ("GET", "/api/v1/agents/pi/lot/channels/deck/prompt"),
    ("GET", "/api/v1/agents//channels/deck/prompt"),
    ("GET", "/api/v1/agents/pilot/channels//prompt"),
    ("GET", "/api/v1/agents/pil%6ft/channels/deck/prompt"),
    ("GET", "/api/v1/agents/pilöt/channels/deck/prompt"),
    ("GET", f"/w{ADDRESS}"),
    ("GET", "/"),
]


def test_the_fast_path_handles_fetches_only(stage):
    for method, path in PASSED_ON:
        assert send_fetch(fetch_by_fast_path, stage, method=method, path=path).was_passed_on
    assert stage.rows == []


def test_an_unknown_host_is_left_to_django(stage):
    assert send_fetch(fetch_by_fast_path, stage, HOST="evil.example").was_passed_on
    assert send_fetch(fetch_by_fast_path, stage, HOST="").was_passed_on


def test_with_tls_required_plain_http_is_left_to_django(stage, settings):
    settings.SECURE_SSL_REDIRECT = True
    assert send_fetch(fetch_by_fast_path, stage).was_passed_on
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    assert send_fetch(fetch_by_fast_path, stage, X_FORWARDED_PROTO="http").was_passed_on
    assert not send_fetch(fetch_by_fast_path, stage, X_FORWARDED_PROTO="https").was_passed_on


def test_other_methods_get_405_with_the_allowed_ones(stage):
    response = send_fetch(fetch_by_django, stage, method="POST")
    assert (response.status, problem_json(response)["code"], response.headers["Allow"]) == (
        *(405, "method_not_allowed"),
        "GET, HEAD",
    )


@pytest.mark.usefixtures("stopped_clock")
@both_entry_points
def test_a_head_gets_the_headers_of_a_fetch_and_leaves_no_row(stage, entry_point):
    """The ledger is evidence of text that was served; a monitor that sends HEAD gets none."""
    full = send_fetch(entry_point, stage)
    rows = len(stage.rows)
    for options in ({}, {"path": f"{ADDRESS}.md"}, {"IF_NONE_MATCH": "*"}):
        head, get = (send_fetch(entry_point, stage, method=method, **options) for method in ("HEAD", "GET"))
        assert (head.status, head.body) == (get.status, b"")
        missing = get.headers.keys() - head.headers.keys()
        assert missing <= {"Dramatis-Ledger", "Content-Length", "Repr-Digest"}
        assert head.headers.keys() <= get.headers.keys()
        for name in ("ETag", "Dramatis-Version", "Dramatis-Digest", "Cache-Control"):
            assert head.headers[name] == full.headers[name]
    assert len(stage.rows) == rows + 3


@both_entry_points
def test_a_head_is_refused_as_a_fetch_is(stage, entry_point, by_alice):
    _, narrow = create_key(stage.workspace, "Narrow", {"verbs": ["render"]}, by=by_alice)
    gone, revoked = create_key(stage.workspace, "Gone", {}, by=by_alice)
    assert send_fetch(entry_point, stage, method="HEAD", AUTHORIZATION=f"Bearer {revoked}").status == 200
    revoke_key(gone, by=by_alice)
    for options, status in (
        ({"AUTHORIZATION": f"Bearer {revoked}"}, 401),
        ({"AUTHORIZATION": f"Bearer {narrow}"}, 403),
        ({"query": "label=canary"}, 404),
        ({"ACCEPT": "image/png"}, 406),
        ({"query": "colour=red"}, 422),
    ):
        head = send_fetch(entry_point, stage, method="HEAD", **options)
        assert (head.status, head.body) == (status, b"")
    assert stage.rows == []


def test_a_head_notices_a_moved_label(stage):
    before = send_fetch(fetch_by_fast_path, stage)
    stage.edit("Be wise.")
    head = send_fetch(fetch_by_fast_path, stage, method="HEAD")
    assert head.headers["ETag"] != before.headers["ETag"]
    assert head.headers["Dramatis-Version"] == "2"


# --- requests ------------------------------------------------------------------------------------------


@both_entry_points
def test_a_client_with_the_version_gets_304_and_is_recorded(stage, entry_point):
    digest = PromptVersion.objects.in_workspace(stage.workspace).get().digest
    for tags in ('W/"{}"', '"{}"', '"x", W/"{}"', 'W/"a,b" , "{}"', "*", " * "):
        response = send_fetch(entry_point, stage, IF_NONE_MATCH=tags.format(digest))
        assert (response.status, response.body) == (304, b"")
        assert response.headers["ETag"] == f'W/"{digest}"'
        assert "Content-Type" not in response.headers
        assert stage.rows[-1].status == 304
        assert response.headers["Dramatis-Ledger"] == str(stage.rows[-1].pk)
        assert response.headers["Dramatis-Version"] == "1"
        assert is_recorded(stage.rows[-1], response.headers["Dramatis-Digest"])
    assert len(stage.rows) == 6


def test_a_client_with_another_version_gets_the_text(stage):
    for tags in ("", '""', 'W/"0"', "abc", '"*"', 'W/"unfinished'):
        assert send_fetch(fetch_by_fast_path, stage, IF_NONE_MATCH=tags).status == 200


JSON, MARKDOWN, PLAIN = "application/json", "text/markdown", "text/plain"
NEGOTIATED = [
    ("", JSON, MARKDOWN),
    ("*/*", JSON, MARKDOWN),
    ("application/*", JSON, ""),
    ("text/*", MARKDOWN, MARKDOWN),
    ("text/markdown", MARKDOWN, MARKDOWN),
    ("text/plain", "", PLAIN),
    ("text/plain, text/markdown;q=0.9", MARKDOWN, PLAIN),
    ("text/plain;q=0.8, text/markdown;q=0.9", MARKDOWN, MARKDOWN),
    ("text/plain, text/*", MARKDOWN, PLAIN),
    ("TEXT/Markdown ; q=0.5", MARKDOWN, MARKDOWN),
    ("text/markdown, application/json;q=0.9", MARKDOWN, MARKDOWN),
    ("text/markdown;q=0.8, application/json;q=0.9", JSON, MARKDOWN),
    ("application/json;q=0, */*", MARKDOWN, MARKDOWN),
    ("text/markdown;q=0, text/*", "", PLAIN),
    ("text/html, */*;q=0.8", JSON, MARKDOWN),
    ("text/html", "", ""),
    ("*/*;q=0", "", ""),
    ("application/json;q=0", "", ""),
    ("text/markdown;q=nonsense", "", ""),
    (",;,", "", ""),
]


def test_the_content_type_with_the_highest_quality_is_chosen():
    for accept, json_kind, text_kind in NEGOTIATED:
        assert negotiate_content_type(accept, PROMPT_TYPES) == json_kind, accept
        assert negotiate_content_type(accept, TEXT_TYPES) == text_kind, accept


def test_etags_are_parsed_with_any_separator():
    assert parse_if_none_match('W/"a",  "b"W/"c"') == ("a", "b", "c")


def test_a_timestamp_is_parsed_with_its_offset(stage):
    before = timezone.now()
    stage.edit("Be wise.")
    text = before.isoformat()
    for spelling in (text.replace("+", "%2B"), text, text.replace("+00:00", "Z")):
        data = json.loads(send_fetch(fetch_by_fast_path, stage, query=f"at={spelling}").body)
        assert (data["version"], data["as_of"]) == (1, before.isoformat())
    assert all("@" in row.label for row in stage.rows)


@pytest.mark.parametrize("label", ["production", "latest"])
def test_a_timestamp_may_have_an_unusual_offset(stage, label):
    """PostgreSQL supports no offset beyond sixteen hours."""
    at = timezone.now().astimezone(dt.timezone(-dt.timedelta(hours=22, minutes=28)))
    response = send_fetch(fetch_by_fast_path, stage, query=f"label={label}&at={at.isoformat()}")
    assert (response.status, json.loads(response.body)["version"]) == (200, 1)


INVALID = [
    ("channel=deck", "channel"),
    ("label=a&label=b", "label"),
    ("verbose=1", "verbose"),
    ("at=", "at"),
    ("at=2026-01-01", "at"),
    ("at=2026-01-01T00:00:00", "at"),
    ("at=2026-13-01T00:00:00Z", "at"),
]
NO_VERSION_AT = ("9999-12-31T23:59:59Z", "2200-01-01T00:00:00Z", "0001-01-01T00:00:00%2B05:00")


def test_a_time_without_a_version_is_not_found(stage):
    for at in NO_VERSION_AT:
        response = send_fetch(fetch_by_fast_path, stage, query=f"at={at}")
        assert (response.status, problem_json(response)["code"]) == (404, "no_version"), at
    assert stage.rows == []


@both_entry_points
def test_an_invalid_parameter_is_named(stage, entry_point):
    for query, name in INVALID:
        response = send_fetch(entry_point, stage, query=query)
        assert (response.status, problem_json(response)["code"]) == (422, "invalid")
        assert name in [error["parameter"] for error in problem_json(response)["errors"]]
    assert stage.rows == []


def test_an_invalid_slug_is_not_found(stage):
    paths = [ADDRESS.replace("deck", channel) for channel in ("De_ck", "-deck", "x" * 65)]
    requests = [{"path": path} for path in paths] + [{"query": "label=%F0%9F%A6%8A"}]
    for options in requests:
        response = send_fetch(fetch_by_fast_path, stage, **options)
        assert (response.status, problem_json(response)["code"]) == (404, "not_found")


def test_too_many_parameters_are_rejected(stage):
    response = send_fetch(fetch_by_fast_path, stage, query="&".join(["label=latest"] * 1_000))
    assert (response.status, problem_json(response)["code"]) == (400, "bad_request")


# --- both ----------------------------------------------------------------------------------------------


def test_a_fetch_is_one_statement_by_fast_path_and_django(stage):
    for entry_point in ENTRY_POINTS:
        send_fetch(entry_point, stage)
        with CaptureQueriesContext(connection) as queries:
            send_fetch(entry_point, stage)
        assert [query["sql"].split()[:3] for query in queries] == [["INSERT", "INTO", "prompts_ledgerentry"]]


def test_the_secret_is_in_no_response(stage):
    for options in REQUESTS:
        response = send_fetch(fetch_by_fast_path, stage, **options)
        assert stage.secret not in f"{response.headers}{response.body!r}"


def test_the_fast_path_wraps_the_application():
    assert settings.WSGI_APPLICATION == "project.wsgi.application"
    from project.fetch_fast_path import FetchFastPath
    from project.wsgi import application

    assert isinstance(application, FetchFastPath)
