"""The cases of clients/behaviour.json, which the Python and the TypeScript client both pass."""

import asyncio
import json
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from dramatis_client import DramatisError, Problem, Unreachable
from dramatis_client.cache_entries import PromptKey
from dramatis_client.disk_cache import DiskCache
from tests.clients.drivers import KEY, AsyncDriver, BlockingDriver, ClientFactory, Driver, set_clock
from tests.clients.stub_server import (
    ReceivedRequest,
    StubResponse,
    StubServer,
    make_etag,
    not_modified_response,
    problem_response,
    prompt_response,
)

BEHAVIOUR = json.loads((Path(__file__).parents[2] / "clients" / "behaviour.json").read_text())
CASES = {case["name"]: case for case in BEHAVIOUR["cases"]}
FORMATS = {example["name"]: example for example in BEHAVIOUR["formats"]}
RETRY_AFTER = "Retry-After"


def build_response(stub: Mapping[str, Any]) -> StubResponse | None:
    if "prompt" in stub:
        response = prompt_response(stub["prompt"], stub.get("version", 1), **stub.get("changes", {}))
        caching = {"Cache-Control": stub["cache_control"]} if "cache_control" in stub else {}
        return StubResponse(200, response.body, {**response.headers, **caching})
    if "not_modified" in stub:
        return not_modified_response(stub["not_modified"])
    if "problem" in stub:
        response = problem_response(stub["problem"], stub["code"])
        delay = {RETRY_AFTER: str(stub["retry_after"])} if "retry_after" in stub else {}
        return StubResponse(response.status, response.body, {**response.headers, **delay})
    if "disconnect" in stub:
        return None
    headers = {"Content-Type": stub.get("content_type", ""), "Location": stub.get("location", "")}
    return StubResponse(
        stub["status"],
        stub.get("body", "").encode(),
        {name: value for name, value in headers.items() if value},
    )


class Stage:
    """One case: its server, its folder and its current client."""

    def __init__(self, server: StubServer, make_client: ClientFactory, folder: Path | None) -> None:
        self.server = server
        self.make_client = make_client
        self.folder = folder
        self.clock: float | None = None
        # Whether the last of the simultaneous calls has begun.
        self.all_called = threading.Event()
        self.client = self.replace_client({})

    def replace_client(self, options: Mapping[str, Any]) -> Driver:
        self.client = self.make_client(
            self.server.url, options.get("key", BEHAVIOUR["key"]), cache_dir=self.folder
        )
        if self.clock is not None:
            set_clock(self.client, self.clock)
        return self.client

    def run(self, step: Mapping[str, Any]) -> None:
        """Perform a step: its first key names the method."""
        name, value = next(iter(step.items()))
        actions: dict[str, Callable[[Any], object]] = {
            "clock": self.set_clock,
            "respond": self.respond_with,
            "server": lambda action: {"start": self.server.start, "stop": self.server.stop}[action](),
            "call": lambda _: self.call(step),
            "settle": lambda _: self.client.wait_for_refreshes(),
            "requests": self.check_requests,
            "client": self.replace_client,
            "files": self.check_files,
            "damage": self.damage,
        }
        actions[name](value)

    def set_clock(self, now: float) -> None:
        self.clock = now
        set_clock(self.client, now)

    def respond_with(self, stubs: list[Mapping[str, Any]]) -> None:
        remaining = list(stubs)

        def reply(request: ReceivedRequest) -> StubResponse | None:
            stub = remaining.pop(0) if len(remaining) > 1 else remaining[0]
            if delay := stub.get("delay", 0):
                # On a busy machine the delay alone may be too short for all threads to start.
                self.all_called.wait(60)
                time.sleep(delay)
            return build_response(stub)

        self.server.reply = reply

    def call(self, step: Mapping[str, Any]) -> None:
        started_at = time.monotonic()
        for result in self.call_at_the_same_time(step):
            check_result(result, step.get("expect", {}))
        assert time.monotonic() - started_at >= step.get("at_least", 0)

    def call_at_the_same_time(self, step: Mapping[str, Any]) -> list[Any]:
        arguments = dict(step.get("with", {}))
        if step["call"] == "get_prompt":
            arguments = {"agent": "pilot", "channel": "deck", **arguments}
        times = step.get("times", 1)
        self.all_called.clear()
        if isinstance(self.client, AsyncDriver):
            client = self.client.client

            async def call_all() -> list[Any]:
                calls = [getattr(client, step["call"])(**arguments) for _ in range(times)]
                self.all_called.set()
                return await asyncio.gather(*calls, return_exceptions=True)

            return list(self.client.run(call_all()))

        begun = count(1)

        def call_once(_: int) -> Any:
            if next(begun) == times:
                self.all_called.set()
            try:
                return self.client.call(step["call"], **arguments)
            except DramatisError as error:
                return error

        with ThreadPoolExecutor(times) as pool:
            return list(pool.map(call_once, range(times)))

    def check_requests(self, expected: Mapping[str, Any]) -> None:
        assert len(self.server.requests) == expected["count"]
        request = self.server.requests[-1]
        for field, value in expected.get("last", {}).items():
            if field == "if_none_match":
                assert request.headers.get("if-none-match", "") == ", ".join(map(make_etag, value))
            else:
                assert getattr(request, field) == value

    def check_files(self, count: int) -> None:
        assert len(self.list_files()) == count

    def list_files(self) -> list[Path]:
        assert self.folder is not None
        return list(self.folder.rglob("*.json"))

    def damage(self, damage: Mapping[str, Any]) -> None:
        [path] = self.list_files()
        content = path.read_text()
        if "replace" in damage:
            assert damage["replace"] in content
            path.write_text(content.replace(damage["replace"], damage["by"]))
        else:
            path.write_text(content[: damage["truncate"]])


