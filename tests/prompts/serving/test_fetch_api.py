"""The fetch by both of its doors: what is asked, what is answered, and that every answer has its row."""

import datetime as dt
import json
from base64 import b64decode
from hashlib import sha256

import pytest
from django.conf import settings
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from personas.api.validation import build_validator, find_schema_errors
from personas.api_keys.format import generate_key_secret
from prompts.models import PromptVersion
from prompts.replay.services import replay_entry
from prompts.serving.http_params import negotiate_content_type, parse_if_none_match
from prompts.serving.schema import SERVED_PROMPT_SCHEMA
from tests.factories import make_memory, make_profile
from tests.prompts.serving.fetch_stage import (
    ADDRESS,
    DOORS,
    Heard,
    ask,
    both_doors,
    by_django,
    by_fast_door,
    problem,
)
from tests.prompts.serving.serving_stage import Stage, make_stage
from tests.shared_cast import (  # noqa: F401  # fixtures
    cast,
    shared_alice,
    shared_bob,
    shared_props,
    shared_workspace,
)

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.prompts.serving.fetch_urls")]

# What differs from one fetch to the next by itself.
# The length varies because a ledger id may have one digit more than the one before.
OWN = {"X-Request-ID", "X-Ledger-ID", "Repr-Digest", "RateLimit", "Content-Length"}

set_stage = make_stage


@pytest.fixture
def stage(props: Stage) -> Stage:
    return props


# --- what is answered ----------------------------------------------------------------------------------


@both_doors
def test_a_fetch_tells_the_text_and_all_that_is_known_of_it(stage, door):
    heard = ask(door, stage)
    said = json.loads(heard.body)
    [row] = stage.rows
    version = PromptVersion.objects.in_workspace(stage.workspace).get()
    assert heard.status == 200
    assert (said["agent"], said["channel"], said["label"], said["as_of"]) == (
        *("pilot", "deck", "production"),
        None,
    )
    assert said["version"]["number"] == 1
    assert said["version"]["digest"] == said["digest"] == version.digest
    assert said["ledger_id"] == row.pk
    assert said["served_digest"] == row.served_digest == sha256(said["text"].encode()).hexdigest()
    assert said["slots"] == row.slots
    assert said["tokens"]["total"] == sum(said["tokens"]["sections"].values()) == version.tokens
    assert said["tools"] == []
    assert replay_entry(stage.workspace, row.pk).text == said["text"]
    assert find_schema_errors(build_validator(SERVED_PROMPT_SCHEMA), said) == []


@both_doors
def test_the_headers_say_how_long_to_keep_it_and_how_to_check_it(stage, door):
    heard = ask(door, stage)
    said, headers = json.loads(heard.body), heard.headers
    assert headers["Cache-Control"] == (
        "private, max-age=30, stale-while-revalidate=300, stale-if-error=86400"
    )
    assert headers["Vary"] == "Authorization, Accept"
    assert headers["ETag"] == f'W/"{said["digest"]}"'
    assert headers["X-Request-ID"] == stage.rows[0].request_id
    assert headers["X-Content-SHA256"] == said["served_digest"]
    assert headers["X-Dramatis-Version"] == "1"
    assert headers["X-Ledger-ID"] == str(stage.rows[0].pk)
    assert headers["Content-Length"] == str(len(heard.body))
    digest = headers["Repr-Digest"].removeprefix("sha-256=:").removesuffix(":")
    assert b64decode(digest) == sha256(heard.body).digest()
    assert headers["RateLimit-Policy"].startswith('"fetch";')


@both_doors
def test_markdown_is_the_words_alone(stage, door):
    heard = ask(door, stage, ACCEPT="text/markdown")
    assert heard.headers["Content-Type"] == "text/markdown; charset=utf-8"
    assert sha256(heard.body).hexdigest() == stage.rows[0].served_digest == heard.headers["X-Content-SHA256"]
    assert b64decode(heard.headers["Repr-Digest"][9:-1]) == sha256(heard.body).digest()


@pytest.mark.parametrize("layout", ["dramatis", "opal", "pi", "moltis", "nova", "ptc"])
def test_segments_cover_the_text_and_boundaries_stand_between_them(stage, layout):
    make_memory(stage.workspace, "The cook likes tea — always 🦊.")
    stage.relay(layout, user_profile=make_profile(stage.workspace, name="Ada", timezone="Asia/Tokyo"))
    said = json.loads(ask(by_fast_door, stage).body)
    ends = [0]
    for segment in said["segments"]:
        start, end = segment["range"]
        assert start == ends[-1]
        assert end > start
        ends.append(end)
    assert ends[-1] == len(said["text"])
    for one in said["cache_boundaries"]:
        assert one["offset"] in ends
    lasting = [segment["cacheable"] for segment in said["segments"]]
    assert lasting == sorted(lasting, reverse=True)
    assert all(segment["slot"] or segment["volatility"] != "turn" for segment in said["segments"])


