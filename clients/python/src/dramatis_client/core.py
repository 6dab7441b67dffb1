"""Every API call as a plan (sans-I/O): its request and how its response is parsed, shared by both clients."""

import time
from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256
from typing import Any, NamedTuple, TypeVar

from dramatis_client import requests
from dramatis_client.cache import UNAUTHORIZED, PromptCache
from dramatis_client.cache_entries import PromptKey, to_datetime
from dramatis_client.disk_cache import DiskCache
from dramatis_client.io import Plan
from dramatis_client.problems import Problem, Unreachable
from dramatis_client.prompts import Prompt, parse_prompt
from dramatis_client.records import Memory, Skill
from dramatis_client.requests import Request, quote_segment
from dramatis_client.responses import Response
from dramatis_client.retries import send_with_retries
from dramatis_client.settings import CallOptions, ClientSettings
from dramatis_client.version import __version__

Files = Mapping[str, str] | Iterable[tuple[str, str]]
PRODUCTION = "production"
T = TypeVar("T")


class SkillSelection(NamedTuple):
    """The channel and the label whose version offers a skill; empty: chosen by the server."""

    channel: str = ""
    label: str = ""

    def to_params(self) -> dict[str, str]:
        return {name: value for name, value in self._asdict().items() if value}


class OfferedSkills(NamedTuple):
    """The number of a version, and the names of the skills that it offers."""

    version: int
    names: list[str]


