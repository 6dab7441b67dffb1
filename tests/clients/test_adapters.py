"""Adapters with the real frameworks: the system text that they send is the served text, byte for byte."""

import json
import os
import subprocess
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tests.clients.client_environment import get_locked_environment
from tests.clients.drivers import KEY
from tests.clients.stub_server import (
    ReceivedRequest,
    StubResponse,
    StubServer,
    prompt_response,
    run_stub_server,
)

pytestmark = pytest.mark.hard
ROOT = Path(__file__).parents[2]
JSON = {"Content-Type": "application/json"}
# What frameworks could change: templates, spaces and line ends at both ends, characters beyond the BMP.
TEXT = "  Be brave, {name} {{and}} ${kind} %s <b>&amp;</b>.\r\n\tÜnd frei – 🦊\n\n"
TOOL = {"name": "weather", "description": "Look it up.", "parameters": {"type": "object", "properties": {}}}
CHAT = {
    "id": "1",
    "object": "chat.completion",
    "created": 1,
    "model": "fake",
    "choices": [
        {
            "index": 0,
            "finish_reason": "stop",
            "message": {"role": "assistant", "content": "Hi.", "refusal": None},
        }
    ],
    "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
}
RESPONSES = {
    "id": "1",
    "object": "response",
    "created_at": 1,
    "model": "fake",
    "output": [],
    "parallel_tool_calls": False,
    "tool_choice": "auto",
    "tools": [],
}
MESSAGE = {
    "id": "1",
    "type": "message",
    "role": "assistant",
    "model": "fake",
    "content": [{"type": "text", "text": "Hi."}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 1, "output_tokens": 1},
}
ANSWERS = {"/v1/chat/completions": CHAT, "/v1/responses": RESPONSES, "/v1/messages": MESSAGE}


@pytest.fixture(scope="module")
def python() -> Path:
    return get_locked_environment("adapters", ROOT / "requirements" / "adapters.txt")


@pytest.fixture
def model_server() -> Iterator[StubServer]:
    def reply(request: ReceivedRequest) -> StubResponse:
        return StubResponse(200, json.dumps(ANSWERS[request.path]).encode(), JSON)

    with run_stub_server() as server:
        server.reply = reply
        yield server


def reply_with_prompt(request: ReceivedRequest) -> StubResponse:
    if request.method == "POST":
        return StubResponse(200, b"{}", JSON)
    blocks = [
        {"text": TEXT[:9], "volatility": "release", "is_cacheable": True},
        {"text": TEXT[9:], "volatility": "turn", "is_cacheable": False},
    ]
    return prompt_response(TEXT, 3, blocks=blocks, tools=[TOOL])


def read_chat(body: Any) -> str:
    [system] = [message for message in body["messages"] if message["role"] == "system"]
    assert [message["role"] for message in body["messages"]].index("system") == 0
    return str(system["content"])


def read_anthropic(body: Any) -> str:
    assert [block.get("cache_control") for block in body["system"]] == [{"type": "ephemeral"}, None]
    assert body["tools"] == [
        {"name": "weather", "description": "Look it up.", "input_schema": TOOL["parameters"]}
    ]
    return "".join([block["text"] for block in body["system"]])


READERS = {
    "/v1/chat/completions": read_chat,
    "/v1/responses": lambda body: body["instructions"],
    "/v1/messages": read_anthropic,
}
# The requests to the model server of each program; the other models keep what they receive.
PROGRAMS = {
    "openai": ["/v1/chat/completions", "/v1/responses"],
    "anthropic": ["/v1/messages"],
    "openai_agents": ["/v1/chat/completions"],
    "pydantic_ai": ["/v1/chat/completions", "/v1/chat/completions"],
    "langchain": [],
    "llama_index": [],
}


def run_program(python: Path, name: str, dramatis: StubServer, model: StubServer) -> Any:
    environment = {
        **{variable: os.environ[variable] for variable in ("PATH", "HOME") if variable in os.environ},
        "PYTHONPATH": str(ROOT / "clients" / "python" / "src"),
        "DRAMATIS_URL": dramatis.url,
        "DRAMATIS_KEY": KEY,
        "MODEL_URL": model.url,
    }
    program = Path(__file__).with_name("adapter_programs.py")
    done = subprocess.run(
        [python, program, name], env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr[-3_000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_system_text_that_is_sent_is_the_served_text(name, python, stub_server, model_server):
    stub_server.reply = reply_with_prompt
    output = run_program(python, name, stub_server, model_server)
    assert [request.path for request in model_server.requests] == PROGRAMS[name]
    bodies = [(request.path, json.loads(request.body)) for request in model_server.requests]
    texts = [READERS[path](body) for path, body in bodies] or [output["system"]]
    assert texts == [TEXT] * len(texts)
    assert output["attributes"] == {
        "gen_ai.prompt.name": "pilot.deck",
        "gen_ai.prompt.version": "3",
        "gen_ai.agent.name": "pilot",
        "dramatis.label": "production",
        "dramatis.digest": json.loads(prompt_response(TEXT, 3).body)["digest"],
        "dramatis.ledger_id": 43,
    }
    [report] = [json.loads(request.body) for request in stub_server.requests if request.method == "POST"]
    assert (report["digest"], report["ledger_id"]) == (sha256(TEXT.encode()).hexdigest(), 43)


def test_adapters_are_short():
    folder = ROOT / "clients" / "python" / "src" / "dramatis_client" / "adapters"
    lengths = {path.stem: len(path.read_text().splitlines()) for path in folder.glob("*.py")}
    assert set(PROGRAMS) <= set(lengths)
    assert {name: length for name, length in lengths.items() if name in PROGRAMS and length >= 60} == {}


@pytest.mark.planted
def test_a_changed_text_is_detected(python, stub_server, model_server, monkeypatch):
    def reply_with_stripped_text(request: ReceivedRequest) -> StubResponse:
        return prompt_response(TEXT.strip(), 3) if request.method == "GET" else StubResponse(200, b"{}", JSON)

    monkeypatch.setattr(f"{__name__}.reply_with_prompt", reply_with_stripped_text)
    with pytest.raises(AssertionError):
        test_the_system_text_that_is_sent_is_the_served_text("openai", python, stub_server, model_server)