def test_our_own_layout_can_be_cached_up_to_what_a_call_says(stage):
    make_memory(stage.workspace, "The cook likes tea.")
    stage.edit("Be wise.")
    said = json.loads(ask(by_fast_door, stage).body)
    last = said["cache_boundaries"][-1]["offset"]
    assert said["text"][last:].lstrip().startswith("<now>")
    assert "The cook likes tea." in said["text"][:last]
    at_now = next(segment for segment in said["segments"] if segment["section"] == "now")
    assert (at_now["slot"], at_now["cacheable"], at_now["range"][0]) == ("dramatis.now", False, last)


# --- the two doors -------------------------------------------------------------------------------------

QUESTIONS = [
    {},
    {"ACCEPT": "text/markdown"},
    {"method": "HEAD"},
    {"query": "channel=deck&label=latest"},
    {"query": "channel=moon"},
    {"query": "channel=deck&colour=red"},
    {"query": "channel=deck&channel=deck"},
    {"query": ""},
    {"query": "channel=deck&at=yesterday"},
    {"query": "channel=deck&at=2020-01-01T00:00:00Z"},
    {"AUTHORIZATION": "Bearer nonsense"},
    {"AUTHORIZATION": ""},
    {"ACCEPT": "image/png"},
    {"IF_NONE_MATCH": "*"},
    {"query": f"channel=deck&key={generate_key_secret()}"},
]


def test_both_doors_give_the_same_answer(stage):
    statuses = set()
    for asked in QUESTIONS:
        one, other = (ask(door, stage, **asked) for door in DOORS)
        assert not one.was_passed_on
        assert one.status == other.status
        assert shared_headers(one) == shared_headers(other)
        assert one.headers.keys() == other.headers.keys()
        if asked.get("method") != "HEAD":
            assert all(
                int(reply.headers["Content-Length"]) == len(reply.body)
                for reply in (one, other)
                if reply.body
            )
        assert without_own(one) == without_own(other)
        statuses.add(one.status)
    assert statuses == {200, 304, 400, 401, 404, 406, 422}


def shared_headers(heard: Heard) -> dict[str, str]:
    return {name: heard.headers[name] for name in heard.headers if name not in OWN}


def without_own(heard: Heard) -> object:
    """The body less what no two answers share: row, request and the time of the call."""
    if not heard.body or heard.headers["Content-Type"].startswith("text/"):
        return heard.body
    said = json.loads(heard.body)
    return list(said), {
        name: value for name, value in said.items() if name not in {"ledger_id", "request_id", "slots"}
    }


PASSED_ON = [
    ("POST", ADDRESS),
    ("OPTIONS", ADDRESS),
    ("GET", f"{ADDRESS}/"),
    ("GET", f"{ADDRESS}:render"),
    ("GET", "/api/v1/agents/pi/lot/prompt"),
    ("GET", "/api/v1/agents//prompt"),
    ("GET", "/api/v1/agents/pil%6ft/prompt"),
    ("GET", "/api/v1/agents/pilöt/prompt"),
    ("GET", "/w/api/v1/agents/pilot/prompt"),
    ("GET", "/"),
]


def test_the_fast_door_takes_fetches_and_nothing_else(stage):
    for method, path in PASSED_ON:
        assert ask(by_fast_door, stage, method=method, path=path).was_passed_on
    assert stage.rows == []


def test_what_comes_by_a_strange_name_is_left_to_django(stage):
    assert ask(by_fast_door, stage, HOST="evil.example").was_passed_on
    assert ask(by_fast_door, stage, HOST="").was_passed_on


def test_with_tls_what_comes_without_it_is_left_to_django(stage, settings):
    settings.SECURE_SSL_REDIRECT = True
    assert ask(by_fast_door, stage).was_passed_on
    settings.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    assert ask(by_fast_door, stage, X_FORWARDED_PROTO="http").was_passed_on
    assert not ask(by_fast_door, stage, X_FORWARDED_PROTO="https").was_passed_on


def test_other_methods_are_refused_with_the_ones_that_are_taken(stage):
    heard = ask(by_django, stage, method="POST")
    assert (heard.status, problem(heard)["code"], heard.headers["Allow"]) == (
        *(405, "method_not_allowed"),
        "GET, HEAD",
    )


@both_doors
def test_a_head_is_told_the_same_without_a_body_and_recorded(stage, door):
    whole, head = ask(door, stage), ask(door, stage, method="HEAD")
    assert (head.status, head.body) == (200, b"")
    assert head.headers.keys() == whole.headers.keys()
    assert head.headers["X-Content-SHA256"] == stage.rows[-1].served_digest
    assert [row.status for row in stage.rows] == [200, 200]


# --- what is asked -------------------------------------------------------------------------------------


@both_doors
def test_whoever_has_the_version_is_told_so_and_recorded(stage, door):
    digest = PromptVersion.objects.in_workspace(stage.workspace).get().digest
    for tags in ('W/"{}"', '"{}"', '"x", W/"{}"', 'W/"a,b" , "{}"', "*", " * "):
        heard = ask(door, stage, IF_NONE_MATCH=tags.format(digest))
        assert (heard.status, heard.body) == (304, b"")
        assert heard.headers["ETag"] == f'W/"{digest}"'
        assert "Content-Type" not in heard.headers
        assert stage.rows[-1].status == 304
        assert heard.headers["X-Ledger-ID"] == str(stage.rows[-1].pk)
    assert len(stage.rows) == 6


