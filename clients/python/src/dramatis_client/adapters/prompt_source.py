"""Where adapters take their prompt from; it also reports what was loaded."""

import asyncio
import logging
from dataclasses import dataclass, field

from dramatis_client.async_client import AsyncClient
from dramatis_client.client import Client
from dramatis_client.core import PRODUCTION
from dramatis_client.problems import DramatisError
from dramatis_client.prompts import Prompt

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class PromptSource:
    """The prompt of an agent on a channel, loaded for each turn; the client's cache makes that cheap.

    With `is_reporting`, each loaded text is reported to the server once; a failed report is only logged. The
    client sets attributes on the current span of OpenTelemetry, if that is installed.
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
            raise TypeError("Use load_async() with an AsyncClient.")
        prompt = self.client.get_prompt(
            self.agent, self.channel, label=self.label, version=self.version, fallback=self.fallback
        )
        if self._needs_report(prompt):
            try:
                self.client.report(prompt)
            except DramatisError as error:
                log.warning("The loaded prompt could not be reported: %s", error)
        return prompt

    async def load_async(self) -> Prompt:
        """Load with either client; a blocking one runs in a thread, which has the span of this call."""
        if isinstance(self.client, Client):
            return await asyncio.to_thread(self.load)
        prompt = await self.client.get_prompt(
            self.agent, self.channel, label=self.label, version=self.version, fallback=self.fallback
        )
        if self._needs_report(prompt):
            try:
                await self.client.report(prompt)
            except DramatisError as error:
                log.warning("The loaded prompt could not be reported: %s", error)
        return prompt

    def _needs_report(self, prompt: Prompt) -> bool:
        if not self.is_reporting or prompt.served_digest in self._reported:
            return False
        self._reported.add(prompt.served_digest)
        return True