def check_result(result: Any, expected: Mapping[str, Any]) -> None:
    if "unreachable" in expected:
        assert isinstance(result, Unreachable)
    elif "problem" in expected:
        assert isinstance(result, Problem)
        check_fields(result, expected["problem"])
    elif isinstance(result, BaseException):
        raise result
    else:
        check_fields(result, expected)


def check_fields(result: Any, expected: Mapping[str, Any]) -> None:
    for field, value in expected.items():
        actual = getattr(result, field)
        if isinstance(value, list):
            for item, item_expected in zip(actual, value, strict=True):
                check_fields(item, item_expected)
        else:
            assert (actual.timestamp() if isinstance(actual, datetime) else actual) == value, field


@pytest.mark.parametrize("name", CASES)
@pytest.mark.usefixtures("short_delays")
def test_the_client_behaves_as_described(name, stub_server, make_client, tmp_path):
    case = CASES[name]
    stage = Stage(stub_server, make_client, tmp_path if case.get("has_folder") else None)
    for number, step in enumerate(case["steps"], 1):
        try:
            stage.run(step)
        except BaseException as error:
            error.add_note(f"step {number}: {json.dumps(step)}")
            raise


def test_the_key_of_the_cases_is_that_of_the_tests():
    assert BEHAVIOUR["key"] == KEY


def test_every_case_has_its_own_name():
    assert len(CASES) == len(BEHAVIOUR["cases"])


@pytest.mark.parametrize("name", FORMATS)
def test_prompts_are_converted_as_described(name, stub_server, make_client_of_kind):
    example = FORMATS[name]
    stub_server.respond_with(prompt_response(example["text"], example["version"], **example["changes"]))
    prompt: Any = make_client_of_kind(BlockingDriver, stub_server.url).prompt()
    assert prompt.to_openai() == example["openai"]
    assert prompt.to_openai_tools() == example["openai_tools"]
    assert prompt.to_responses_tools() == example["openai_responses_tools"]
    for max_marks, blocks in example["anthropic"].items():
        assert prompt.to_anthropic(max_marks=int(max_marks)) == blocks
    assert prompt.to_anthropic() == example["anthropic"]["1"]
    assert prompt.to_anthropic_tools() == example["anthropic_tools"]
    assert prompt.trace_metadata() == example["trace_attributes"]


@pytest.mark.parametrize("number", range(len(BEHAVIOUR["files"])))
def test_files_have_the_described_names_and_signatures(number, tmp_path):
    example = BEHAVIOUR["files"][number]
    cache = DiskCache(tmp_path, example["url"], BEHAVIOUR["key"])
    key = PromptKey(**example["prompt"])
    header = json.loads(example["header"])
    assert cache.path(key) == tmp_path / example["path"]
    assert cache._sign(key, header, example["content"].encode()) == header["seal"]
    assert json.dumps(header) == example["header"]


@pytest.mark.planted
@pytest.mark.usefixtures("short_delays")
def test_a_client_that_trusts_proxies_is_detected(stub_server, make_client_of_kind, tmp_path, monkeypatch):
    monkeypatch.setattr("dramatis_client.cache.is_final", lambda error: True)
    make_client = partial(make_client_of_kind, BlockingDriver)
    with pytest.raises(Unreachable):
        test_the_client_behaves_as_described(
            "a proxy's responses use the copy", stub_server, make_client, tmp_path
        )