class ClientCore:
    """State and plans shared by both clients; a client only runs the plans."""

    def __init__(self, settings: ClientSettings, clock: Callable[[], float] = time.time) -> None:
        if not settings.key:
            raise ValueError("An API key is required.")
        self.url = requests.validate_server_url(settings.url)
        disk = DiskCache(settings.cache_dir, self.url, settings.key) if settings.cache_dir else None
        self.headers = {
            "Accept": requests.JSON_TYPE,
            "Authorization": f"Bearer {settings.key}",
            "User-Agent": f"dramatis-client/{__version__}",
        }
        self.timeout = settings.timeout
        self.attempts = settings.attempts
        self.clock = clock
        self.cache = PromptCache(disk, settings.attempts, clock)

    def get_prompt(
        self,
        agent: str,
        channel: str,
        *,
        label: str,
        version: int | None,
        fallback: str | None,
        ttl: float | None,
        options: CallOptions,
    ) -> Plan[Prompt]:
        if version is not None and version < 1:
            raise ValueError("The version must be at least 1.")
        if ttl is not None and not ttl >= 0:
            raise ValueError("The ttl must be at least 0 seconds.")
        return self.cache.get_prompt(PromptKey(agent, channel, label, version), options, ttl, fallback)

    def render(
        self, agent: str, channel: str, label: str, facts: Mapping[str, Any], options: CallOptions
    ) -> Plan[Prompt]:
        path = f"{requests.prompt_path(agent, channel)}:render"
        response = yield from self.call(requests.post_request(path, {"label": label, **facts}), options)
        return parse_prompt(response.content, response.headers.get("etag", ""), to_datetime(self.clock()))

    def remember(
        self, text: str, agent: str | None, facts: Mapping[str, Any], options: CallOptions
    ) -> Plan[Memory]:
        body = {"text": text, "agent": agent, **facts}
        response = yield from self.call(requests.post_request("memories", body), options)
        return parse_record(Memory.from_json, response)

    def complete_step(
        self, task: int, step: int, is_done: bool, options: CallOptions
    ) -> Plan[dict[str, Any]]:
        path = f"tasks/{quote_segment(task)}/steps/{quote_segment(step)}:complete"
        response = yield from self.call(requests.post_request(path, {"is_done": is_done}), options)
        return response.json()

    def skill(self, agent: str, name: str, selection: SkillSelection, options: CallOptions) -> Plan[Skill]:
        path = f"agents/{quote_segment(agent)}/skills/{quote_segment(name)}"
        response = yield from self.call(requests.get_request(path, **selection.to_params()), options)
        return parse_record(Skill.from_json, response)

    def pull(self, agent: str, selection: SkillSelection, options: CallOptions) -> Plan[dict[str, str]]:
        channel = selection.channel or (yield from self.find_only_channel(agent, options))
        path = f"agents/{quote_segment(agent)}/channels/{quote_segment(channel)}/skills"
        label = {"label": selection.label} if selection.label else {}
        response = yield from self.call(requests.get_request(path, **label), options)
        offered = parse_record(list_stored_skills, response)
        files: dict[str, str] = {}
        for name in offered.names:
            # All files are those of one version, even if another is released meanwhile.
            params = {**label, "version": str(offered.version)}
            request = requests.get_request(f"{path}/{quote_segment(name)}/SKILL.md", **params)
            response = yield from self.call(request, options)
            files[name] = response.content.decode()
        return files

    def find_only_channel(self, agent: str, options: CallOptions) -> Plan[str]:
        """Return the channel on which the key may fetch the agent, if there is only one."""
        response = yield from self.call(requests.get_request("me"), options)
        channels = parse_record(
            lambda document: [str(one["channel"]) for one in document["prompts"] if one["agent"] == agent],
            response,
        )
        if len(channels) != 1:
            known = (
                f"This agent has: {', '.join(channels)}." if channels else "The key has none of this agent."
            )
            raise ValueError(f"channel is required. {known}")
        return channels[0]

    def report(
        self,
        prompt: Prompt,
        text: str | None,
        skills: Mapping[str, str] | None,
        facts: Mapping[str, str],
        options: CallOptions,
    ) -> Plan[dict[str, Any]]:
        body: dict[str, Any] = {
            "agent": prompt.agent,
            "channel": prompt.channel,
            # Of a filled prompt, the text that was served: the time does not make it another text.
            "digest": prompt.served_digest if text is None else sha256(text.encode()).hexdigest(),
        }
        # A fallback was not served, so it has no ledger row.
        if prompt.ledger_id:
            body["ledger_id"] = prompt.ledger_id
        if skills is not None:
            body["skills"] = [
                {"name": name, "digest": sha256(file.encode()).hexdigest()} for name, file in skills.items()
            ]
        body |= {name: value for name, value in facts.items() if value}
        response = yield from self.call(requests.post_request("prompts:report", body), options)
        return response.json()

    def push(
        self, source: str, files: Files, is_complete: bool, options: CallOptions
    ) -> Plan[dict[str, Any]]:
        pairs = files.items() if isinstance(files, Mapping) else files
        file_list = [{"path": path, "text": text} for path, text in pairs]
        body = {"files": file_list, "is_complete": is_complete}
        response = yield from self.call(
            requests.post_request(f"sources/{quote_segment(source)}/files:push", body), options
        )
        return response.json()

    def replay(self, ledger_id: int, options: CallOptions) -> Plan[dict[str, Any]]:
        response = yield from self.call(
            requests.get_request(f"ledger/{quote_segment(ledger_id)}/replay"), options
        )
        document = response.json()
        if hash_replay(document) != document.get("recorded_digest"):
            raise Unreachable("The text does not match the recorded digest.")
        return document

    def diff(self, digest: str, against: str, options: CallOptions) -> Plan[dict[str, Any]]:
        request = requests.get_request(f"prompt-versions/{quote_segment(digest)}/diff", against=against)
        response = yield from self.call(request, options)
        return response.json()

    def call(self, request: Request, options: CallOptions) -> Plan[Response]:
        """Send a request and return the successful response, or raise. A 401 clears the prompt cache."""
        response = yield from send_with_retries(request, options.attempts or self.attempts, options.timeout)
        if response.is_success:
            return response
        error = response.to_error()
        if isinstance(error, Problem) and error.status == UNAUTHORIZED:
            yield from self.cache.clear()
        raise error


def hash_replay(document: Mapping[str, Any]) -> str:
    """Compute the digest of a replayed text in the form in which the server recorded it."""
    digest, salt = sha256(str(document.get("text")).encode()).hexdigest(), document.get("salt")
    return sha256(f"dramatis:salted:v1\n{salt}\n{digest}".encode()).hexdigest() if salt else digest


def list_stored_skills(document: Mapping[str, Any]) -> OfferedSkills:
    """List the skills that a version offers and that are stored on the server without a file."""
    names = [str(skill["name"]) for skill in document["items"] if skill["origin"]["kind"] == "skill"]
    return OfferedSkills(int(document["version"]), names)


def parse_record(parse: Callable[[Mapping[str, Any]], T], response: Response) -> T:
    try:
        return parse(response.json())
    except (KeyError, TypeError, ValueError) as error:
        raise Unreachable("The response does not match the request.") from error