def test_whoever_has_something_else_gets_the_words(stage):
    for tags in ("", '""', 'W/"0"', "abc", '"*"', 'W/"unfinished'):
        assert ask(by_fast_door, stage, IF_NONE_MATCH=tags).status == 200


LIKED = [
    ("", "application/json"),
    ("*/*", "application/json"),
    ("application/*", "application/json"),
    ("text/*", "text/markdown"),
    ("text/markdown", "text/markdown"),
    ("TEXT/Markdown ; q=0.5", "text/markdown"),
    ("text/markdown, application/json", "application/json"),
    ("text/markdown, application/json;q=0.9", "text/markdown"),
    ("text/markdown;q=0.8, application/json;q=0.9", "application/json"),
    ("text/markdown, */*", "text/markdown"),
    ("text/markdown, */*;q=0.1", "text/markdown"),
    ("application/json;q=0, */*", "text/markdown"),
    ("text/html, */*;q=0.8", "application/json"),
    ("text/html", ""),
    ("*/*;q=0", ""),
    ("application/json;q=0", ""),
    ("text/markdown;q=nonsense", ""),
    (",;,", ""),
]


def test_the_form_is_the_one_that_is_liked_best():
    for accept, kind in LIKED:
        assert negotiate_content_type(accept) == kind, accept


def test_tags_are_read_whatever_stands_between_them():
    assert parse_if_none_match('W/"a",  "b"W/"c"') == ("a", "b", "c")


def test_a_moment_is_read_with_its_offset(stage):
    before = timezone.now()
    stage.edit("Be wise.")
    asked = before.isoformat()
    for spelled in (asked.replace("+", "%2B"), asked, asked.replace("+00:00", "Z")):
        said = json.loads(ask(by_fast_door, stage, query=f"channel=deck&at={spelled}").body)
        assert (said["version"]["number"], said["as_of"]) == (1, before.isoformat())
    assert all("@" in row.label for row in stage.rows)


@pytest.mark.parametrize("label", ["production", "latest"])
def test_a_moment_may_have_an_offset_that_no_place_has(stage, label):
    """PostgreSQL knows none beyond sixteen hours."""
    asked = timezone.now().astimezone(dt.timezone(-dt.timedelta(hours=22, minutes=28)))
    said = ask(by_fast_door, stage, query=f"channel=deck&label={label}&at={asked.isoformat()}")
    assert (said.status, json.loads(said.body)["version"]["number"]) == (200, 1)


UNFIT = [
    ("", "channel"),
    ("channel=", "channel"),
    ("label=production", "channel"),
    ("channel=deck&channel=deck", "channel"),
    ("channel=deck&label=a&label=b", "label"),
    ("channel=deck&verbose=1", "verbose"),
    ("channel=deck&at=", "at"),
    ("channel=deck&at=2026-01-01", "at"),
    ("channel=deck&at=2026-01-01T00:00:00", "at"),
    ("channel=deck&at=9999-12-31T23:59:59Z", "at"),
    ("channel=deck&at=2200-01-01T00:00:00Z", "at"),
    ("channel=deck&at=0001-01-01T00:00:00%2B05:00", "at"),
]


@both_doors
def test_a_parameter_that_does_not_fit_is_named(stage, door):
    for query, name in UNFIT:
        heard = ask(door, stage, query=query)
        assert (heard.status, problem(heard)["code"]) == (422, "invalid")
        assert name in [error["parameter"] for error in problem(heard)["errors"]]
    assert stage.rows == []


def test_what_cannot_be_a_name_is_not_there(stage):
    for query in ("channel=%ff%fe", "channel=de%00ck", "channel=../deck", "channel=deck&label=%F0%9F%A6%8A"):
        heard = ask(by_fast_door, stage, query=query)
        assert (heard.status, problem(heard)["code"]) == (404, "not_found")


def test_more_parameters_than_anybody_needs_are_refused_unread(stage):
    heard = ask(by_fast_door, stage, query="&".join(["channel=deck"] * 1_000))
    assert (heard.status, problem(heard)["code"]) == (400, "bad_request")


# --- both -----------------------------------------------------------------------------------------------


def test_a_fetch_is_one_statement_by_either_door(stage):
    for door in DOORS:
        ask(door, stage)
        with CaptureQueriesContext(connection) as queries:
            ask(door, stage)
        assert [query["sql"].split()[:3] for query in queries] == [["INSERT", "INTO", "prompts_ledgerentry"]]


def test_the_secret_is_nowhere_in_an_answer(stage):
    for asked in QUESTIONS:
        heard = ask(by_fast_door, stage, **asked)
        assert stage.secret not in f"{heard.headers}{heard.body!r}"


def test_the_door_is_in_front_of_the_application():
    assert settings.WSGI_APPLICATION == "project.wsgi.application"
    from project.fetch_fast_path import FetchFastPath
    from project.wsgi import application

    assert isinstance(application, FetchFastPath)
