"""Where adapters take their prompt from; it also sets trace attributes and reports what was loaded."""

import asyncio
import logging
from dataclasses import dataclass, field
from importlib import import_module

from dramatis_client.async_client import AsyncClient
from dramatis_client.client import Client
from dramatis_client.core import PRODUCTION
from dramatis_client.problems import DramatisError
from dramatis_client.prompts import Prompt

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class PromptSource:
    """The prompt of an agent on a channel, loaded for each turn; the client's cache makes that cheap.

    Each load sets attributes on the current span of OpenTelemetry, if that is installed. With
    `is_reporting`, each loaded text is reported to the server once; a failed report is only logged.
    """

    client: Client | AsyncClient
    agent: str
    channel: str
    label: str = PRODUCTION
    version: int | None = None
    fallback: str | None = None
    is_reporting: bool = False
    _reported: set[str] = field(default_factory=set, repr=False, compare=False)

    def load(self) -> Prompt:
        if isinstance(self.client, AsyncClient):
            raise TypeError("An AsyncClient needs load_async().")
        prompt = self.client.get_prompt(
            self.agent, self.channel, label=self.label, version=self.version, fallback=self.fallback
        )
        set_span_attributes(prompt)
        if self._needs_report(prompt):
            try:
                self.client.report(prompt)
            except DramatisError as error:
                log.warning("The loaded prompt is not reported: %s", error)
        return prompt

    async def load_async(self) -> Prompt:
        """Load with either client; a blocking one runs in a thread."""
        if isinstance(self.client, Client):
            return await asyncio.to_thread(self.load)
        prompt = await self.client.get_prompt(
            self.agent, self.channel, label=self.label, version=self.version, fallback=self.fallback
        )
        set_span_attributes(prompt)
        if self._needs_report(prompt):
            try:
                await self.client.report(prompt)
            except DramatisError as error:
                log.warning("The loaded prompt is not reported: %s", error)
        return prompt

    def _needs_report(self, prompt: Prompt) -> bool:
        if not self.is_reporting or prompt.served_digest in self._reported:
            return False
        self._reported.add(prompt.served_digest)
        return True


def set_span_attributes(prompt: Prompt) -> None:
    """Set the prompt's trace attributes on the current span, if opentelemetry-api is installed."""
    try:
        trace = import_module("opentelemetry.trace")
    except ImportError:
        return
    span = trace.get_current_span()
    if span.is_recording():
        span.set_attributes(prompt.trace_metadata())
