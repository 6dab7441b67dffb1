"""Programs with real frameworks, one for each adapter; test_adapters.py runs them in an own environment.

Each sends one request to the model server at MODEL_URL, or to a model of the framework that keeps what it
receives. The program prints the system text that was sent, if the model server cannot know it, and the
attributes of the span.
"""
# mypy: ignore-errors
# The frameworks are not installed in the environment of the other tests.

import asyncio
import json
import os
import sys

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from dramatis_client import AsyncClient, Client
from dramatis_client.adapters import PromptSource

MODEL_URL = os.environ["MODEL_URL"]
MESSAGES = [{"role": "user", "content": "Hello."}]


def run_openai() -> None:
    from openai import OpenAI

    from dramatis_client.adapters.openai import chat_arguments, responses_arguments

    model = OpenAI(base_url=f"{MODEL_URL}/v1", api_key="x")
    source = PromptSource(Client(), "pilot", "deck", is_reporting=True)
    model.chat.completions.create(model="fake", **chat_arguments(source.load(), MESSAGES))
    model.responses.create(model="fake", **responses_arguments(source.load(), MESSAGES))


def run_anthropic() -> None:
    from anthropic import Anthropic

    from dramatis_client.adapters.anthropic import message_arguments

    model = Anthropic(base_url=MODEL_URL, api_key="x")
    source = PromptSource(Client(), "pilot", "deck", is_reporting=True)
    model.messages.create(model="fake", max_tokens=9, **message_arguments(source.load(), MESSAGES))


async def run_openai_agents() -> None:
    from agents import Agent, OpenAIChatCompletionsModel, Runner, set_tracing_disabled
    from openai import AsyncOpenAI

    from dramatis_client.adapters.openai_agents import instructions

    set_tracing_disabled(True)
    model = OpenAIChatCompletionsModel("fake", AsyncOpenAI(base_url=f"{MODEL_URL}/v1", api_key="x"))
    async with AsyncClient() as client:
        source = PromptSource(client, "pilot", "deck", is_reporting=True)
        agent = Agent(name="Pilot", instructions=instructions(source), model=model)
        await Runner.run(agent, "Hello.")


async def run_pydantic_ai() -> None:
    from pydantic_ai import Agent, DeferredToolRequests
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    from dramatis_client.adapters.pydantic_ai import add_system_prompt, build_toolset

    model = OpenAIChatModel("fake", provider=OpenAIProvider(base_url=f"{MODEL_URL}/v1", api_key="x"))
    async with AsyncClient() as client:
        source = PromptSource(client, "pilot", "deck", is_reporting=True)
        toolset = build_toolset(await source.load_async())
        agent = Agent(model, toolsets=[toolset], output_type=[str, DeferredToolRequests])
        add_system_prompt(agent, source)
        first = await agent.run("Hello.")
        await agent.run("Hello again.", message_history=first.all_messages())


async def run_langchain() -> str:
    from langchain.agents import create_agent
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage

    from dramatis_client.adapters.langchain import build_middleware

    received = []

    class RecordingModel(GenericFakeChatModel):
        def _generate(self, messages, *args, **options):
            received.append(messages[0].content)
            return super()._generate(messages, *args, **options)

    with Client() as client:
        source = PromptSource(client, "pilot", "deck", is_reporting=True)
        model = RecordingModel(messages=iter([AIMessage("Hi.")] * 3))
        agent = create_agent(model, middleware=[build_middleware(source)])
        agent.invoke({"messages": MESSAGES})
        await agent.ainvoke({"messages": MESSAGES})
        marked = create_agent(model, middleware=[build_middleware(source, max_marks=1)])
        marked.invoke({"messages": MESSAGES})
    plain, plain_async, blocks = received
    assert plain == plain_async == "".join([block["text"] for block in blocks])
    assert sum("cache_control" in block for block in blocks) == 1
    return plain


async def run_llama_index() -> str:
    from llama_index.core.agent.workflow import FunctionAgent
    from llama_index.core.llms.mock import MockFunctionCallingLLMWithChatMemoryOfLastCall as RecordingModel

    from dramatis_client.adapters.llama_index import build_agent, build_chat_messages

    async with AsyncClient() as client:
        source = PromptSource(client, "pilot", "deck", is_reporting=True)
        prompt = await source.load_async()
        model = RecordingModel()
        await build_agent(FunctionAgent, prompt, llm=model).run("Hello.")
        sent = model.last_chat_messages[0]
        assert sent.role == "system"
        assert build_chat_messages(prompt)[0].content == sent.content
        return sent.content


def main(name: str) -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    with trace.get_tracer("tests").start_as_current_span("turn"):
        result = globals()[f"run_{name}"]()
        system = asyncio.run(result) if asyncio.iscoroutine(result) else result
    [span] = [span for span in exporter.get_finished_spans() if span.name == "turn"]
    print(json.dumps({"system": system, "attributes": dict(span.attributes)}))


if __name__ == "__main__":
    main(sys.argv[1])
